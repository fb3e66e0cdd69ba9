package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// couponWallet measures a page at the end of a large wallet against one at its
// beginning, and walks through it while it changes.
func couponWallet(t *testing.T, r *results) {
	size := walletSizes()
	r.section(fmt.Sprintf("Coupons: a wallet of %d", size.coupons), fmt.Sprintf(
		"One user, %d coupons end at the same time, pages of %d. Rows are those that the server says it examined, for all statements of a call.", size.ties, size.pageSize))
	t.Run("MariaDB", func(t *testing.T) {
		server, o := walletMariaDB(t)
		w := newWalletWorld(t, size, o)
		m := &walletMeasure{walletWorld: w, log: rawMySQL(t, server.DSN("mysql"))}
		m.open(t, o)
		home := shard.Text(walletUser).Bucket().Shard() / (shard.Count / walletDatabases)
		m.home = rawMySQL(t, server.DSN(fmt.Sprint("shard", home))+logAll)
		m.pages(t, r)
		m.offsets(t, r)
		r.text("MariaDB: %s.", w.walkBusy(t))
	})
	t.Run("SQLite", func(t *testing.T) {
		if !full {
			size.coupons /= 5 // the race detector makes it slow
		}
		r.text("SQLite, %d coupons: %s.", size.coupons, newWalletWorld(t, size, walletSQLite(t)).walkBusy(t))
	})
}

// logAll, after a DSN, has every statement logged.
const logAll = "?long_query_time=0&log_slow_filter=''"

func rawMySQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// A walletMeasure is a wallet on MariaDB and who looks at how it is read.
type walletMeasure struct {
	*walletWorld
	logged *couponsql.Platform // the same databases; its statements are logged
	reads  *coupon.Service     // of logged
	home   *sql.DB             // the user's database, likewise
	log    *sql.DB
}

// open opens the databases once more, with a connection each for reads whose every
// statement is in the server's slow log, with the rows that it examined.
func (m *walletMeasure) open(t *testing.T, o couponsql.Options) {
	t.Helper()
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at + logAll, MaxConns: 1})
	}
	m.logged = openPlatform(t, o)
	m.reads = coupon.NewService(m.logged.Store, m.logged.Control, coupon.Options{})
	t.Cleanup(m.reads.Close)
}

// examined returns the rows that the server examined for all statements of do.
func (m *walletMeasure) examined(t *testing.T, do func() error) (rows int) {
	t.Helper()
	m.flush(t)
	if _, err := m.log.ExecContext(t.Context(), "truncate table mysql.slow_log"); err != nil {
		t.Fatal(err)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	m.flush(t)
	var statements int
	row := m.log.QueryRowContext(t.Context(), "select coalesce(sum(rows_examined), 0), coalesce(sum(sql_text like '%user_coupon_%'), 0) from mysql.slow_log where db like 'shard%' and sql_text not like '%"+flushing+"%'")
	if err := row.Scan(&rows, &statements); err != nil {
		t.Fatal(err)
	}
	if statements != 1 {
		t.Fatalf("%d statements on the wallet were logged, want 1", statements)
	}
	return rows
}

// flushing is in statements that nobody counts.
const flushing = "no-such-order"

// flush has each connection do something: what it did before is in the log then,
// which is written after the answer.
func (m *walletMeasure) flush(t *testing.T) {
	t.Helper()
	budget := shard.Budget{Shards: shard.Count, Parallel: 1, Time: time.Minute}
	err := m.logged.Store.FanOut(t.Context(), "flush the log", budget, nil, func(_ shard.Shard, rows coupon.Rows) error {
		_, err := rows.OrderBatches(flushing)
		return err
	})
	if err == nil {
		_, err = m.home.ExecContext(t.Context(), "do '"+flushing+"'")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// places are where a page begins, by the number of the page.
func (m *walletMeasure) places() (names []string, keys []coupon.WalletKey) {
	for _, page := range []int{1, m.walletSize.pages() / 2, m.walletSize.pages()} {
		name, key := fmt.Sprint(page), coupon.WalletKey{}
		if page > 1 {
			before := m.begun[(page-1)*m.pageSize-1]
			key = coupon.WalletKey{Until: before.Valid.Until, ID: before.ID}
		}
		names, keys = append(names, name), append(keys, key)
	}
	names[1] += ", within the tie"
	return names, keys
}

// pages compares pages of a quiet wallet.
func (m *walletMeasure) pages(t *testing.T, r *results) {
	names, keys := m.places()
	rows := make([]int, len(keys))
	fresh := make([]int, len(keys))
	for i, key := range keys {
		q := coupon.WalletQuery{User: walletUser, After: key, Size: m.pageSize}
		rows[i] = m.examined(t, func() error { return m.expect(q, i) })
		q.Fresh = true
		fresh[i] = m.examined(t, func() error { return m.expect(q, i) })
	}
	took := m.time(t, keys)
	r.table("page", "rows examined", "with fresh=true", fmt.Sprintf("ms, median of %d interleaved", m.calls))
	for i, name := range names {
		r.row(name, rows[i], fresh[i], median(took[i]))
	}
	last := len(keys) - 1
	slower := median(took[last]) / median(took[0])
	r.table("last page to first", "measured", "bar")
	r.row("rows examined, more", rows[last]-rows[0], 2)
	r.row("time", slower, "1.5")
	for i := range keys {
		if rows[i] > rows[0]+2 {
			t.Errorf("page %s: %d rows examined, the first has %d", names[i], rows[i], rows[0])
		}
		if fresh[i] > rows[i]+2*m.pageSize { // for a coupon of another shard its row and its place in the list of ids
			t.Errorf("page %s: %d rows examined with fresh, %d without", names[i], fresh[i], rows[i])
		}
	}
	r.atMost(t, "time of the last page to the first", slower, 1.5)
}

// expect reads a page and holds it against what was put there.
func (m *walletMeasure) expect(q coupon.WalletQuery, place int) error {
	page, err := m.reads.Wallet(context.Background(), q)
	if err != nil {
		return err
	}
	from := []int{0, m.walletSize.pages()/2 - 1, m.walletSize.pages() - 1}[place] * m.pageSize
	want := m.begun[from:min(len(m.begun), from+m.pageSize)]
	if len(page.Coupons) != len(want) {
		return fmt.Errorf("%d coupons on the page, want %d", len(page.Coupons), len(want))
	}
	for i, c := range page.Coupons {
		if c.ID != want[i].ID || !c.Valid.Until.Equal(want[i].Valid.Until) || c.Status != coupon.Issued {
			return fmt.Errorf("coupon %d of the page is %d, %v until %v, want %d", i, c.ID, c.Status, c.Valid.Until, want[i].ID)
		}
	}
	return nil
}

// time returns how long pages took, in ms, in turns.
func (m *walletMeasure) time(t *testing.T, keys []coupon.WalletKey) [][]float64 {
	took := make([][]float64, len(keys))
	for range m.calls {
		for i, key := range keys {
			began := time.Now()
			_, err := m.Wallet(t.Context(), coupon.WalletQuery{User: walletUser, After: key, Size: m.pageSize})
			if err != nil {
				t.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(began).Microseconds())/1000)
		}
	}
	return took
}

// offsets reads the last page, and walks, as one would by OFFSET. A walk that a claim
// comes into is the fault that [misses] has to find.
func (m *walletMeasure) offsets(t *testing.T, r *results) {
	at := (m.walletSize.pages() - 1) * m.pageSize
	var took time.Duration
	rows := m.examined(t, func() error {
		began := time.Now()
		_, _, err := m.byOffset(&at)(t.Context())
		took = time.Since(began)
		return err
	})
	r.text("The last page by LIMIT ... OFFSET examines %d rows and takes %.3g ms.", rows, float64(took.Microseconds())/1000)

	first := m.Campaign(t, 64, func(c *coupon.Campaign) { c.ValidDays, c.ValidUntil = 0, m.first })
	at = 0
	turned, held := 0, m.held.all()
	seen, _, err := m.walk(t.Context(), m.byOffset(&at), func() {
		if turned++; turned != 2 {
			return
		}
		claimed, err := m.Claim(t.Context(), first.ID, coupon.Call{User: walletUser, Request: "early"})
		if err != nil {
			t.Error(err)
		}
		m.held.add(claimed.Coupon)
	})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := misses(held, seen); len(wrong) == 0 {
		t.Error("a walk by OFFSET past a claim shows nothing twice: nothing would be found to be wrong")
	}
}

// byOffset turns pages by their number of coupons before.
func (m *walletMeasure) byOffset(at *int) pager {
	query := fmt.Sprintf("select coupon_id, valid_until from user_coupon_%02d where user_id = '%s' order by valid_until, coupon_id limit %d offset ",
		shard.Text(walletUser).Bucket().Shard(), walletUser, m.pageSize)
	return func(ctx context.Context) (page []coupon.Coupon, end bool, err error) {
		rows, err := m.home.QueryContext(ctx, query+strconv.Itoa(*at))
		if err != nil {
			return nil, false, err
		}
		defer rows.Close()
		for rows.Next() {
			var c coupon.Coupon
			var until int64
			if err := rows.Scan(&c.ID, &until); err != nil {
				return nil, false, err
			}
			c.Valid.Until = time.UnixMilli(until)
			page = append(page, c)
		}
		*at += m.pageSize
		return page, len(page) < m.pageSize, rows.Err()
	}
}
