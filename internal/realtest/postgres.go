package realtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// postgresUser runs the server when the test is root, which PostgreSQL
// refuses, and is its superuser. Debian's package makes it.
const postgresUser = "postgres"

// A PostgresServer is a PostgreSQL with one superuser, who needs no password.
type PostgresServer struct {
	*Process
	DSN  string // of the database postgres, as a URL
	Addr string // host:port

	programs string // the folder of initdb and others
}

// Postgres starts a server of the test's own. Settings are lines as in
// postgresql.conf and override those chosen for speed: the server does not
// fsync, which loses nothing when it is killed, only when the machine is.
func Postgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	s, err := startPostgres(settings)
	if err != nil {
		t.Fatal(err)
	}
	s.bind(t)
	return s
}

// PostgresDSN makes an empty database for the test on a server that all tests
// of the process share, and returns its URL.
func PostgresDSN(t testing.TB) string {
	t.Helper()
	s, err := sharedPostgres()
	if err != nil {
		t.Fatal(err)
	}
	dsn, err := s.createDatabase()
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) { return startPostgres(nil) })

func startPostgres(settings []string) (*PostgresServer, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	template, err := postgresTemplate()
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{programs: programs}
	s.Process, err = onFreePort(func(port int) (*Process, error) {
		s.Addr = loopback(port)
		s.DSN = s.dsn("postgres")
		p, err := newProcess(s.command(port, settings))
		if err != nil {
			return nil, err
		}
		if err := output(exec.Command("cp", "-a", template, filepath.Join(p.dir, "data"))); err != nil {
			return nil, err
		}
		return p, p.up()
	})
	return s, err
}

func (s *PostgresServer) command(port int, settings []string) Command {
	args := []string{"-D", "data", "-p", strconv.Itoa(port)}
	defaults := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=",
		"fsync=off", "full_page_writes=off", "shared_buffers=32MB",
	}
	for _, setting := range slices.Concat(defaults, settings) {
		args = append(args, "-c", setting)
	}
	return Command{
		Name:      "postgres",
		Path:      filepath.Join(s.programs, "postgres"),
		Args:      args,
		Env:       []string{"LC_ALL=C"},
		User:      postgresUser,
		Says:      "database system is ready to accept connections",
		Interrupt: syscall.SIGINT, // SIGTERM would wait for every client to leave
	}
}

func (s *PostgresServer) dsn(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgresUser, s.Addr, database)
}

var lastDatabase atomic.Int64

// createDatabase makes a database with a new name and returns its URL.
func (s *PostgresServer) createDatabase() (string, error) {
	name := fmt.Sprintf("test_%d", lastDatabase.Add(1))
	psql := filepath.Join(s.programs, "psql")
	return s.dsn(name), output(exec.Command(psql, "-q", "-d", s.DSN, "-c", "create database "+name))
}

// postgresTemplate returns a data folder to copy, which takes a tenth of the
// time of initdb.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return "", err
	}
	w, err := ourWorkspace()
	if err != nil {
		return "", err
	}
	dir, err := w.folder("initdb")
	if err != nil {
		return "", err
	}
	return dir, initdb(programs, dir)
})

func initdb(programs, dir string) error {
	cmd := exec.Command(filepath.Join(programs, "initdb"), "-D", dir, "-U", postgresUser,
		"--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	cmd.Dir = dir
	if err := makes(cmd, postgresUser, dir); err != nil {
		return err
	}
	err := output(cmd)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: user %s must be able to get at %s: set TMPDIR", err, postgresUser, dir)
	}
	return err
}

// postgresPrograms returns the folder of PostgreSQL's programs: that of the
// newest version in Debian's place, which is not in PATH, or the one in PATH.
func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, byVersion)), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", missing("PostgreSQL")
	}
	path, err = filepath.EvalSymlinks(path) // the others need not be linked
	return filepath.Dir(path), err
}

// byVersion compares paths like /usr/lib/postgresql/15/bin/initdb.
func byVersion(a, b string) int {
	version := func(path string) int {
		v, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return v
	}
	return version(a) - version(b)
}

// output runs cmd; what it wrote is in the error.
func output(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(out))
	}
	return nil
}
