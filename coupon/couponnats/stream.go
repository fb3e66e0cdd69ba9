package couponnats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tallystick/tallystick/shard"
)

// What the queue is made of. Names are for ever.
const (
	eventStream  = "TALLYSTICK_COUPON_EVENTS"
	eventSubject = "tallystick.coupon.events" // and the shard
	deadStream   = "TALLYSTICK_COUPON_DEAD"
	deadSubject  = "tallystick.coupon.dead" // and the reader
)

// Of a reader. What waits for its next try counts as unacknowledged, so a few
// must not keep all others back: a process bounds what it works on itself.
const (
	ackWait   = time.Minute
	maxUnacks = 20_000
)

func subjectOf(at shard.Shard) string { return fmt.Sprintf("%s.%02d", eventSubject, at) }

// prepare makes or changes the streams and the readers. A stream keeps what some
// reader has not acknowledged, and has no age: it would drop work.
func (q *Queue) prepare(ctx context.Context) error {
	events := jetstream.StreamConfig{
		Name: eventStream, Description: "What happened to coupons.", Subjects: []string{eventSubject + ".*"},
		Retention: jetstream.InterestPolicy, Discard: jetstream.DiscardNew, MaxBytes: q.o.MaxBytes,
		Storage: jetstream.FileStorage, Replicas: max(1, q.o.Replicas), Duplicates: duplicates,
	}
	dead := events
	dead.Name, dead.Description = deadStream, "What readers of coupon events could not handle."
	dead.Subjects, dead.Retention, dead.MaxBytes = []string{deadSubject + ".*"}, jetstream.LimitsPolicy, deadMaxBytes
	for _, config := range []jetstream.StreamConfig{dead, events} {
		if err := q.prepareStream(ctx, config); err != nil {
			return err
		}
	}
	for _, name := range q.o.Readers {
		if _, err := q.reader(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) prepareStream(ctx context.Context, config jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if _, err := q.js.CreateOrUpdateStream(ctx, config); err != nil {
		return fmt.Errorf("couponnats: stream %s: %w", config.Name, err)
	}
	return nil
}

// reader makes or changes a reader.
func (q *Queue) reader(ctx context.Context, name string) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := q.js.CreateOrUpdateConsumer(ctx, eventStream, jetstream.ConsumerConfig{
		Durable: name, DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: ackWait, MaxDeliver: -1, MaxAckPending: maxUnacks,
	})
	if err != nil {
		return nil, fmt.Errorf("couponnats: reader %s: %w", name, err)
	}
	return c, nil
}
