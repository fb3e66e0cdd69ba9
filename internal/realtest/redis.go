package realtest

import (
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A RedisServer is a Redis without a password.
type RedisServer struct {
	*Process
	URL  string // of its database 0
	Addr string // host:port
}

// Redis starts a server of the test's own. Settings are like "appendonly yes"
// and override those chosen for a test: it never evicts and keeps nothing on
// disk, so that it is empty after Kill and Start. With "appendonly yes" and
// "appendfsync always" it has then whatever it acknowledged.
func Redis(t testing.TB, settings ...string) *RedisServer {
	t.Helper()
	s, err := startRedis(settings)
	if err != nil {
		t.Fatal(err)
	}
	s.bind(t)
	return s
}

// RedisPrefix returns the URL of a server that all tests of the process share,
// and a prefix for keys that nobody else uses.
func RedisPrefix(t testing.TB) (url, prefix string) {
	t.Helper()
	s, err := sharedRedis()
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, "test" + strconv.FormatInt(lastPrefix.Add(1), 10) + ":"
}

var (
	sharedRedis = sync.OnceValues(func() (*RedisServer, error) { return startRedis(nil) })
	lastPrefix  atomic.Int64
)

func startRedis(settings []string) (*RedisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, missing("Redis")
	}
	s := &RedisServer{}
	s.Process, err = onFreePort(func(port int) (*Process, error) {
		s.Addr = loopback(port)
		s.URL = "redis://" + s.Addr + "/0"
		p, err := newProcess(Command{Name: "redis", Path: path, Args: redisArgs(port, settings), Says: "Ready to accept connections"})
		if err != nil {
			return nil, err
		}
		return p, p.up()
	})
	return s, err
}

func redisArgs(port int, settings []string) []string {
	defaults := []string{
		"bind 127.0.0.1", "port " + strconv.Itoa(port), "save ''", "appendonly no",
		"maxmemory-policy noeviction", "databases 2",
	}
	var args []string
	for _, setting := range append(defaults, settings...) {
		name, value, _ := strings.Cut(setting, " ")
		args = append(args, "--"+name, strings.Trim(value, "'"))
	}
	return args
}
