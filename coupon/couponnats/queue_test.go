package couponnats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
	"github.com/tallystick/tallystick/shard"
)

// open opens a queue that the test closes.
func open(t *testing.T, o couponnats.Options) *couponnats.Queue {
	t.Helper()
	if o.Dir == "" && o.URL == "" {
		o.Dir = t.TempDir()
	}
	if o.Readers == nil {
		o.Readers = []string{"wallet"}
	}
	q, err := couponnats.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// row returns the row of a message about a coupon of shard 5.
func row(n int, version uint32) coupon.OutboxRow {
	id := coupon.ID(n<<10 + 5)
	m := coupon.Message{Event: coupon.Event{Coupon: id, Version: version, Type: coupon.WasReserved}, Coupon: coupon.Coupon{ID: id, Version: version}}
	payload, err := m.Encode()
	if err != nil {
		panic(err)
	}
	return coupon.OutboxRow{Coupon: id, Version: version, Payload: payload}
}

func publish(t *testing.T, q *couponnats.Queue, rows ...coupon.OutboxRow) {
	t.Helper()
	acked, err := q.Publish(t.Context(), 5, rows)
	if err != nil || len(acked) != len(rows) {
		t.Fatalf("%d of %d published, %v", len(acked), len(rows), err)
	}
}

// A readerLog keeps what a reader was given.
type readerLog struct {
	mu    sync.Mutex
	names []string
	at    []time.Time
	grown chan struct{}
}

func newReaderLog() *readerLog { return &readerLog{grown: make(chan struct{}, 10_000)} }

func (l *readerLog) handle(_ context.Context, m coupon.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names, l.at = append(l.names, fmt.Sprintf("%d:%d", m.Coupon.ID, m.Coupon.Version)), append(l.at, time.Now())
	l.grown <- struct{}{}
	return nil
}

// await waits until it was given n messages and returns their names, sorted.
func (l *readerLog) await(t *testing.T, n int) []string {
	t.Helper()
	// One on its way to a reader when the server ends comes again after a minute.
	deadline := time.After(2*time.Minute + 30*time.Second)
	for {
		l.mu.Lock()
		names := slices.Clone(l.names)
		l.mu.Unlock()
		if len(names) >= n {
			slices.Sort(names)
			return names
		}
		select {
		case <-l.grown:
		case <-deadline:
			t.Fatalf("%d messages, want %d", len(names), n)
		}
	}
}

// awaitEach waits until each name was read at least once.
func (l *readerLog) awaitEach(t *testing.T, want []string) {
	t.Helper()
	for n := len(want); ; n++ {
		if got := slices.Compact(l.await(t, n)); slices.Equal(got, want) {
			return
		}
	}
}

// A logBuffer is written and read by several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// read runs a reader until the returned function is called.
func read(t *testing.T, q *couponnats.Queue, name string, handle couponnats.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Read(ctx, name, handle) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func TestEveryReaderHasEveryMessageOnce(t *testing.T) {
	q := open(t, couponnats.Options{Readers: []string{"wallet", "statistics"}})
	var rows []coupon.OutboxRow
	var want []string
	for i := range 300 {
		rows = append(rows, row(i+1, 2))
		want = append(want, rows[i].Name())
	}
	slices.Sort(want)
	publish(t, q, rows...)
	publish(t, q, rows[:100]...) // by a process that died before it could remove them
	for _, name := range []string{"wallet", "statistics"} {
		log := newReaderLog()
		stop := read(t, q, name, log.handle)
		if got := log.await(t, 300); !slices.Equal(got, want) {
			t.Errorf("%s got %v", name, got)
		}
		stop()
		if got := log.await(t, 300); len(got) != 300 {
			t.Errorf("%s: %d messages", name, len(got))
		}
	}
	for _, s := range q.Stats() {
		if s.Handled != 300 || s.Retried != 0 || s.Dead != 0 || s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
	}
}

func TestQueueHasWhatItHadBefore(t *testing.T) {
	o := couponnats.Options{Dir: t.TempDir()}
	q := open(t, o)
	publish(t, q, row(1, 2), row(2, 2))
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q = open(t, o)
	publish(t, q, row(2, 2), row(3, 2))
	log := newReaderLog()
	stop := read(t, q, "wallet", log.handle)
	log.await(t, 3)
	stop()
	if got := log.await(t, 3); len(got) != 3 {
		t.Errorf("read %v, want each once", got)
	}
}

func TestMessageComesAgainAfterAPause(t *testing.T) {
	q := open(t, couponnats.Options{})
	log := newReaderLog()
	failures := 2
	read(t, q, "wallet", func(ctx context.Context, m coupon.Message) error {
		log.handle(ctx, m)
		log.mu.Lock()
		defer log.mu.Unlock()
		if failures--; failures == 1 {
			return shard.ErrUnavailable
		} else if failures == 0 {
			panic("planted")
		}
		return nil
	})
	publish(t, q, row(1, 2))
	log.await(t, 3)
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second} {
		if pause := log.at[i+1].Sub(log.at[i]); pause < want {
			t.Errorf("try %d came after %v, want %v", i+2, pause, want)
		}
	}
}

// TestPoisonedMessageIsSetAside holds back nothing else.
func TestPoisonedMessageIsSetAside(t *testing.T) {
	var out logBuffer
	server := listening(t, nil)
	q := open(t, couponnats.Options{URL: server.ClientURL(), Logger: slog.New(slog.NewTextHandler(&out, nil))})
	poison := row(1, 2)
	poison.Payload = []byte("no message")
	log := newReaderLog()
	stop := read(t, q, "wallet", log.handle)
	publish(t, q, poison, row(2, 2))
	log.await(t, 1)

	conn, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	letters, err := js.SubscribeSync("tallystick.coupon.dead.*", nats.BindStream("TALLYSTICK_COUPON_DEAD"))
	if err != nil {
		t.Fatal(err)
	}
	letter, err := letters.NextMsg(30 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if string(letter.Data) != "no message" || letter.Header.Get("Tallystick-Message") != poison.Name() || letter.Header.Get("Tallystick-Tries") != "1" ||
		!strings.Contains(letter.Header.Get("Tallystick-Reason"), "not the message of an event") || letter.Subject != "tallystick.coupon.dead.wallet" {
		t.Errorf("letter %q on %s: %v", letter.Data, letter.Subject, letter.Header)
	}
	if s := q.Stats()[0]; s.Dead != 1 || s.Handled != 1 {
		t.Errorf("stats %+v", s)
	}
	if !strings.Contains(out.String(), "dead letter") {
		t.Errorf("log %s", &out)
	}
	info, err := js.StreamInfo("TALLYSTICK_COUPON_EVENTS")
	if err != nil || info.State.Msgs != 0 {
		t.Errorf("%+v, %v: want nothing left to read", info, err)
	}
}

// TestFullQueueRefuses holds that it drops nothing for what is new.
func TestFullQueueRefuses(t *testing.T) {
	q := open(t, couponnats.Options{MaxBytes: 64 << 10})
	var all []coupon.OutboxRow
	for i := range 1_000 {
		all = append(all, row(i+1, 2))
	}
	acked, err := q.Publish(t.Context(), 5, all)
	if err == nil || len(acked) == 0 || len(acked) == len(all) {
		t.Fatalf("%d of %d published, %v", len(acked), len(all), err)
	}
	log := newReaderLog()
	read(t, q, "wallet", log.handle)
	log.await(t, len(acked))
	left := slices.DeleteFunc(slices.Clone(all), func(r coupon.OutboxRow) bool {
		return slices.ContainsFunc(acked, func(a coupon.OutboxRow) bool { return a.Name() == r.Name() })
	})
	for begin := time.Now(); len(left) > 0; {
		some, err := q.Publish(t.Context(), 5, left[:min(100, len(left))])
		if len(some) == 0 && time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
		left = slices.DeleteFunc(left, func(r coupon.OutboxRow) bool {
			return slices.ContainsFunc(some, func(a coupon.OutboxRow) bool { return a.Name() == r.Name() })
		})
	}
	if got := slices.Compact(log.await(t, len(all))); len(got) != len(all) {
		t.Errorf("%d messages read, want %d", len(got), len(all))
	}
}

func TestOneProcessHasTheFolder(t *testing.T) {
	o := couponnats.Options{Dir: t.TempDir()}
	open(t, o)
	o.Readers = []string{"wallet"}
	want := "couponnats: another process has the queue in " + o.Dir + ": stop it first"
	if _, err := couponnats.Open(t.Context(), o); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	const secret = "hunter2"
	for name, o := range map[string]couponnats.Options{
		"nowhere":             {Readers: []string{"a"}},
		"no readers":          {Dir: "x"},
		"name of a reader":    {Dir: "x", Readers: []string{"a.b"}},
		"credentials here":    {Dir: "x", Readers: []string{"a"}, Credentials: secret},
		"password in the URL": {URL: "nats://a,nats://me:" + secret + "@host", Readers: []string{"a"}},
		"URL that is none":    {URL: "nats://me:" + secret + "@ho st:%", Readers: []string{"a"}},
	} {
		_, err := couponnats.Open(t.Context(), o)
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownReader(t *testing.T) {
	q := open(t, couponnats.Options{})
	if err := q.Read(t.Context(), "other", newReaderLog().handle); err == nil || !strings.Contains(err.Error(), `reader "other" is not one of [wallet]`) {
		t.Errorf("error %v", err)
	}
}

// TestPublishEndsInTime: with the server gone it returns with nothing.
func TestPublishEndsInTime(t *testing.T) {
	q := open(t, couponnats.Options{})
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	acked, err := q.Publish(t.Context(), 5, []coupon.OutboxRow{row(1, 2)})
	if err == nil || len(acked) > 0 || errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", acked, err)
	}
}
