package migtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/migrate"
)

// ClaimTTL is the time to live of the claims in a history.
const ClaimTTL = 15 * time.Millisecond

// ClaimHistory lets pods, all open in a migration that is IN_PROGRESS with the
// slots of span, claim, save, renew, finish and release at once, each calls
// times. Some calls end before their reply, and a pod often stops between two
// for longer than its claim lives, like a process that got SIGSTOP.
func ClaimHistory(t testing.TB, span migrate.Span, calls int, pods ...migrate.State) []porcupine.Operation {
	h := &claimHistory{begin: time.Now()}
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() {
			c := claimer{history: h, state: pod, id: i, left: calls, span: span}
			for c.left > 0 {
				if err := c.slot(t.Context()); err != nil {
					t.Errorf("claim history: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	return h.all
}

// CheckClaims reports whether a history is one of slots that have, one at a
// time, an owner with an epoch of its own whose progress only advances.
func CheckClaims(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(claimModel.ToModel(), history, time.Minute)
}

// A claimCall is one call, and when it could have happened.
type claimCall struct {
	op        string
	slot      int64
	epoch     uint64 // of the claim
	read      int64
	call, end int64 // nanoseconds
}

// A claimReply is what came of it. When its outcome is not known, it may have
// happened at any time after the call.
type claimReply struct {
	ok, unknown bool
	epoch       uint64
	read        int64
}

type claimHistory struct {
	begin time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (h *claimHistory) now() int64 { return int64(time.Since(h.begin)) }

// record does a call and notes it.
func (h *claimHistory) record(id int, in claimCall, do func() (claimReply, error)) (claimReply, error) {
	in.call = h.now()
	out, err := do()
	in.end = h.now()
	switch {
	case errors.Is(err, migrate.ErrTransient), errors.Is(err, context.DeadlineExceeded):
		out, in.end, err = claimReply{unknown: true}, math.MaxInt64, nil
	case errors.Is(err, migrate.ErrNotHeld), errors.Is(err, migrate.ErrNoSlot):
		out, err = claimReply{}, nil
	case err == nil:
		out.ok = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: id, Input: in, Call: in.call, Output: out, Return: in.end})
	return out, err
}

// A claimer is one pod that makes history.
type claimer struct {
	history *claimHistory
	state   migrate.State
	id      int
	left    int
	span    migrate.Span
}

// do does one call, one in twelve of which ends before its reply may come.
func (c *claimer) do(ctx context.Context, in claimCall, f func(context.Context) (claimReply, error)) (claimReply, error) {
	c.left--
	if rand.IntN(12) == 0 {
		short, cancel := context.WithTimeout(ctx, rand.N(time.Millisecond))
		defer cancel()
		ctx = short
	}
	return c.history.record(c.id, in, func() (claimReply, error) { return f(ctx) })
}

// pause waits, one time in four for longer than a claim lives.
func pause() {
	d := rand.N(ClaimTTL / 5)
	if rand.IntN(4) == 0 {
		d = ClaimTTL + rand.N(ClaimTTL)
	}
	<-time.After(d)
}

// slot claims a slot and works on it for a while.
func (c *claimer) slot(ctx context.Context) error {
	i := c.span.Lo + rand.Int64N(c.span.Hi-c.span.Lo)
	var held migrate.Claim
	got, err := c.do(ctx, claimCall{op: "claim", slot: i}, func(ctx context.Context) (r claimReply, err error) {
		held, err = c.state.Claim(ctx, migrate.ClaimRequest{Pass: migrate.Copying, TTL: ClaimTTL, Within: migrate.Span{Lo: i, Hi: i + 1}})
		return claimReply{epoch: held.Epoch, read: held.Progress.Counts.Read}, err
	})
	if err != nil || !got.ok {
		pause()
		return err
	}
	for range 1 + rand.IntN(5) {
		pause()
		if err := c.own(ctx, &held); err != nil {
			return err
		}
	}
	return nil
}

// own does something as the owner of a claim. A claim that is over is used
// nevertheless.
func (c *claimer) own(ctx context.Context, held *migrate.Claim) error {
	op := []string{"save", "save", "save", "save", "renew", "renew", "release", "finish"}[rand.IntN(8)]
	if op == "finish" && rand.IntN(8) > 0 {
		op = "save"
	}
	p := held.Progress
	if op == "save" || op == "finish" {
		p = progress(p.Counts.Read + 1 + rand.Int64N(3))
		held.Progress = p
	}
	in := claimCall{op: op, slot: held.Slot.Index, epoch: held.Epoch, read: p.Counts.Read}
	_, err := c.do(ctx, in, func(ctx context.Context) (r claimReply, err error) {
		switch op {
		case "save":
			_, err = c.state.Save(ctx, *held, p)
		case "renew":
			err = c.state.Renew(ctx, *held)
		case "release":
			err = c.state.Release(ctx, *held)
		case "finish":
			err = c.state.Finish(ctx, *held, p, migrate.Span{})
		}
		return r, err
	})
	return err
}
