package couponnats

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// serve starts a server in this process, which listens to nobody else. It has
// every message on the disk before it acknowledges: its default is to be there two
// minutes later.
func (q *Queue) serve() error {
	if err := os.MkdirAll(q.o.Dir, 0o700); err != nil {
		return fmt.Errorf("couponnats: %w", err)
	}
	q.lock = flock.New(filepath.Join(q.o.Dir, "lock"))
	if free, err := q.lock.TryLock(); err != nil || !free {
		q.lock = nil
		return fmt.Errorf("couponnats: another process has the queue in %s: stop it first", q.o.Dir)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "tallystick", DontListen: true, NoSigs: true,
		JetStream: true, StoreDir: q.o.Dir, SyncAlways: true,
		JetStreamMaxStore: q.o.MaxBytes + deadMaxBytes, JetStreamMaxMemory: 64 << 20,
	})
	if err != nil {
		return fmt.Errorf("couponnats: queue in %s: %w", q.o.Dir, err)
	}
	q.server = s
	s.SetLogger(serverLog{q.o.Logger}, false, false)
	s.Start()
	if !s.ReadyForConnections(openTimeout) {
		return fmt.Errorf("couponnats: queue in %s: the server was not ready after %v", q.o.Dir, openTimeout)
	}
	if !s.JetStreamEnabled() {
		return errors.New("couponnats: the server could not open what it has in " + q.o.Dir + ": its log says why")
	}
	return nil
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
