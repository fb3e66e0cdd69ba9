package coupontest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// An OutboxSubject is what the suite of outboxes is run on.
type OutboxSubject struct {
	coupon.Outbox
	// Put has the shard of the coupon, which is new, leave one message.
	Put func(t *testing.T, c coupon.Coupon)
}

// TestOutbox runs the suite: every method of [coupon.Outbox]. No shard has rows or
// a lease when it begins.
func TestOutbox(t *testing.T, s OutboxSubject) {
	t.Run("rows", func(t *testing.T) { testOutboxRows(t, s) })
	t.Run("lease", func(t *testing.T) { testOutboxLease(t, s) })
	t.Run("lease lost", func(t *testing.T) { testOutboxLeaseLost(t, s) })
}

const ttl = time.Minute

func testOutboxRows(t *testing.T, s OutboxSubject) {
	at, other := shard.Shard(3), shard.Shard(4)
	fresh := newStoreTest(t, nil)
	var want []coupon.Coupon
	for range 5 {
		want = append(want, fresh.coupon(at))
		s.Put(t, want[len(want)-1])
	}
	s.Put(t, fresh.coupon(other))
	rows := s.oldest(t, at, 3)
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3", len(rows))
	}
	for i, r := range rows {
		m, err := coupon.DecodeMessage(r.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if r.Coupon != want[i].ID || r.Version != 1 || m.Coupon.ID != want[i].ID || m.Event.Type != coupon.WasGenerated || !r.At().Equal(want[i].Created) {
			t.Errorf("row %d is %+v of %v, want coupon %d", i, r, m, want[i].ID)
		}
	}
	s.waiting(t, at, 100, 5)
	s.waiting(t, at, 2, 2)

	lease := s.lease(t, at, "a", true)
	s.remove(t, at, lease, []coupon.OutboxRow{rows[2], rows[0]}, nil)
	s.waiting(t, at, 100, 3)
	if left := s.oldest(t, at, 10); left[0].Coupon != want[1].ID || left[1].Coupon != want[3].ID {
		t.Errorf("left are %+v", left)
	}
	s.remove(t, at, lease, rows, nil) // some are gone
	s.remove(t, at, lease, s.oldest(t, at, 10), nil)
	s.remove(t, at, lease, nil, nil)
	if left := s.oldest(t, at, 10); len(left) > 0 {
		t.Errorf("left are %+v", left)
	}
	s.waiting(t, other, 100, 1)
	last := fresh.coupon(at)
	s.Put(t, last)
	if next := s.oldest(t, at, 10); len(next) != 1 || next[0].Coupon != last.ID {
		t.Errorf("left are %+v, want coupon %d", next, last.ID)
	}
}

func testOutboxLease(t *testing.T, s OutboxSubject) {
	at := shard.Shard(7)
	first := s.lease(t, at, "a", true)
	if again := s.lease(t, at, "a", true); again.Epoch != first.Epoch || again.Until.Before(first.Until) {
		t.Errorf("renewed %+v to %+v", first, again)
	}
	s.lease(t, at, "b", false)
	s.lease(t, shard.Shard(8), "b", true) // another shard's is another
	if _, mine, err := s.Lease(t.Context(), at, "a", -time.Second); err != nil || !mine {
		t.Fatal(mine, err) // over at once
	}
	if next := s.lease(t, at, "b", true); next.Epoch != first.Epoch+1 || next.Token != "b" {
		t.Errorf("lease %+v after %+v", next, first)
	}
	s.lease(t, at, "a", false)

	won := together(t, 8, func(i int) (bool, error) {
		_, mine, err := s.Lease(t.Context(), shard.Shard(9), string(rune('a'+i)), ttl)
		if err != nil { // of those who come at the same time some may have to wait
			return false, nil
		}
		return mine, nil
	})
	if won != 1 {
		t.Errorf("%d have the lease of one shard", won)
	}
}

// testOutboxLeaseLost has a holder that was paused.
func testOutboxLeaseLost(t *testing.T, s OutboxSubject) {
	at := shard.Shard(11)
	s.Put(t, newStoreTest(t, nil).coupon(at))
	rows := s.oldest(t, at, 10)
	s.remove(t, at, coupon.RelayLease{Token: "a", Epoch: 1}, rows, coupon.ErrLeaseLost)
	old, _, err := s.Lease(t.Context(), at, "a", -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s.lease(t, at, "b", true)
	s.remove(t, at, old, rows, coupon.ErrLeaseLost)
	s.waiting(t, at, 10, 1)

	if _, _, err = s.Lease(t.Context(), at, "b", -time.Second); err != nil {
		t.Fatal(err)
	}
	again := s.lease(t, at, "a", true)
	s.remove(t, at, old, rows, coupon.ErrLeaseLost) // of the same holder, from before
	s.remove(t, at, again, rows, nil)
	s.waiting(t, at, 10, 0)
}

func (s OutboxSubject) oldest(t *testing.T, at shard.Shard, n int) []coupon.OutboxRow {
	t.Helper()
	rows, err := s.Oldest(t.Context(), at, n)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (s OutboxSubject) waiting(t *testing.T, at shard.Shard, most, want int) {
	t.Helper()
	if n, err := s.Waiting(t.Context(), at, most); err != nil || n != want {
		t.Errorf("%d rows of at most %d wait, %v; want %d", n, most, err, want)
	}
}

func (s OutboxSubject) lease(t *testing.T, at shard.Shard, token string, want bool) coupon.RelayLease {
	t.Helper()
	l, mine, err := s.Lease(t.Context(), at, token, ttl)
	if err != nil || mine != want {
		t.Fatalf("leased to %s: %v, %v; want %v", token, mine, err, want)
	}
	return l
}

func (s OutboxSubject) remove(t *testing.T, at shard.Shard, l coupon.RelayLease, rows []coupon.OutboxRow, want error) {
	t.Helper()
	wantErr(t, s.Remove(t.Context(), at, l, rows, ttl), want)
}

// An Outbox is a [coupon.Outbox] in memory. The zero value has no rows. It may be
// used within a bubble of synctest.
type Outbox struct {
	// Before is called before each step, which is oldest, lease or remove, and may
	// fail it. nil: nothing is.
	Before func(step string) error

	mu     sync.Mutex
	shards [shard.Count]outboxShard
}

type outboxShard struct {
	rows  []coupon.OutboxRow
	lease coupon.RelayLease
}

// Put leaves a message, in no transaction.
func (o *Outbox) Put(m coupon.Message) {
	payload, err := m.Encode()
	if err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.shards[m.Coupon.ID.Shard()]
	s.rows = append(s.rows, coupon.OutboxRow{Coupon: m.Coupon.ID, Version: m.Coupon.Version, Payload: payload})
	slices.SortFunc(s.rows, func(a, b coupon.OutboxRow) int {
		return cmp.Or(a.At().Compare(b.At()), cmp.Compare(a.Coupon, b.Coupon), cmp.Compare(a.Version, b.Version))
	})
}

func (o *Outbox) enter(step string) error {
	if o.Before == nil {
		return nil
	}
	return o.Before(step)
}

// Oldest returns up to n rows, those of the oldest events.
func (o *Outbox) Oldest(_ context.Context, at shard.Shard, n int) ([]coupon.OutboxRow, error) {
	if err := o.enter("oldest"); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	rows := o.shards[at].rows
	return slices.Clone(rows[:min(n, len(rows))]), nil
}

// Waiting counts the rows of a shard, up to max.
func (o *Outbox) Waiting(_ context.Context, at shard.Shard, max int) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(max, len(o.shards[at].rows)), nil
}

// Lease gives the relay of a shard to the holder of a token.
func (o *Outbox) Lease(_ context.Context, at shard.Shard, token string, ttl time.Duration) (coupon.RelayLease, bool, error) {
	if err := o.enter("lease"); err != nil {
		return coupon.RelayLease{}, false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next, mine := o.shards[at].lease.Take(token, time.Now(), ttl)
	o.shards[at].lease = next
	return next, mine, nil
}

// Remove removes rows and renews the lease.
func (o *Outbox) Remove(_ context.Context, at shard.Shard, lease coupon.RelayLease, rows []coupon.OutboxRow, ttl time.Duration) error {
	if err := o.enter("remove"); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.shards[at]
	if s.lease.Epoch == 0 || s.lease.Epoch != lease.Epoch || s.lease.Token != lease.Token {
		return coupon.ErrLeaseLost
	}
	s.lease.Until = time.Now().Add(ttl)
	s.rows = slices.DeleteFunc(s.rows, func(r coupon.OutboxRow) bool {
		return slices.ContainsFunc(rows, func(gone coupon.OutboxRow) bool { return gone.Name() == r.Name() })
	})
	return nil
}
