package migpg_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// restartAsReplica makes the server's data that of a replica, whose primary is
// gone, on the same port.
func restartAsReplica(t *testing.T, s *realtest.PostgresServer) {
	t.Helper()
	db := connect(t, s.DSN)
	var data, programs string
	err := db.QueryRow(t.Context(), "select current_setting('data_directory'), (select setting from pg_config where name = 'BINDIR')").Scan(&data, &programs)
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, "copy (select 1) to '"+filepath.Join(data, "standby.signal")+"'")
	s.Stop()
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	realtest.Start(t, realtest.Command{
		Name: "replica", Path: filepath.Join(programs, "postgres"), User: "postgres",
		Args: []string{"-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="},
		Says: "ready to accept read-only connections",
	})
}

// TestReplicaReadsPagesAndNothingElse: what needs a primary says so.
func TestReplicaReadsPagesAndNothingElse(t *testing.T) {
	server := realtest.Postgres(t)
	db := connect(t, server.DSN)
	run(t, db, numbersTable+migpg.OutboxDDL+";insert into t values (1, 1, ''); insert into tallystick_outbox (table_name, key) values ('t', '1')")
	plan := planOf(db, "t", "id")
	restartAsReplica(t, server)
	s := open(t, plan)
	p, err := s.Page(t.Context(), migrate.Range{}, nil, 10, 0)
	if err != nil || len(p.Rows) != 1 {
		t.Errorf("page %v, %v", p, err)
	}
	left, none, err := s.Pending(t.Context(), 10)
	if err != nil || none || len(left) != 1 {
		t.Errorf("outbox %v, %v, %v", left, none, err)
	}
	if lag, err := s.Lag(t.Context()); err != nil || lag < 0 {
		t.Errorf("lag %v, %v", lag, err)
	}
	_, settled := s.Settled(t.Context())
	_, locked := s.Get(t.Context(), []migrate.Key{{"1"}}, true)
	for what, err := range map[string]error{"settled": settled, "clear": s.Clear(t.Context(), left), "lock": locked} {
		if f, ok := errors.AsType[migrate.Finding](err); !ok || f.Remedy != "name the primary" || errors.Is(err, migrate.ErrTransient) {
			t.Errorf("%s: %v", what, err)
		}
	}
	found, err := s.Preflight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkFindings(t, found, "refusal source.dsn: is a replica")
}

// TestLagIsThatOfTheReplicaFurthestBehind has a replica that receives and does not
// replay.
func TestLagIsThatOfTheReplicaFurthestBehind(t *testing.T) {
	server := realtest.Postgres(t)
	db := connect(t, server.DSN)
	run(t, db, numbersTable)
	s := open(t, planOf(db, "t", "id"))
	if lag, err := s.Lag(t.Context()); lag != 0 || err != nil {
		t.Errorf("without replicas: %v, %v", lag, err)
	}
	replica := connect(t, startReplica(t, server))
	run(t, replica, "select pg_wal_replay_pause()")
	for i := 0; ; i++ {
		run(t, db, fmt.Sprintf("insert into t values (%d, 1, '')", i))
		lag, err := s.Lag(t.Context())
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if lag > 500*time.Millisecond {
			return
		}
	}
}

// startReplica starts a replica of a server and returns how to connect to it.
func startReplica(t *testing.T, primary *realtest.PostgresServer) string {
	t.Helper()
	db := connect(t, primary.DSN)
	var programs string
	err := db.QueryRow(t.Context(), "select setting from pg_config where name = 'BINDIR'").Scan(&programs)
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := net.SplitHostPort(primary.Addr)
	addr := realtest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	realtest.Start(t, realtest.Command{
		Name: "replica", Path: "/bin/sh", User: "postgres",
		Args: []string{"-ec", `cd "$4"; "$1/pg_basebackup" -h 127.0.0.1 -p "$2" -U postgres -D copy -R -X stream -c fast
			chmod 700 copy; exec "$1/postgres" -D copy -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c wal_receiver_status_interval=1s`,
			"replica", programs, from, port, postgresFolder(t)},
		Says: "ready to accept read-only connections",
	})
	return strings.Replace(primary.DSN, primary.Addr, addr, 1)
}

// postgresFolder makes a folder that PostgreSQL's user can write to.
func postgresFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "replica-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Geteuid() != 0 {
		return dir
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	return dir
}
