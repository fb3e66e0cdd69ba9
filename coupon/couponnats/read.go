package couponnats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/coupon"
)

// How a process reads.
const (
	inFlight      = 32               // messages that are being handled
	handleTimeout = 20 * time.Second // less than it takes until a message comes again
	rereadFirst   = 200 * time.Millisecond
	rereadLast    = 10 * time.Second
)

// A Handler handles a message, which may come in any order and more than once. An
// error makes it come again, as [coupon.Redeliver] says.
type Handler func(ctx context.Context, m coupon.Message) error

// Read gives the messages of a reader to handle, up to 32 at a time, until ctx
// ends. It then finishes those that it has given, and returns nil. Processes that
// read under the same name share the messages.
func (q *Queue) Read(ctx context.Context, name string, handle Handler) error {
	if q.stats[name] == nil {
		return fmt.Errorf("couponnats: reader %q is not one of %v, which the queue was opened with", name, q.o.Readers)
	}
	pause := rereadFirst
	for {
		began := time.Now()
		err := q.read(ctx, name, handle)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			pause = rereadFirst
		}
		q.o.Logger.Warn("events are not read", "reader", name, "error", err)
		if !sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, rereadLast)
	}
}

// read reads until ctx ends or something breaks.
func (q *Queue) read(ctx context.Context, name string, handle Handler) error {
	reader, err := q.reader(ctx, name)
	if err != nil {
		return err
	}
	messages, err := reader.Messages(jetstream.PullMaxMessages(inFlight))
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Drain)() // what it has already is finished
	var handling errgroup.Group
	defer handling.Wait()
	handling.SetLimit(inFlight)
	for {
		msg, err := messages.Next()
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			continue // it asks again itself
		}
		if err != nil {
			return err
		}
		if meta, err := msg.Metadata(); err == nil {
			q.count(name, func(s *coupon.ReaderStats) { s.Waiting = meta.NumPending })
		}
		handling.Go(func() error {
			q.deliver(context.WithoutCancel(ctx), name, msg, handle)
			return nil
		})
	}
}

// deliver handles a message and tells the queue what came of it.
func (q *Queue) deliver(ctx context.Context, name string, msg jetstream.Msg, handle Handler) {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	err := apply(ctx, msg.Data(), handle)
	if err == nil {
		q.count(name, func(s *coupon.ReaderStats) { s.Handled++ })
		err = msg.Ack()
	} else {
		err = q.fail(ctx, name, msg, err)
	}
	if err != nil { // it comes again, after ackWait
		q.o.Logger.Warn("queue of events not told what came of an event", "reader", name, "error", err)
	}
}

// fail tells the queue what is to become of a message that was not handled.
func (q *Queue) fail(ctx context.Context, name string, msg jetstream.Msg, why error) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	tries := int(min(meta.NumDelivered, 1<<30))
	pause, again := coupon.Redeliver(why, tries)
	if !again {
		return q.bury(ctx, name, msg, why, tries)
	}
	q.o.Logger.Debug("event comes again", "reader", name, "error", why, "tries", tries, "pause", pause)
	q.count(name, func(s *coupon.ReaderStats) { s.Retried++ })
	return msg.NakWithDelay(pause)
}

// apply decodes and handles a message. A handler that panics is one that fails.
func apply(ctx context.Context, text []byte, handle Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	m, err := coupon.DecodeMessage(text)
	if err != nil {
		return err
	}
	return handle(ctx, m)
}

// bury sets a message aside: it is written to the dead letters, and only then gone
// from the reader.
func (q *Queue) bury(ctx context.Context, name string, msg jetstream.Msg, why error, tries int) error {
	id := msg.Headers().Get(nats.MsgIdHdr)
	if meta, err := msg.Metadata(); err == nil && id == "" {
		id = fmt.Sprintf("no name, number %d", meta.Sequence.Stream)
	}
	letter := &nats.Msg{Subject: deadSubject + "." + name, Data: msg.Data(), Header: nats.Header{
		"Tallystick-Reader": {name}, "Tallystick-Subject": {msg.Subject()}, "Tallystick-Message": {id},
		"Tallystick-Reason": {oneLine(why)}, "Tallystick-Tries": {fmt.Sprint(tries)},
	}}
	if _, err := q.js.PublishMsg(ctx, letter, jetstream.WithMsgID(name+" "+id), jetstream.WithExpectStream(deadStream)); err != nil {
		return errors.Join(fmt.Errorf("write the dead letter of event %s: %w", id, err), msg.NakWithDelay(ackWait))
	}
	q.count(name, func(s *coupon.ReaderStats) { s.Dead++ })
	q.o.Logger.Error("event set aside as a dead letter", "reader", name, "event", id, "tries", tries, "error", why)
	return msg.Ack()
}

// oneLine returns an error as a header may have it.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return text[:min(len(text), 500)]
}

func (q *Queue) count(name string, change func(*coupon.ReaderStats)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change(q.stats[name])
}

// Stats returns how far each reader is, by name. It does not ask the server.
func (q *Queue) Stats() []coupon.ReaderStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []coupon.ReaderStats
	for _, s := range q.stats {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b coupon.ReaderStats) int { return strings.Compare(a.Reader, b.Reader) })
	return all
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
