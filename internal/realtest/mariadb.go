package realtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// mariadbUser runs the server when the test is root. Debian's package makes it.
const mariadbUser = "mysql"

// A MariaDBServer is a MariaDB whose superuser root needs no password.
type MariaDBServer struct {
	*Process
	Addr string // host:port
}

// MariaDB starts a server of the test's own. Settings are like
// "innodb_buffer_pool_size=1G" and override those chosen for speed: the server
// does not wait for the disk, which loses nothing when it is killed, only when
// the machine is, and has all tables in one file, which are made sooner.
func MariaDB(t testing.TB, settings ...string) *MariaDBServer {
	t.Helper()
	s, err := startMariaDB(settings)
	if err != nil {
		t.Fatal(err)
	}
	s.bind(t)
	return s
}

// MariaDBDSN makes an empty database for the test on a server that all tests of
// the process share, and returns how to open it.
func MariaDBDSN(t testing.TB) string {
	t.Helper()
	s, err := sharedMariaDB()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", lastMariaDB.Add(1))
	if err := s.create(name); err != nil {
		t.Fatal(err)
	}
	return s.DSN(name)
}

var (
	sharedMariaDB = sync.OnceValues(func() (*MariaDBServer, error) { return startMariaDB(nil) })
	lastMariaDB   atomic.Int64
)

// DSN returns how to open a database of the server.
func (s *MariaDBServer) DSN(database string) string { return "root@tcp(" + s.Addr + ")/" + database }

// CreateDatabase makes an empty database and returns how to open it.
func (s *MariaDBServer) CreateDatabase(name string) (dsn string) {
	s.t.Helper()
	if err := s.create(name); err != nil {
		s.t.Fatal(err)
	}
	return s.DSN(name)
}

func (s *MariaDBServer) create(name string) error {
	host, port, _ := strings.Cut(s.Addr, ":")
	return output(exec.Command("mariadb", "--no-defaults", "-h", host, "-P", port, "-u", "root", "-e", "create database "+name))
}

func startMariaDB(settings []string) (*MariaDBServer, error) {
	path, err := exec.LookPath("mariadbd")
	if err != nil {
		return nil, missing("MariaDB")
	}
	template, err := mariadbTemplate()
	if err != nil {
		return nil, err
	}
	s := &MariaDBServer{}
	s.Process, err = onFreePort(func(port int) (*Process, error) {
		s.Addr = loopback(port)
		p, err := newProcess(Command{
			Name: "mariadb",
			Path: path,
			Args: mariadbArgs(port, settings),
			User: mariadbUser,
			Says: "ready for connections",
		})
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

func mariadbArgs(port int, settings []string) []string {
	defaults := []string{
		"datadir=./data", "tmpdir=.", "port=" + strconv.Itoa(port), "socket=socket", "bind-address=127.0.0.1",
		"skip-name-resolve", "innodb-flush-log-at-trx-commit=0", "innodb-file-per-table=0",
		"innodb-buffer-pool-size=64M", "innodb-log-file-size=32M", "max-connections=500",
	}
	args := []string{"--no-defaults"}
	for _, setting := range slices.Concat(defaults, settings) {
		args = append(args, "--"+setting)
	}
	return args
}

// mariadbTemplate returns a data folder to copy, so that only the first server
// of a process waits for its making.
var mariadbTemplate = sync.OnceValues(func() (string, error) {
	w, err := ourWorkspace()
	if err != nil {
		return "", err
	}
	dir, err := w.folder("mariadb-install-db")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
		"--skip-test-db", "--datadir="+dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // in a folder that they share, a server that starts removes others' tables
	if err := makes(cmd, mariadbUser, dir); err != nil {
		return "", err
	}
	return dir, output(cmd)
})
