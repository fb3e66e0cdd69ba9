package coupontest

import (
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Platform is the databases as one process has them open.
type Platform struct {
	Store   coupon.Store
	Control coupon.Control
}

// TestFlows checks the flows of the service on databases without coupons, through
// one of two processes: what callers are told, in order and all at once.
func TestFlows(t *testing.T, processes [2]Platform) {
	workers, numbers := new(Workers), new(counting)
	var worlds [2]*World
	for i, p := range processes {
		worlds[i] = NewWorld(t, p.Store, p.Control, workers, numbers)
	}
	one := func(flow func(*testing.T, *World)) func(*testing.T) {
		return func(t *testing.T) { flow(t, worlds[0]) }
	}
	t.Run("Life", one(life))
	t.Run("Bearer", one(bearerLife))
	t.Run("Voided", one(voided))
	t.Run("Order", one(order))
	t.Run("OrderOfAUser", one(orderOfAUser))
	t.Run("TooLargeAnOrder", one(tooLargeAnOrder))
	t.Run("OneOfManyRedeems", one(oneOfManyRedeems))
	t.Run("SweptUp", one(sweptUp))
	t.Run("PausedAndEnded", one(pausedAndEnded))
	t.Run("ClaimsToTheLast", func(t *testing.T) { claimsToTheLast(t, worlds) })
}

// want fails the test unless err is the refusal.
func want(t *testing.T, what string, err, refusal error) {
	t.Helper()
	if !errors.Is(err, refusal) {
		t.Errorf("%s: %v, want %v", what, err, refusal)
	}
}

// must returns the result of a call that was not to fail.
func must(r coupon.Result, err error) func(*testing.T) coupon.Result {
	return func(t *testing.T) coupon.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// errOf returns how a call failed.
func errOf(_ coupon.Result, err error) error { return err }

// users returns two users that no other flow has.
func users(t *testing.T) (ann, bob string) {
	flow := path.Base(t.Name())
	return "ann." + flow, "bob." + flow
}

func call(user, order, request string) coupon.Call {
	return coupon.Call{Actor: "test", User: user, Order: order, Request: request}
}

// byID and byCode name a coupon.
func byID(c coupon.Coupon) coupon.Target   { return coupon.Target{ID: c.ID} }
func byCode(c coupon.Coupon) coupon.Target { return coupon.Target{Code: c.Code} }

func life(t *testing.T, w *World) {
	ann, bob := users(t)
	ctx := t.Context()
	c := w.Campaign(t, 100, nil)
	first := must(w.claim(ctx, c.ID, ann, "r1"))(t)
	if first.Coupon.User != ann || first.Coupon.At(first.At) != coupon.Issued || first.Replayed {
		t.Fatalf("%+v", first)
	}
	if again := must(w.claim(ctx, c.ID, ann, "r1"))(t); again.Coupon.ID != first.Coupon.ID || !again.Replayed {
		t.Errorf("the same request got %+v", again)
	}
	_, err := w.claim(ctx, c.ID, ann, "r2")
	want(t, "beyond the limit", err, coupon.ErrUserLimit)
	refused, _ := errors.AsType[*coupon.Refusal](err)
	if refused == nil || len(refused.Held) != 1 || refused.Held[0] != first.Coupon.ID {
		t.Errorf("held: %+v", refused)
	}
	wallet(t, w, ann, first.Coupon)

	held := must(w.Reserve(ctx, byCode(first.Coupon), call(ann, "o1", ""), time.Minute))(t)
	if held.Coupon.At(held.At) != coupon.Reserved {
		t.Errorf("%+v", held)
	}
	want(t, "held by another order", errOf(w.Redeem(ctx, byID(first.Coupon), call(ann, "o2", ""))), coupon.ErrReserved)
	want(t, "another's hold", errOf(w.Release(ctx, byID(first.Coupon), call(ann, "o2", ""))), coupon.ErrReserved)
	must(w.Release(ctx, byID(first.Coupon), call(ann, "o1", "")))(t)
	if r := must(w.Release(ctx, byID(first.Coupon), call(ann, "o1", "")))(t); !r.Replayed {
		t.Errorf("released twice: %+v", r)
	}
	want(t, "another's", errOf(w.Redeem(ctx, byID(first.Coupon), call(bob, "o2", ""))), coupon.ErrUnavailable)
	done := must(w.Redeem(ctx, byCode(first.Coupon), call(ann, "o2", "")))(t)
	once := must(w.Redeem(ctx, byID(first.Coupon), call(ann, "o2", "")))(t)
	if done.Replayed || !once.Replayed || once.Redemption() != done.Redemption() {
		t.Errorf("%+v, then %+v", done, once)
	}
	want(t, "another order", errOf(w.Redeem(ctx, byID(first.Coupon), call(ann, "o3", ""))), coupon.ErrAlreadyRedeemed)
	wallet(t, w, ann, done.Coupon)
	history(t, w, first.Coupon.ID, coupon.WasGenerated, coupon.WasClaimed, coupon.WasReserved, coupon.WasReleased, coupon.WasRedeemed)
}

func history(t *testing.T, w *World, id coupon.ID, types ...coupon.EventType) {
	t.Helper()
	events, err := w.History(t.Context(), id)
	if err != nil || len(events) != len(types) {
		t.Fatalf("history: %+v, %v; want %v", events, err, types)
	}
	for i, e := range events {
		if e.Type != types[i] || e.Version != uint32(i+1) {
			t.Errorf("event %d is %+v, want %v", i+1, e, types[i])
		}
	}
}

// wallet fails the test unless the user has exactly these coupons, as they are.
func wallet(t *testing.T, w *World, user string, coupons ...coupon.Coupon) {
	t.Helper()
	page, err := w.Wallet(t.Context(), coupon.WalletQuery{User: user, Size: 100, Fresh: true})
	if err != nil || !page.End {
		t.Fatalf("%+v, %v", page, err)
	}
	there := map[coupon.ID]coupon.Coupon{}
	for _, c := range page.Coupons {
		there[c.ID] = c
	}
	for _, c := range coupons {
		if got := there[c.ID]; got.Status != c.Status || got.Version != c.Version || got.Code != c.Code {
			t.Errorf("wallet of %s has %+v, want %+v", user, got, c)
		}
	}
	if len(there) != len(coupons) {
		t.Errorf("wallet of %s has %d coupons, want %d", user, len(there), len(coupons))
	}
}

func bearerLife(t *testing.T, w *World) {
	ann, bob := users(t)
	ctx := t.Context()
	c := w.Campaign(t, 64, nil)
	issue, err := w.Issue(ctx, coupon.IssueRequest{Campaign: c.ID, Batch: "b1", Order: "gifts", Count: 3})
	if err != nil || len(issue.Coupons) != 3 {
		t.Fatalf("%+v, %v", issue, err)
	}
	one, two, three := issue.Coupons[0], issue.Coupons[1], issue.Coupons[2]
	for _, user := range []string{"", bob} { // the repetition is told from another's
		if r := must(w.Redeem(ctx, byCode(one), call(bob, "o1", "")))(t); r.Replayed != (user == bob) {
			t.Errorf("%+v", r)
		}
	}
	want(t, "a used bearer coupon", errOf(w.Redeem(ctx, byCode(one), call(ann, "o2", ""))), coupon.ErrUnavailable)
	want(t, "a bearer coupon one has used", errOf(w.Redeem(ctx, byCode(one), call(bob, "o2", ""))), coupon.ErrAlreadyRedeemed)

	for range 2 {
		if r := must(w.Bind(ctx, byCode(two), call(ann, "", "bind-1")))(t); r.Coupon.User != ann {
			t.Errorf("%+v", r)
		}
	}
	want(t, "the same request for another coupon", errOf(w.Bind(ctx, byCode(three), call(ann, "", "bind-1"))), coupon.ErrMismatch)
	want(t, "another's", errOf(w.Bind(ctx, byCode(two), call(bob, "", "bind-2"))), coupon.ErrUnavailable)
	want(t, "without its owner", errOf(w.Redeem(ctx, byID(two), call("", "o3", ""))), coupon.ErrUnavailable)
	wallet(t, w, ann, must(w.Get(ctx, byID(two), ann))(t).Coupon)
	if r, err := w.claim(ctx, c.ID, ann, "r1"); err != nil {
		t.Errorf("a bind counts towards the limit: %+v, %v", r, err)
	}
	history(t, w, two.ID, coupon.WasGenerated, coupon.WasIssued, coupon.WasBound)
}

func voided(t *testing.T, w *World) {
	ann, _ := users(t)
	ctx := t.Context()
	c := w.Campaign(t, 64, nil)
	id := must(w.claim(ctx, c.ID, ann, "r1"))(t).Coupon.ID
	want(t, "void of what was not redeemed", errOf(w.Void(ctx, id, call("", "o1", "v1"))), coupon.ErrWrongOrder)
	must(w.Redeem(ctx, coupon.Target{ID: id}, call(ann, "o1", "")))(t)
	want(t, "void for another order", errOf(w.Void(ctx, id, call("", "o2", "v1"))), coupon.ErrWrongOrder)
	for i := range 2 {
		if r := must(w.Void(ctx, id, call("", "o1", "v1")))(t); r.Replayed != (i > 0) {
			t.Errorf("%+v", r)
		}
	}
	want(t, "the same request with another order", errOf(w.Void(ctx, id, call("", "o2", "v1"))), coupon.ErrMismatch)
	want(t, "another request", errOf(w.Void(ctx, id, call("", "o1", "v2"))), coupon.ErrRedemptionVoided)
	want(t, "the voided order's late duplicate", errOf(w.Redeem(ctx, coupon.Target{ID: id}, call(ann, "o1", ""))), coupon.ErrRedemptionVoided)
	must(w.Redeem(ctx, coupon.Target{ID: id}, call(ann, "o3", "")))(t)
	if r := must(w.Void(ctx, id, call("", "o1", "v1")))(t); !r.Replayed || r.Coupon.RedeemedOrder != "o3" {
		t.Errorf("the first void again, after another order: %+v", r)
	}
	history(t, w, id, coupon.WasGenerated, coupon.WasClaimed, coupon.WasRedeemed, coupon.WasVoided, coupon.WasRedeemed)
}

// sweptUp leaves a claim pending, as a process would that died, and has it swept.
func sweptUp(t *testing.T, w *World) {
	ann, _ := users(t)
	ctx := t.Context()
	c := w.Campaign(t, 64, nil)
	home := shard.Text(ann).Bucket().Shard()
	var ref coupon.Ref
	err := w.Store.Read(ctx, (home+1)%shard.Count, func(rows coupon.Rows) error {
		refs, err := rows.Stock(c.ID, 0, 1)
		ref = refs[0]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pending := coupon.Claim{User: ann, Campaign: c.ID, Request: "r1", Number: 1, Coupon: ref.ID}
	err = w.Store.Write(ctx, home, func(tx coupon.Tx) error {
		pending.At = tx.Now().Add(-time.Hour)
		return tx.PutClaim(pending)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Sweep(ctx, home, time.Minute); err != nil {
		t.Fatal(err)
	}
	r := must(w.claim(ctx, c.ID, ann, "r1"))(t)
	if !r.Replayed || r.Coupon.ID != ref.ID || r.Coupon.User != ann {
		t.Errorf("%+v", r)
	}
	wallet(t, w, ann, r.Coupon)
}

func pausedAndEnded(t *testing.T, w *World) {
	ann, _ := users(t)
	ctx := t.Context()
	c := w.Campaign(t, 32, nil)
	first := must(w.claim(ctx, c.ID, ann, "r1"))(t)
	for _, to := range []struct {
		state   coupon.CampaignState
		refusal error
	}{{coupon.Paused, coupon.ErrCampaignPaused}, {coupon.Active, nil}, {coupon.Ended, coupon.ErrCampaignEnded}} {
		for range 2 {
			if _, err := w.MoveCampaign(ctx, c.ID, to.state); err != nil {
				t.Fatal(err)
			}
		}
		want(t, string(to.state), errOf(w.Claim(ctx, c.ID, call(fmt.Sprint(ann, "-", to.state), "", "r1"))), to.refusal)
	}
	_, err := w.MoveCampaign(ctx, c.ID, coupon.Active)
	want(t, "resume an ended campaign", err, coupon.ErrCampaignEnded)
	if r := must(w.claim(ctx, c.ID, ann, "r1"))(t); !r.Replayed {
		t.Errorf("%+v", r)
	}
	must(w.Redeem(ctx, byID(first.Coupon), call(ann, "o1", "")))(t)
}
