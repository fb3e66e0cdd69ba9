package couponsql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Store is a [coupon.Store] on the shards of a cluster. It is safe for
// concurrent use.
type Store struct{ cluster *shard.Cluster }

var _ coupon.Store = (*Store)(nil)

// NewStore makes a store of a cluster whose shards [Open] has brought up to date.
func NewStore(c *shard.Cluster) *Store { return &Store{c} }

// Write runs fn in a transaction on the shard of key; see [shard.Cluster.Write].
func (s *Store) Write(ctx context.Context, key shard.Key, fn func(coupon.Tx) error) error {
	return s.cluster.Write(ctx, key, func(t *shard.Tx) error { return fn(newTx(t)) })
}

// Read runs fn on the shard of key; see [shard.Cluster.Read].
func (s *Store) Read(ctx context.Context, key shard.Key, fn func(coupon.Rows) error) error {
	return s.cluster.Read(ctx, key, func(r *shard.Reader) error { return fn(rows{r}) })
}

// FanOut runs fn on several shards; see [shard.Cluster.FanOut].
func (s *Store) FanOut(ctx context.Context, reason string, b shard.Budget, shards []shard.Shard, fn func(shard.Shard, coupon.Rows) error) error {
	return s.cluster.FanOut(ctx, reason, b, shards, func(r *shard.Reader) error { return fn(r.Shard(), rows{r}) })
}

// rows reads from a shard.
type rows struct{ *shard.Reader }

// tx writes to a shard.
type tx struct {
	rows
	write *shard.Tx
	held  *held
}

func newTx(t *shard.Tx) tx { return tx{rows{&t.Reader}, t, new(held)} }

var _ coupon.Tx = tx{}

// Now is the database's clock at the begin of the transaction.
func (t tx) Now() time.Time { return t.write.Now() }

// in returns the statement in the dialect of the shard's database.
func (r rows) in(w wording) shard.Statement { return w.in(r.Dialect()) }

// A scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// all returns the rows of a query, each made by scan.
func all[T any](r rows, scan func(scanner) (T, error), s shard.Statement, args ...any) ([]T, error) {
	result, err := r.Query(s, args...)
	if err != nil {
		return nil, err
	}
	return collect(result, scan)
}

func collect[T any](result *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer result.Close()
	var got []T
	for result.Next() {
		one, err := scan(result)
		if err != nil {
			return nil, err
		}
		got = append(got, one)
	}
	return got, result.Err()
}

// one returns the row of a query, or [coupon.ErrNoRow].
func one[T any](row scanner, scan func(scanner) (T, error)) (T, error) {
	got, err := scan(row)
	if errors.Is(err, sql.ErrNoRows) {
		err = coupon.ErrNoRow
	}
	return got, err
}

// changed reports whether a statement matched its row.
func (t tx) changed(s shard.Statement, args ...any) (bool, error) {
	n, err := t.write.Exec(s, args...)
	return n > 0, err
}

// added runs an INSERT and reports whether the row was not there yet. Which of
// its unique keys was there it does not tell.
func (t tx) added(s shard.Statement, args ...any) (bool, error) {
	_, err := t.write.Exec(s, args...)
	if errors.Is(err, shard.ErrDuplicate) {
		return false, nil
	}
	return err == nil, err
}
