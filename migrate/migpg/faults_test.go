package migpg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

const numbersTable = "create table t (id bigint primary key, version bigint not null, body text);"

// persist calls f until it does not fail, which it may for now only, for at
// most half a minute.
func persist(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, migrate.ErrTransient) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesGoOnWhenPostgresIsKilled: whoever pages a table meanwhile sees
// transient errors and every row once.
func TestPagesGoOnWhenPostgresIsKilled(t *testing.T) {
	server := realtest.Postgres(t)
	db := connect(t, server.DSN)
	const rows, limit = 20_000, 50
	run(t, db, numbersTable+fmt.Sprintf("insert into t select n, n, repeat('x', 100) from generate_series(1, %d) n", rows))
	s := open(t, planOf(db, "t", "id"))
	var killer sync.WaitGroup
	defer killer.Wait()
	want, failures := rows, 0
	var after migrate.Key
	for end := false; !end; {
		var p migrate.Page
		persist(t, func(ctx context.Context) (err error) {
			if p, err = s.Page(ctx, migrate.Range{}, after, limit, 1<<20); err != nil {
				failures++
			}
			return err
		})
		for _, row := range p.Rows {
			if row.Key[0] != fmt.Sprint(want) {
				t.Fatalf("row %s, want %d", row.Key, want)
			}
			want, after = want-1, row.Key
		}
		if end = p.End; want == rows-5*limit || want == rows/2 {
			killer.Wait()
			server.Kill() // the next page fails
			killer.Go(server.Start)
		}
	}
	if want != 0 || failures < 2 {
		t.Errorf("%d rows are missing after %d failures", want, failures)
	}
}

func TestErrorsTellWhetherToTryAgain(t *testing.T) {
	server := realtest.Postgres(t)
	db := connect(t, server.DSN)
	run(t, db, numbersTable+"insert into t values (1, 1, '')")
	proxy := realtest.NewProxy(t, server.Addr)
	plan := planOf(db, "t", "id")
	plan.Source.DSN = strings.Replace(plan.Source.DSN, server.Addr, proxy.Addr, 1)
	s := open(t, plan)
	page := func(ctx context.Context) error {
		_, err := s.Page(ctx, migrate.Range{}, nil, 10, 0)
		return err
	}
	proxy.Cut()
	if err := page(t.Context()); !errors.Is(err, migrate.ErrTransient) {
		t.Errorf("without a connection: %v", err)
	}
	proxy.Restore()
	persist(t, page)
	proxy.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := page(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, migrate.ErrTransient) {
		t.Errorf("a server that does not answer: %v", err)
	}
	proxy.Restore()
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := page(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, migrate.ErrTransient) {
		t.Errorf("a caller who left: %v", err)
	}
	run(t, db, "alter table t rename body to content")
	if err := page(t.Context()); err == nil || errors.Is(err, migrate.ErrTransient) || !strings.Contains(err.Error(), "body") {
		t.Errorf("a column that is gone: %v", err)
	}
	run(t, db, "alter table t rename content to body; alter table t alter body type bytea using 'x'::bytea")
	s2 := persistType(t, page)
	if s2 == nil || !strings.Contains(s2.Error(), "type was changed") {
		t.Errorf("a column of another type: %v", s2)
	}
	run(t, db, "drop table t")
	if err := page(t.Context()); err == nil || errors.Is(err, migrate.ErrTransient) {
		t.Errorf("a table that is gone: %v", err)
	}
}

// persistType returns the first error that does not pass.
func persistType(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	for range 10 {
		if err := f(t.Context()); !errors.Is(err, migrate.ErrTransient) {
			return err
		}
	}
	return nil
}

func TestErrorsKeepThePassword(t *testing.T) {
	addr := realtest.FreeAddr(t)
	for _, dsn := range []string{
		"postgres://user:s3cret@" + addr + "/db", "postgres://user:s3cret@host:port/db", "postgres://user:s3%cret@host/db", "postgres://user:pass:s3cret@[::1/db",
		"host=127.0.0.1 port=x user=u password=s3cret", "password='s3cret host", "user=u password=s3cret sslmode=never",
		"postgres://user:s3cret@" + addr + "/db?connect_timeout=x", "s3cret",
	} {
		plan := migrate.Plan{Source: migrate.SourcePlan{DSN: dsn, Table: "t", Key: []string{"id"}}}
		_, err := migpg.Open(t.Context(), plan)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "cret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestLockedRowsAreReadAfterTheirUpdate: with lock, a change under way is
// awaited; without, the row is as it was.
func TestLockedRowsAreReadAfterTheirUpdate(t *testing.T) {
	dsn := realtest.PostgresDSN(t)
	db, other := connect(t, dsn), connect(t, dsn)
	run(t, db, numbersTable+"insert into t select n, 1, '' from generate_series(1, 1000) n")
	s := open(t, planOf(db, "t", "id"))
	run(t, other, "begin; update t set version = 2 where id = 7")
	read := func(lock bool) int64 {
		rows, err := s.Get(t.Context(), []migrate.Key{{"7"}, {"-1"}}, lock)
		if err != nil || len(rows) != 1 {
			t.Errorf("%v, %v", rows, err)
			return 0
		}
		return rows[0].Version
	}
	if v := read(false); v != 1 {
		t.Errorf("version %d before the change", v)
	}
	var reading sync.WaitGroup
	var locked int64
	reading.Go(func() { locked = read(true) })
	awaitRow(t, db, "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%for share%'")
	run(t, other, "commit")
	reading.Wait()
	if locked != 2 {
		t.Errorf("version %d after the change", locked)
	}
}
