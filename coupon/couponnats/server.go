package couponnats

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// A host runs the server in this process. A server whose disk was full once takes
// nothing for ever, so the host starts it again. The connection, which asks the
// host for the server, comes back by itself.
type host struct {
	options server.Options
	log     *slog.Logger
	lock    *flock.Flock // of the folder

	mu     sync.Mutex
	server *server.Server // nil: it is to be started
	stuck  stuckness
	closed bool
}

// newHost starts a server on a folder, which listens to nobody else. It has every
// message on the disk before it acknowledges: its default is to be there two
// minutes later.
func newHost(dir string, maxBytes int64, log *slog.Logger) (*host, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("couponnats: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if free, err := lock.TryLock(); err != nil || !free {
		return nil, fmt.Errorf("couponnats: another process has the queue in %s: stop it first", dir)
	}
	h := &host{log: log, lock: lock, options: server.Options{
		ServerName: "tallystick", DontListen: true, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: true, JetStreamMaxStore: maxBytes, JetStreamMaxMemory: 64 << 20,
	}}
	if err := h.start(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// start starts the server. Whoever calls it has the host to itself.
func (h *host) start() error {
	options := h.options // the server changes its own
	s, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("couponnats: queue in %s: %w", h.options.StoreDir, err)
	}
	s.SetLogger(serverLog{h.log}, false, false)
	s.Start()
	if s.ReadyForConnections(openTimeout) && s.JetStreamEnabled() {
		h.server = s
		return nil
	}
	end(s)
	return fmt.Errorf("couponnats: the server could not open what it has in %s: its log says why", h.options.StoreDir)
}

// InProcessConn returns a connection to the server as it is now.
func (h *host) InProcessConn() (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == nil {
		return nil, errors.New("couponnats: the server in this process does not run")
	}
	return h.server.InProcessConn()
}

// note is told whether the server answered. It starts it again if it is stuck.
func (h *host) note(answered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.stuck.note(answered, time.Now()) {
		return
	}
	h.log.Warn("the server of the queue of events takes nothing: it is started again")
	if h.server != nil {
		end(h.server)
		h.server = nil
	}
	if err := h.start(); err != nil {
		h.log.Warn("the server of the queue of events cannot start", "error", err)
	}
}

func (h *host) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.server != nil {
		end(h.server)
		h.server = nil
	}
	return h.lock.Unlock()
}

func end(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// When a server that answers nothing is started again.
const (
	stuckAfter   = 8 * time.Second
	restartAfter = 30 * time.Second // the last time
)

// A stuckness is since when a server has not answered.
type stuckness struct{ since, restarted time.Time }

// note reports whether the server is to be started again.
func (s *stuckness) note(answered bool, now time.Time) bool {
	if answered {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < stuckAfter || !s.restarted.IsZero() && now.Sub(s.restarted) < restartAfter {
		return false
	}
	s.since, s.restarted = time.Time{}, now
	return true
}

// A serverLog has the server's troubles; what it does all day it says to nobody.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Warnf(format string, v ...any)  { l.say(format, v) }
func (l serverLog) Errorf(format string, v ...any) { l.say(format, v) }
func (l serverLog) Fatalf(format string, v ...any) { l.say(format, v) }
func (serverLog) Noticef(string, ...any)           {}
func (serverLog) Debugf(string, ...any)            {}
func (serverLog) Tracef(string, ...any)            {}

func (l serverLog) say(format string, v []any) {
	l.log.Warn("server of the queue of events", "says", fmt.Sprintf(format, v...))
}
