package coupon_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

var errBroken = errors.New("broken")

// A queueLog is a queue that keeps the names of what it got, in their order.
type queueLog struct {
	mu     sync.Mutex
	names  []string
	at     []time.Time
	refuse func(name string) bool // nil: nothing
}

func (q *queueLog) Publish(_ context.Context, _ shard.Shard, rows []coupon.OutboxRow) (acked []coupon.OutboxRow, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range rows {
		if q.refuse != nil && q.refuse(r.Name()) {
			err = errBroken
			continue
		}
		q.names, q.at, acked = append(q.names, r.Name()), append(q.at, time.Now()), append(acked, r)
	}
	return acked, err
}

func (q *queueLog) got() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.names)
}

// said makes a message about a coupon of a shard.
func said(at shard.Shard, n int, version uint32) coupon.Message {
	id := coupon.ID(n<<10) + coupon.ID(at)
	e := coupon.Event{Coupon: id, Version: version, Type: coupon.WasReserved, At: time.Now()}
	return coupon.Message{Event: e, Coupon: coupon.Coupon{ID: id, Version: version}}
}

func nameOf(m coupon.Message) string { return fmt.Sprintf("%d:%d", m.Coupon.ID, m.Coupon.Version) }

// running runs a relay until stop is called.
func running(o coupon.Outbox, q coupon.Publisher) (r *coupon.Relay, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r = coupon.NewRelay(o, q, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	return r, func() { cancel(); <-ended }
}

func expect(t *testing.T, q *queueLog, want ...string) {
	t.Helper()
	got := q.got()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
}

func TestRelayPublishesWhatIsWokenAtOnceAndTheRestByPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		r, stop := running(o, q)
		defer stop()
		time.Sleep(time.Minute + time.Second) // between two polls
		woken, polled := said(3, 1, 2), said(4, 1, 2)
		begin := time.Now()
		o.Put(woken)
		o.Put(polled)
		r.Wake(3)
		r.Wake(3)
		time.Sleep(20 * time.Millisecond)
		expect(t, q, nameOf(woken))
		time.Sleep(2 * time.Second)
		expect(t, q, nameOf(woken), nameOf(polled))
		if late := q.at[0].Sub(begin); late != 10*time.Millisecond {
			t.Errorf("published %v after the wake-up", late)
		}
	})
}

// TestIdleRelay holds that nothing is written for shards where nothing happens.
func TestIdleRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		steps := map[string]int{}
		o := &coupontest.Outbox{Before: func(step string) error {
			mu.Lock()
			defer mu.Unlock()
			steps[step]++
			return nil
		}}
		_, stop := running(o, new(queueLog))
		time.Sleep(time.Minute - time.Second)
		stop()
		if steps["oldest"] != 30*shard.Count || len(steps) > 1 {
			t.Errorf("in a minute %v, want 30 reads a shard and no more", steps)
		}
	})
}

func TestRelayGoesThroughALongOutboxInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		var want []string
		for i := range 1_234 {
			m := said(6, i+1, 3)
			o.Put(m)
			want = append(want, nameOf(m))
		}
		r, stop := running(o, q)
		defer stop()
		synctest.Wait()
		expect(t, q, want...)
		s := r.Stats()[6]
		if s.Published != 1_234 || s.Waiting != 0 || s.Age != 0 || !s.Leased || s.Failed != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestRelayKeepsWhatTheQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		poison, good := said(1, 1, 2), said(1, 2, 2)
		refused := true
		q.refuse = func(name string) bool { return refused && name == nameOf(poison) }
		o.Put(poison)
		o.Put(good)
		r, stop := running(o, q)
		defer stop()
		time.Sleep(time.Minute)
		expect(t, q, nameOf(good))
		s := r.Stats()[1]
		if s.Waiting != 1 || s.Age < 45*time.Second || s.Failed < 6 || s.Failed > 15 {
			t.Errorf("stats %+v, want one row that waits, tried at growing intervals", s)
		}
		q.mu.Lock()
		refused = false
		q.mu.Unlock()
		time.Sleep(11 * time.Second)
		expect(t, q, nameOf(good), nameOf(poison))
		if s := r.Stats()[1]; s.Waiting != 0 || s.Age != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// TestRowsThatBecomeVisibleLate: a transaction that read the clock first may commit
// last.
func TestRowsThatBecomeVisibleLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		_, stop := running(o, q)
		defer stop()
		first, second := said(9, 1, 2), said(9, 2, 2)
		o.Put(second)
		time.Sleep(3 * time.Second)
		o.Put(first)
		time.Sleep(3 * time.Second)
		expect(t, q, nameOf(first), nameOf(second))
	})
}

// TestRelayDiesBetweenSteps has a process end for good at each step, once it has
// got there, and another go on.
func TestRelayDiesBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		step  string
		times int // each message is published
	}{{"oldest", 1}, {"lease", 1}, {"remove", 2}} {
		t.Run(c.step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, q := new(coupontest.Outbox), new(queueLog)
				a, b := said(2, 1, 2), said(2, 2, 5)
				o.Put(a)
				o.Put(b)
				o.Before = func(step string) error {
					if step == c.step {
						return errBroken
					}
					return nil
				}
				first, stop := running(o, q)
				synctest.Wait()
				stop()
				if first.Stats()[2].Failed == 0 {
					t.Fatal("the first one did not get there")
				}
				o.Before = nil
				_, stop = running(o, q)
				defer stop()
				time.Sleep(time.Minute)
				expect(t, q, slices.Repeat([]string{nameOf(a), nameOf(b)}, c.times)...)
				if rows, _ := o.Oldest(t.Context(), 2, 10); len(rows) > 0 {
					t.Errorf("%d rows are left", len(rows))
				}
			})
		})
	}
}

// TestOneRelayAtATime has two; the lease goes to the other when its holder ends.
func TestOneRelayAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		a, stopA := running(o, q)
		o.Put(said(5, 1, 2))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		b, stopB := running(o, q)
		defer stopB()
		for i := range 20 {
			o.Put(said(5, 2+i, 2))
			b.Wake(5)
			a.Wake(5)
			time.Sleep(100 * time.Millisecond)
		}
		if s := b.Stats()[5]; s.Published > 0 || s.Leased {
			t.Errorf("the second one published beside the first: %+v", s)
		}
		stopA()
		o.Put(said(5, 100, 2))
		time.Sleep(20 * time.Second)
		if s := b.Stats()[5]; s.Published != 1 || !s.Leased {
			t.Errorf("the second one does not go on: %+v", s)
		}
		if got := q.got(); len(got) != 22 {
			t.Errorf("%d messages, want 22", len(got))
		}
	})
}

// TestRelayThatWasPaused has one that publishes so slowly that its lease is over.
func TestRelayThatWasPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		m := said(5, 1, 2)
		o.Put(m)
		slow := publisherFunc(func(ctx context.Context, at shard.Shard, rows []coupon.OutboxRow) ([]coupon.OutboxRow, error) {
			time.Sleep(time.Minute) // whatever ctx says: the whole process stood still
			return q.Publish(ctx, at, rows)
		})
		paused, stop := running(o, slow)
		defer stop()
		time.Sleep(time.Second)
		_, stopOther := running(o, q)
		defer stopOther()
		time.Sleep(2 * time.Minute)
		expect(t, q, nameOf(m), nameOf(m))
		if s := paused.Stats()[5]; s.Lost != 1 || s.Published != 0 {
			t.Errorf("stats %+v, want a lease that was lost", s)
		}
	})
}

// TestSlowQueue takes 100 messages a second, of which all shards have too many.
// Nothing is late and nothing comes twice.
func TestSlowQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := new(coupontest.Outbox), new(queueLog)
		var want []string
		for i := range 32 * 50 {
			m := said(shard.Shard(i%32), i+1, 2)
			o.Put(m)
			want = append(want, nameOf(m))
		}
		disk := make(chan struct{}, 1)
		r, stop := running(o, publisherFunc(func(ctx context.Context, at shard.Shard, rows []coupon.OutboxRow) (acked []coupon.OutboxRow, err error) {
			for _, row := range rows {
				select {
				case disk <- struct{}{}:
					time.Sleep(10 * time.Millisecond)
					<-disk
				case <-ctx.Done():
					return acked, ctx.Err()
				}
				one, _ := q.Publish(ctx, at, []coupon.OutboxRow{row})
				acked = append(acked, one...)
			}
			return acked, nil
		}))
		defer stop()
		time.Sleep(time.Minute)
		expect(t, q, want...)
		for _, s := range r.Stats() {
			if s.Failed > 0 || s.Published != 50 {
				t.Errorf("stats %+v", s)
			}
		}
	})
}

type publisherFunc func(context.Context, shard.Shard, []coupon.OutboxRow) ([]coupon.OutboxRow, error)

func (f publisherFunc) Publish(ctx context.Context, at shard.Shard, rows []coupon.OutboxRow) ([]coupon.OutboxRow, error) {
	return f(ctx, at, rows)
}

// A storeFunc is a store that writes as it says.
type storeFunc struct {
	coupon.Store
	write func() error
}

func (s storeFunc) Write(context.Context, shard.Key, func(coupon.Tx) error) error { return s.write() }

func TestAnnounceWakesTheShardThatWasWritten(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{{nil, 1}, {fmt.Errorf("x: %w", shard.ErrUnknown), 1}, {shard.ErrBusy, 0}} {
		var woken []shard.Shard
		s := coupon.Announce(storeFunc{write: func() error { return c.err }}, func(at shard.Shard) { woken = append(woken, at) })
		if err := s.Write(t.Context(), coupon.ID(1<<10+7), nil); err != c.err {
			t.Errorf("error %v, want %v", err, c.err)
		}
		if len(woken) != c.want || c.want > 0 && woken[0] != 7 {
			t.Errorf("after %v it woke %v", c.err, woken)
		}
	}
}
