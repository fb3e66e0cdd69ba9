package shardsql_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// three is the shard that moves, and write what is written to it.
const three = shard.Shard(3)

var (
	createNote = shard.SQL("CREATE TABLE note_# (id BIGINT NOT NULL PRIMARY KEY)")
	insertNote = shard.SQL("INSERT INTO note_# (id) VALUES (?)")
	countNotes = shard.SQL("SELECT count(*) FROM note_#")
)

// eachDialect runs a test on two databases of each kind. a has all shards, and
// both have the table note of shard 3; the fence of b is that of after the move.
func eachDialect(t *testing.T, test func(t *testing.T, a, b shard.Database)) {
	t.Run("mariadb", func(t *testing.T) {
		test(t, openMySQL(t, realtest.MariaDBDSN(t)), openMySQL(t, realtest.MariaDBDSN(t)))
	})
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, openSQLite(t, filepath.Join(dir, "a.db")), openSQLite(t, filepath.Join(dir, "b.db")))
	})
}

// onA and onB are the maps before and after the move.
func onA() shard.Map {
	m, err := shard.Spread("a")
	if err != nil {
		panic(err)
	}
	return m
}

func onB() shard.Map {
	m := onA()
	m.Version, m.Shards[three] = 2, shard.Place{Database: "b", Epoch: 2}
	return m
}

// clusterOn makes a cluster that follows to b when it meets the fence.
func clusterOn(t testing.TB, a, b shard.Database, m shard.Map) *shard.Cluster {
	t.Helper()
	c, err := shard.New(m, map[string]shard.Database{"a": a, "b": b}, shard.Options{
		Reload: func(context.Context) (shard.Map, error) { return onB(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prepareMove makes fences and tables, and returns clusters of before and after.
func prepareMove(t testing.TB, a, b shard.Database) (before, after *shard.Cluster) {
	t.Helper()
	before, after = clusterOn(t, a, b, onA()), clusterOn(t, a, b, onB())
	for db, epoch := range map[shard.Database]uint64{a: 1, b: 2} {
		if err := shardsql.EnsureFence(t.Context(), db, three, epoch); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*shard.Cluster{before, after} {
		err := c.Write(t.Context(), three, func(tx *shard.Tx) error {
			_, err := tx.Exec(createNote)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return before, after
}

func note(ctx context.Context, c *shard.Cluster, id int) error {
	return c.Write(ctx, three, func(tx *shard.Tx) error {
		_, err := tx.Exec(insertNote, id)
		return err
	})
}

// notes fails the test unless there are that many on each side.
func notes(t testing.TB, before, after *shard.Cluster, a, b int) {
	t.Helper()
	for name, want := range map[string]struct {
		c *shard.Cluster
		n int
	}{"a": {before, a}, "b": {after, b}} {
		var n int
		err := want.c.Read(t.Context(), three, func(r *shard.Reader) error { return r.QueryRow(countNotes).Scan(&n) })
		if err != nil || n != want.n {
			t.Errorf("%s has %d notes, %v; want %d", name, n, err, want.n)
		}
	}
}

func raise(t testing.TB, db shard.Database, epoch uint64) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	return shardsql.RaiseFence(ctx, db, three, epoch)
}

func TestAWriterAfterTheFenceLandsWhereTheShardIs(t *testing.T) {
	eachDialect(t, func(t *testing.T, a, b shard.Database) {
		before, after := prepareMove(t, a, b)
		stale := clusterOn(t, a, b, onA())
		if err := note(t.Context(), stale, 1); err != nil {
			t.Fatal(err)
		}
		if err := raise(t, a, 2); err != nil {
			t.Fatal(err)
		}
		if err := note(t.Context(), stale, 2); err != nil {
			t.Fatal(err)
		}
		if got := stale.Map().Version; got != 2 {
			t.Errorf("it has version %d of the map", got)
		}
		notes(t, before, after, 1, 1)
	})
}

// A gate is a database whose writers stop right before they begin.
type gate struct {
	shard.Database
	at, pass chan struct{}
}

func (g gate) Write(ctx context.Context, fn func(shard.Conn) error) error {
	g.at <- struct{}{}
	<-g.pass
	return g.Database.Write(ctx, fn)
}

func TestAWriterPausedAfterReadingTheMapLandsWhereTheShardIs(t *testing.T) {
	eachDialect(t, func(t *testing.T, a, b shard.Database) {
		before, after := prepareMove(t, a, b)
		g := gate{a, make(chan struct{}), make(chan struct{})}
		stale := clusterOn(t, g, b, onA())
		done := make(chan error, 1)
		go func() { done <- note(t.Context(), stale, 1) }()
		<-g.at
		if err := raise(t, a, 2); err != nil {
			t.Fatal(err)
		}
		close(g.pass)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		notes(t, before, after, 0, 1)
	})
}

// A writer that is within its transaction holds the mover up, and what it wrote
// is there when the mover goes on.
func TestTheFenceWaitsForWritersUnderWay(t *testing.T) {
	eachDialect(t, func(t *testing.T, a, b shard.Database) {
		before, after := prepareMove(t, a, b)
		in, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- before.Write(t.Context(), three, func(tx *shard.Tx) error {
				_, err := tx.Exec(insertNote, 1)
				close(in)
				<-leave
				return err
			})
		}()
		<-in
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		err := shardsql.RaiseFence(ctx, a, three, 2)
		cancel()
		if !errors.Is(err, shard.ErrBusy) && !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("the mover: %v, want ErrBusy", err)
		}
		raised := make(chan error, 1)
		go func() { raised <- raise(t, a, 2) }()
		close(leave)
		if err := <-done; err != nil {
			t.Errorf("the writer: %v", err)
		}
		if err := <-raised; err != nil {
			t.Errorf("the mover: %v", err)
		}
		stale := clusterOn(t, a, b, onA())
		if err := note(t.Context(), stale, 2); err != nil {
			t.Errorf("a late writer: %v", err)
		}
		notes(t, before, after, 1, 1)
	})
}

func TestTheFenceOnlyRises(t *testing.T) {
	eachDialect(t, func(t *testing.T, a, b shard.Database) {
		prepareMove(t, a, b)
		for _, step := range []struct {
			do   func(context.Context, shard.Database, shard.Shard, uint64) error
			to   uint64
			want uint64
		}{
			{shardsql.EnsureFence, 9, 1},
			{shardsql.RaiseFence, 5, 5},
			{shardsql.RaiseFence, 5, 5},
			{shardsql.RaiseFence, 4, 5},
			{shardsql.EnsureFence, 1, 5},
		} {
			if err := step.do(t.Context(), a, three, step.to); err != nil {
				t.Fatal(err)
			}
			var epoch uint64
			var since int64
			err := a.Read(t.Context(), func(c shard.Conn) error {
				return c.QueryRowContext(t.Context(), "SELECT epoch, since FROM shard_fence WHERE shard = ?", three).Scan(&epoch, &since)
			})
			if err != nil || epoch != step.want || time.Since(time.UnixMilli(since)).Abs() > time.Minute {
				t.Errorf("after %d: epoch %d since %v, %v; want %d", step.to, epoch, time.UnixMilli(since), err, step.want)
			}
		}
		if err := shardsql.RaiseFence(t.Context(), a, 4, 7); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAShardWithoutAFenceTakesNoWrites(t *testing.T) {
	eachDialect(t, func(t *testing.T, a, b shard.Database) {
		prepareMove(t, a, b)
		c, err := shard.New(onA(), map[string]shard.Database{"a": a}, shard.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, fn := range map[string]func(*shard.Tx) error{
			"nothing":     func(*shard.Tx) error { return nil },
			"a query":     func(tx *shard.Tx) error { return tx.QueryRow(shard.SQL("SELECT 1 AS one /* # */")).Scan(new(int)) },
			"the clock":   func(tx *shard.Tx) error { tx.Now(); return nil },
			"a statement": func(tx *shard.Tx) error { return tx.Queue(shard.SQL("DELETE FROM thing_#")) },
			"its own":     func(tx *shard.Tx) error { tx.Now(); return errors.New("its own") },
		} {
			if err := c.Write(t.Context(), shard.Shard(4), fn); !errors.Is(err, shard.ErrMoved) {
				t.Errorf("%s: %v, want ErrMoved", name, err)
			}
		}
	})
}
