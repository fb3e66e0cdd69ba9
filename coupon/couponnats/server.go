package couponnats

import (
	"errors"
	"fmt"
	"io/fs"
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
//
// A server whose folder was removed goes on and acknowledges what is on no disk:
// it is started again on a new one.
type host struct {
	options server.Options
	log     *slog.Logger

	mu     sync.Mutex
	lock   *flock.Flock   // of the folder
	folder os.FileInfo    // of its lock
	server *server.Server // nil: it is to be started
	stuck  stuckness
	closed bool
}

// newHost starts a server on a folder, which listens to nobody else. It has every
// message on the disk before it acknowledges: its default is to be there two
// minutes later.
func newHost(dir string, maxBytes int64, log *slog.Logger) (*host, error) {
	h := &host{log: log, options: server.Options{
		ServerName: "tallystick", DontListen: true, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: true, JetStreamMaxStore: maxBytes, JetStreamMaxMemory: 64 << 20,
	}}
	if err := h.hold(); err != nil {
		return nil, err
	}
	if err := h.start(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// hold makes the folder, if it is not there, and locks it. Whoever calls it has the
// host to itself.
func (h *host) hold() error {
	dir := h.options.StoreDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("couponnats: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockFile))
	if free, err := lock.TryLock(); err != nil || !free {
		return fmt.Errorf("couponnats: another process has the queue in %s: stop it first", dir)
	}
	folder, err := os.Stat(lock.Path())
	if err != nil {
		return errors.Join(fmt.Errorf("couponnats: %w", err), lock.Unlock())
	}
	h.lock, h.folder = lock, folder
	return nil
}

const lockFile = "lock"

// removed reports whether the folder, or what the server keeps in it, is gone.
func (h *host) removed() bool {
	now, err := os.Stat(filepath.Join(h.options.StoreDir, lockFile))
	if err == nil && !os.SameFile(now, h.folder) {
		return true
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(h.options.StoreDir, server.JetStreamStoreDir))
	}
	return errors.Is(err, fs.ErrNotExist)
}

// renew starts the server on a new folder if its own was removed, and reports
// whether it was.
func (h *host) renew() (removed bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.removed() {
		return false, nil
	}
	h.log.Warn("the folder of the queue of events was removed: a new one is made; wallets and lists of orders may lack what was in it", "folder", h.options.StoreDir)
	if h.server != nil {
		end(h.server)
		h.server = nil
	}
	if err := errors.Join(h.lock.Unlock(), h.hold()); err != nil {
		return true, err
	}
	return true, h.start()
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
