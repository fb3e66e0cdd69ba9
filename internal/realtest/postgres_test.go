package realtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
)

func TestPostgresKeepsWhatWasCommittedWhenKilled(t *testing.T) {
	s := realtest.Postgres(t)
	exec(t, s.DSN, "create table kept (id int)")
	exec(t, s.DSN, "insert into kept values (7)")
	s.Kill()
	if conn, err := pgx.Connect(t.Context(), s.DSN); err == nil {
		conn.Close(t.Context())
		t.Fatal("a killed server answers")
	}
	s.Start()
	if got := queryInt(t, s.DSN, "select id from kept"); got != 7 {
		t.Errorf("after kill and start: %d, want 7", got)
	}
}

func TestPostgresKillEndsRunningStatements(t *testing.T) {
	s := realtest.Postgres(t)
	conn := connect(t, s.DSN)
	var backend uint32
	if err := conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&backend); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select pg_sleep(600)")
		done <- err
	}()
	awaitActive(t, s.DSN, backend)
	s.Kill()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the statement ended well")
		}
	case <-time.After(10 * time.Second):
		t.Error("the statement runs on")
	}
	s.Start()
	s.Stop()
	s.Start()
}

func TestPausedPostgresAnswersNobodyUntilResumed(t *testing.T) {
	s := realtest.Postgres(t)
	conn := connect(t, s.DSN)
	s.Pause()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select 1")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("a frozen server answered, with %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume()
	if err := <-done; err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
}

func TestPostgresTakesSettings(t *testing.T) {
	s := realtest.Postgres(t, "wal_level=logical", "fsync=on")
	for setting, want := range map[string]string{"wal_level": "logical", "fsync": "on"} {
		var got string
		if err := connect(t, s.DSN).QueryRow(t.Context(), "show "+setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", setting, got, err, want)
		}
	}
}

func TestSharedPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	one, two := realtest.PostgresDSN(t), realtest.PostgresDSN(t)
	exec(t, one, "create table mine (id int)")
	exec(t, two, "create table mine (id int)") // fails if it is the same one
}

// awaitActive waits until a backend runs a statement.
func awaitActive(t *testing.T, dsn string, backend uint32) {
	t.Helper()
	conn := connect(t, dsn)
	for t.Context().Err() == nil {
		var state string
		err := conn.QueryRow(t.Context(), "select state from pg_stat_activity where pid = $1", backend).Scan(&state)
		if err != nil {
			t.Fatal(err)
		}
		if state == "active" {
			return
		}
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, dsn, statement string) {
	t.Helper()
	if _, err := connect(t, dsn).Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func queryInt(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	if err := connect(t, dsn).QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
