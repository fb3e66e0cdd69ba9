package coupontest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// A World is a service on a store, with whatever it needs around it.
type World struct {
	*coupon.Service
	Codes   *coupon.Codes
	Store   coupon.Store
	Control coupon.Control
}

// counting gives numbers from 1 on, whatever the sequence.
type counting struct{ last atomic.Int64 }

func (c *counting) Next(context.Context, string) (int64, error) { return c.last.Add(1), nil }

// NewWorld starts a service on a store, which ends with the test. Two worlds on
// one store that share workers and numbers are two processes.
func NewWorld(t testing.TB, store coupon.Store, control coupon.Control, workers coupon.Workers, numbers coupon.Numbers) *World {
	t.Helper()
	return newWorld(t, store, control, workers, numbers, coupon.Options{})
}

// newWorld starts a service with options, whose sources of numbers are set here.
func newWorld(t testing.TB, store coupon.Store, control coupon.Control, workers coupon.Workers, numbers coupon.Numbers, o coupon.Options) *World {
	t.Helper()
	if workers == nil {
		workers = new(Workers)
	}
	if numbers == nil {
		numbers = new(counting)
	}
	key, err := coupon.NewCheckKey("test", time.Unix(1, 0), []byte("a secret of tests only"))
	if err != nil {
		t.Fatal(err)
	}
	codes, err := coupon.NewCodes(key)
	if err != nil {
		t.Fatal(err)
	}
	minter := coupon.OpenMinter(t.Context(), workers, coupon.MinterOptions{})
	o.IDs, o.Codes, o.Numbers = minter, codes, numbers
	s := coupon.NewService(store, control, o)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close()
		minter.Close(context.Background())
	})
	return &World{Service: s, Codes: codes, Store: store, Control: control}
}

// Campaign makes a campaign with all its coupons.
func (w *World) Campaign(t testing.TB, total int64, edit func(*coupon.Campaign)) coupon.Campaign {
	t.Helper()
	c := coupon.Campaign{
		Name: "spring", Total: total, TimeZone: "Europe/Berlin", ValidDays: 30,
		Value: coupon.Amount{Minor: 500, Currency: "EUR"},
	}
	if edit != nil {
		edit(&c)
	}
	c, err := w.CreateCampaign(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	op, err := w.Generate(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if op = w.Await(t, op); op.Error != "" || op.Succeeded != total {
		t.Fatalf("generated %+v", op)
	}
	if c, err = w.Service.Campaign(t.Context(), c.ID); err != nil || !c.Closed() {
		t.Fatalf("generation is not closed: %+v, %v", c, err)
	}
	return c
}

// Await returns an operation when it is done.
func (w *World) Await(t testing.TB, op coupon.Operation) coupon.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := w.Operation(ctx, op.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.Done {
			return now
		}
		select {
		case <-ctx.Done():
			t.Fatalf("operation is not done: %+v", now)
		case <-tick.C:
		}
	}
}

// claim claims for a user, again while that is worth it.
func (w *World) claim(ctx context.Context, campaign int64, user, request string) (coupon.Result, error) {
	for {
		r, err := w.Claim(ctx, campaign, coupon.Call{Actor: "test", User: user, Request: request})
		if refused, ok := errors.AsType[*coupon.Refusal](err); !ok || !refused.Retryable || ctx.Err() != nil {
			return r, err
		}
	}
}
