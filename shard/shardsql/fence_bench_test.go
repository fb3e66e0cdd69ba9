package shardsql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
)

// A way is one of the fences that were compared. Its transaction redeems a
// coupon: a guarded update and a ledger row.
type way struct {
	first  string // the first statement; "": none
	redeem string // the update; its arguments are the coupon, and the epoch if it asks for one
	close  string // what the mover does
	open   string // and undoes
}

const (
	clock       = "SELECT 1, CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
	sharedFence = "SELECT epoch, CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) FROM shard_fence WHERE shard = 3 LOCK IN SHARE MODE"
	guardedOnce = "UPDATE coupon SET status = 2 - status, version = version + 1 WHERE id = ?"
	inUpdate    = guardedOnce + " AND EXISTS (SELECT 1 FROM shard_fence WHERE shard = 3 AND epoch = ? LOCK IN SHARE MODE)"
	bump        = "UPDATE shard_fence SET epoch = 2 WHERE shard = 3"
	unbump      = "UPDATE shard_fence SET epoch = 1 WHERE shard = 3"
	rename      = "RENAME TABLE coupon TO coupon_away, ledger TO ledger_away"
	renameBack  = "RENAME TABLE coupon_away TO coupon, ledger_away TO ledger"
)

var fenceWays = []struct {
	name string
	way
}{
	{"none", way{clock, guardedOnce, "", ""}},
	{"shared-row", way{sharedFence, guardedOnce, bump, unbump}},
	{"in-update", way{clock, inUpdate, bump, unbump}},
	{"in-update-no-clock", way{"", inUpdate, bump, unbump}},
	{"rename", way{clock, guardedOnce, rename, renameBack}},
}

const (
	callers = 16
	coupons = 20_000
	slice   = 300 * time.Millisecond
)

// BenchmarkFence gives each way a slice of time in turn, with 16 callers, alone
// and while a mover closes the shard every 100 ms for 5 ms. An op is a round of
// all ways. Of each way it reports the median over the rounds of its transactions
// by those without a fence in the same round, since what else the machine does
// changes from second to second; and the mover's wait until nobody can write any
// more. Run it with -benchtime 30x.
func BenchmarkFence(b *testing.B) {
	server := realtest.MariaDB(b, "innodb-flush-log-at-trx-commit=1", "log-bin=bin", "sync-binlog=1", "binlog-format=ROW",
		"innodb-buffer-pool-size=256M", "innodb-log-file-size=128M")
	db := openMySQL(b, server.CreateDatabase("fence"))
	mover := openMySQL(b, server.DSN("fence"))
	fillFenced(b, db)
	for _, moving := range []bool{false, true} {
		b.Run(fmt.Sprintf("moving=%v", moving), func(b *testing.B) {
			var runs []*fenced16
			for _, w := range fenceWays {
				runs = append(runs, &fenced16{db: db, name: w.name, way: w.way})
			}
			for b.Loop() {
				for _, f := range runs {
					f.slice(b, mover, moving)
				}
			}
			for _, f := range runs {
				f.report(b, runs[0])
			}
		})
	}
}

func fillFenced(b *testing.B, db shard.Database) {
	for _, text := range []string{
		"CREATE TABLE coupon (id BIGINT PRIMARY KEY, status INT NOT NULL, version BIGINT NOT NULL)",
		"CREATE TABLE ledger (n BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL)",
		"CREATE TABLE shard_fence (shard INT PRIMARY KEY, epoch BIGINT NOT NULL)",
		"INSERT INTO shard_fence VALUES (3, 1)",
		fmt.Sprintf("INSERT INTO coupon SELECT seq, 0, 1 FROM seq_1_to_%d", coupons),
	} {
		if err := execute(b.Context(), db, text); err != nil {
			b.Fatal(err)
		}
	}
}

// fenced16 is the run of one way.
type fenced16 struct {
	db          shard.Database
	name        string
	way         way
	turn        atomic.Int64
	moved, busy atomic.Int64
	done        []float64       // transactions a second, by round
	waits       []time.Duration // of the mover
	failed      int             // of its tries
}

// slice lets the callers redeem for a slice of time.
func (f *fenced16) slice(b *testing.B, mover shard.Database, moving bool) {
	stop := func() {}
	if moving {
		stop = f.move(b, mover)
	}
	var redeeming sync.WaitGroup
	var n atomic.Int64
	start := time.Now()
	for range callers {
		redeeming.Go(func() {
			for time.Since(start) < slice {
				f.redeem(b)
				n.Add(1)
			}
		})
	}
	redeeming.Wait()
	f.done = append(f.done, float64(n.Load())/time.Since(start).Seconds())
	stop()
}

// redeem runs one transaction until it is through.
func (f *fenced16) redeem(b *testing.B) {
	id := f.turn.Add(7919) % coupons
	for {
		err := f.once(b.Context(), 1+id)
		switch {
		case err == nil:
			return
		case errors.Is(err, shard.ErrMoved) || strings.Contains(err.Error(), "1146"):
			f.moved.Add(1)
			time.Sleep(time.Millisecond)
		case errors.Is(err, shard.ErrBusy):
			f.busy.Add(1)
		default:
			b.Error(err)
			return
		}
	}
}

func (f *fenced16) once(ctx context.Context, id int64) error {
	return f.db.Write(ctx, func(c shard.Conn) error {
		args := []any{id}
		if f.way.first != "" {
			var epoch, now int64
			if err := c.QueryRowContext(ctx, f.way.first).Scan(&epoch, &now); err != nil {
				return err
			}
			if epoch != 1 {
				return shard.ErrMoved
			}
		}
		if strings.Contains(f.way.redeem, "epoch") {
			args = append(args, 1)
		}
		result, err := c.ExecContext(ctx, f.way.redeem, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, shard.ErrMoved)
		}
		_, err = c.ExecContext(ctx, "INSERT INTO ledger (id) VALUES (?)", id)
		return err
	})
}

// move closes and opens the shard again and again until the function it returns
// is called.
func (f *fenced16) move(b *testing.B, db shard.Database) (stop func()) {
	if f.way.close == "" {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
			}
			start := time.Now()
			for execute(b.Context(), db, f.way.close) != nil {
				f.failed++
			}
			f.waits = append(f.waits, time.Since(start))
			time.Sleep(5 * time.Millisecond)
			for execute(b.Context(), db, f.way.open) != nil {
				f.failed++
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func (f *fenced16) report(b *testing.B, none *fenced16) {
	var ratios []float64
	for i := range f.done {
		ratios = append(ratios, f.done[i]/none.done[i])
	}
	b.ReportMetric(median(f.done), f.name+"-tx/s")
	b.ReportMetric(median(ratios), f.name+"-ratio")
	if len(f.waits) == 0 {
		return
	}
	var waits []float64
	for _, w := range f.waits {
		waits = append(waits, float64(w.Microseconds())/1000)
	}
	b.ReportMetric(median(waits), f.name+"-wait-ms")
	b.ReportMetric(slices.Max(waits), f.name+"-wait-max-ms")
	b.ReportMetric(float64(f.failed), f.name+"-mover-retries")
	b.ReportMetric(float64(f.moved.Load()+f.busy.Load())/float64(len(waits)), f.name+"-errors/move")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
