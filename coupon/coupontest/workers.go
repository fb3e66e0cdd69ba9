// Package coupontest has what tests of coupons need: stores in memory and the
// suites that every store passes.
package coupontest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// Workers keeps leases of worker numbers in memory. It is safe for concurrent
// use; the zero Workers is empty.
type Workers struct {
	Clock func() time.Time // the database's; nil: time.Now

	mu   sync.Mutex
	rows map[uint8]coupon.Worker
}

var _ coupon.Workers = (*Workers)(nil)

// Workers returns all rows and the clock.
func (w *Workers) Workers(ctx context.Context) ([]coupon.Worker, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rows []coupon.Worker
	for _, row := range w.rows {
		rows = append(rows, row)
	}
	if w.Clock != nil {
		return rows, w.Clock(), ctx.Err()
	}
	return rows, time.Now(), ctx.Err()
}

// SwapWorker writes next if the row equals old.
func (w *Workers) SwapWorker(ctx context.Context, old, next coupon.Worker) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	row, there := w.rows[next.Number]
	if there != (old.HighWater != 0) || there && row != old {
		return false, nil
	}
	w.put(next)
	return true, nil
}

// Put writes a row whatever is there.
func (w *Workers) Put(row coupon.Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(row)
}

func (w *Workers) put(row coupon.Worker) {
	if w.rows == nil {
		w.rows = map[uint8]coupon.Worker{}
	}
	w.rows[row.Number] = row
}

// Row returns the row of a number, and the zero row if there is none.
func (w *Workers) Row(number uint8) coupon.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[number]
}

// TestWorkers checks that what open returns, which has no rows, keeps leases as
// [coupon.Workers] demands.
func TestWorkers(t *testing.T, open func(t *testing.T) coupon.Workers) {
	t.Run("AddedOnce", func(t *testing.T) { addedOnce(t, open(t)) })
	t.Run("SwappedOnlyIfEqual", func(t *testing.T) { swappedOnlyIfEqual(t, open(t)) })
	t.Run("GivenBackAndTakenAgain", func(t *testing.T) { givenBack(t, open(t)) })
	t.Run("OneOfManyWins", func(t *testing.T) { oneOfManyWins(t, open(t)) })
	t.Run("ClockGoesOn", func(t *testing.T) { clockGoesOn(t, open(t)) })
}

// The rows of the suite. No collation may take one token for the other.
var (
	leased = coupon.Worker{Number: 255, Token: "K7Q2ABCDEFGHIJKLMNOPQRSTUVWXYZ23", HighWater: 1<<42 + 1}
	other  = coupon.Worker{Number: 255, Token: "k7q2abcdefghijklmnopqrstuvwxyz23", HighWater: 1<<42 + 1}
	third  = coupon.Worker{Number: 0, Token: "T", HighWater: 1_704_067_200_001}
)

func addedOnce(t *testing.T, w coupon.Workers) {
	wantRows(t, w)
	swap(t, w, coupon.Worker{Number: 255}, leased, true)
	swap(t, w, coupon.Worker{Number: 255}, other, false)
	swap(t, w, coupon.Worker{Number: 0}, third, true)
	wantRows(t, w, leased, third)
}

func swappedOnlyIfEqual(t *testing.T, w coupon.Workers) {
	renewed := leased
	renewed.HighWater++
	swap(t, w, leased, renewed, false) // there is no row
	wantRows(t, w)
	swap(t, w, coupon.Worker{Number: 255}, leased, true)
	swap(t, w, other, renewed, false)
	swap(t, w, renewed, other, false)
	swap(t, w, coupon.Worker{Number: 255, HighWater: leased.HighWater}, renewed, false)
	wantRows(t, w, leased)
	swap(t, w, leased, renewed, true)
	swap(t, w, leased, renewed, false)
	wantRows(t, w, renewed)
	swap(t, w, renewed, renewed, true) // changes nothing, and is no failure
}

func givenBack(t *testing.T, w coupon.Workers) {
	back := coupon.Worker{Number: 255, HighWater: leased.HighWater - 1000}
	swap(t, w, coupon.Worker{Number: 255}, leased, true)
	swap(t, w, leased, back, true)
	wantRows(t, w, back)
	swap(t, w, coupon.Worker{Number: 255}, leased, false)
	swap(t, w, back, other, true)
	wantRows(t, w, other)
}

func oneOfManyWins(t *testing.T, w coupon.Workers) {
	for range 2 { // first there is no row, then there is
		rows, _, err := w.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old := coupon.Worker{Number: 9}
		if len(rows) > 0 {
			old = rows[0]
		}
		if won := winners(t, w, old); won != 1 {
			t.Errorf("%d of 16 swaps of the same row won", won)
		}
	}
}

// winners counts which of 16 swaps of old at the same time succeed.
func winners(t *testing.T, w coupon.Workers, old coupon.Worker) int64 {
	var all sync.WaitGroup
	var won atomic.Int64
	for i := range 16 {
		all.Go(func() {
			next := coupon.Worker{Number: old.Number, Token: old.Token + string(rune('a'+i)), HighWater: old.HighWater + 1}
			ok, err := w.SwapWorker(t.Context(), old, next)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	all.Wait()
	return won.Load()
}

func clockGoesOn(t *testing.T, w coupon.Workers) {
	_, first, err := w.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // what is measured, not waited for
	_, second, err := w.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if went := second.Sub(first); went < 10*time.Millisecond || went > 10*time.Second {
		t.Errorf("the clock went on by %v in 20ms", went)
	}
}

func swap(t *testing.T, w coupon.Workers, old, next coupon.Worker, want bool) {
	t.Helper()
	got, err := w.SwapWorker(t.Context(), old, next)
	if err != nil || got != want {
		t.Fatalf("%+v for %+v: %v, %v; want %v", next, old, got, err, want)
	}
}

func wantRows(t *testing.T, w coupon.Workers, want ...coupon.Worker) {
	t.Helper()
	rows, _, err := w.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[coupon.Worker]bool{}
	for _, row := range rows {
		got[row] = true
	}
	for _, row := range want {
		if !got[row] {
			t.Errorf("no row %+v", row)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d: %+v", len(rows), len(want), rows)
	}
}
