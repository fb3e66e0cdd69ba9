package couponnats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tallystick/tallystick/coupon"
)

// Options of [Open].
type Options struct {
	// Dir is the folder of the server in this process, which makes it if it is not
	// there. One process has it at a time. Without URL it is required.
	Dir string
	// URL names servers elsewhere instead, like tls://nats.example.com:4222,
	// several with commas. It has no user and no password: those are in files.
	URL string
	// Credentials is a file with the credentials of the servers elsewhere, as
	// NATS's own tools write it. No log and no error has what is in it.
	Credentials string
	// CA is a file of certificates, PEM, that those of servers elsewhere are checked
	// with beside the system's.
	CA string
	// Replicas is on how many servers elsewhere a message is. Default 1; 3 in
	// production.
	Replicas int
	// Readers are the names of all who read, at least one, in letters, digits, - and
	// _. Each reads what is published from when it is first named here. One that is
	// named no more has to be removed from the queue, which otherwise keeps all
	// messages for it until it is full.
	Readers []string
	// MaxBytes is how much the queue keeps. Beyond it the queue refuses. Default
	// 4 GiB, about 5 million messages.
	MaxBytes int64
	// Logger is told of changes of state. nil: silent.
	Logger *slog.Logger
}

const (
	defaultMaxBytes = 4 << 30
	deadMaxBytes    = 1 << 30
	openTimeout     = 30 * time.Second // of the server: it reads what it has
	callTimeout     = 5 * time.Second
	duplicates      = 2 * time.Minute // for which the queue remembers names
)

// A Queue is open. It is safe for concurrent use.
type Queue struct {
	o    Options
	host *host // nil: the server is elsewhere
	conn *nats.Conn
	js   jetstream.JetStream
	bare atomic.Bool // the folder is a new one: what is needed in it is to be made

	mu    sync.Mutex
	stats map[string]*coupon.ReaderStats
}

// Open opens the queue and makes, or changes, what is needed in it. It is to be
// closed after all that read and publish have ended.
func Open(ctx context.Context, o Options) (*Queue, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	q := &Queue{o: o, stats: make(map[string]*coupon.ReaderStats)}
	for _, name := range o.Readers {
		q.stats[name] = &coupon.ReaderStats{Reader: name}
	}
	if err := q.open(ctx); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// check refuses options that cannot be meant.
func (o Options) check() error {
	switch {
	case o.URL == "" && o.Dir == "":
		return errors.New("couponnats: neither Dir nor URL is given: where is the queue to be?")
	case o.URL == "" && (o.Credentials != "" || o.CA != "" || o.Replicas > 1):
		return errors.New("couponnats: credentials, certificates and replicas are for a URL: leave them out for the queue in this process")
	case len(o.Readers) == 0:
		return errors.New("couponnats: no readers are named: nothing that is published would be kept")
	}
	for _, name := range o.Readers {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return fmt.Errorf("couponnats: reader %q: want letters, digits, - and _", name)
		}
	}
	for one := range strings.SplitSeq(o.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err != nil || u.User != nil {
			return errors.New("couponnats: the URL is none, or has a user: give a URL without, and the credentials in a file")
		}
	}
	return nil
}

func (q *Queue) open(ctx context.Context) error {
	options := []nats.Option{
		nats.Name("tallystick"), nats.MaxReconnects(-1), nats.Timeout(callTimeout),
		nats.DisconnectErrHandler(q.disconnected), nats.ReconnectHandler(q.reconnected), nats.ErrorHandler(q.failed),
	}
	var err error
	if q.o.URL == "" {
		if q.host, err = newHost(q.o.Dir, q.o.MaxBytes+deadMaxBytes, q.o.Logger); err != nil {
			return err
		}
		options = append(options, nats.InProcessServer(q.host), nats.ReconnectWait(100*time.Millisecond))
	}
	if q.o.Credentials != "" {
		options = append(options, nats.UserCredentials(q.o.Credentials))
	}
	if q.o.CA != "" {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}), nats.RootCAs(q.o.CA))
	}
	if q.conn, err = nats.Connect(q.o.URL, options...); err != nil {
		return fmt.Errorf("couponnats: no connection to the queue: %w", err)
	}
	q.js, err = jetstream.New(q.conn, jetstream.WithDefaultTimeout(callTimeout), jetstream.WithPublishAsyncTimeout(callTimeout))
	if err != nil {
		return fmt.Errorf("couponnats: %w", err)
	}
	return q.prepare(ctx)
}

func (q *Queue) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		q.o.Logger.Warn("connection to the queue of events lost", "error", err)
	}
}

func (q *Queue) reconnected(*nats.Conn) { q.o.Logger.Info("connection to the queue of events is back") }

func (q *Queue) failed(_ *nats.Conn, _ *nats.Subscription, err error) {
	q.o.Logger.Warn("queue of events", "error", err)
}

// Close ends the connection and, where it is in this process, the server. It may
// be called again.
func (q *Queue) Close() error {
	if q.conn != nil {
		q.conn.Close()
	}
	if q.host != nil {
		return q.host.close()
	}
	return nil
}
