package couponnats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var _ coupon.Publisher = (*Queue)(nil)

// Publish hands rows to the queue and returns those that it has, on disk where the
// server is in this process. Of those it does not return it may have some.
func (q *Queue) Publish(ctx context.Context, at shard.Shard, rows []coupon.OutboxRow) (acked []coupon.OutboxRow, err error) {
	if err := q.restore(ctx); err != nil {
		return nil, err
	}
	futures := make([]jetstream.PubAckFuture, len(rows))
	for i, r := range rows {
		msg := &nats.Msg{Subject: subjectOf(at), Data: r.Payload}
		futures[i], err = q.js.PublishMsgAsync(msg, jetstream.WithMsgID(r.Name()), jetstream.WithExpectStream(eventStream))
		if err != nil {
			err = fmt.Errorf("message %s: %w", r.Name(), err)
			futures, rows = futures[:i], rows[:i]
			break
		}
	}
	failed, answered := 0, false
	for i, f := range futures {
		why := awaitAck(ctx, f)
		answered = answered || isAnswer(why)
		if why == nil {
			acked = append(acked, rows[i])
		} else if failed++; failed == 1 { // one is enough to know
			err = errors.Join(err, fmt.Errorf("message %s: %w", rows[i].Name(), why))
		}
	}
	if q.host != nil && !errors.Is(ctx.Err(), context.Canceled) {
		q.host.note(answered)
	}
	return acked, err
}

// restore makes the queue anew where its folder was removed.
func (q *Queue) restore(ctx context.Context) error {
	if q.host == nil {
		return nil
	}
	removed, err := q.host.renew()
	if removed {
		q.bare.Store(true)
	}
	if err != nil || !q.bare.Load() {
		return err
	}
	if err := q.prepare(ctx); err != nil {
		return err
	}
	q.bare.Store(false)
	return q.conn.ForceReconnect() // readers, which asked before it was there, ask again
}

// isAnswer reports whether the queue said something: a refusal is an answer.
func isAnswer(err error) bool {
	_, refused := errors.AsType[*jetstream.APIError](err)
	return err == nil || refused
}

// awaitAck waits for the queue's answer, which comes, or is given up, in a bounded
// time.
func awaitAck(ctx context.Context, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
