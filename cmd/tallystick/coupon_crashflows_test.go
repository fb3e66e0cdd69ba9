package main_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// crashHome is the shard of every user of the crash test.
const crashHome = shard.Shard(5)

// A crashFlow is a call, what it needs, and where the server dies in it.
type crashFlow struct {
	name    string
	points  []string // of coupon.Steps; "NAME:N" is the Nth time
	prepare func(*crashCase, *couponServer)
	act     func(context.Context, *crashCase, *couponrpc.Client) error
	refusal error // that act comes to; nil: none
	idle    bool  // the server comes to the point by itself
}

// A crashCase is a flow with names of its own.
type crashCase struct {
	t        *testing.T
	flow     crashFlow
	point    string // "": the server does not die
	repeated bool   // the caller asks again; false: it does not
	id       string // the user's name, and the beginning of all others
	world    *crashWorld
	picture  coupontest.Picture
	before   string // the picture before the call
}

func (c *crashCase) call() coupon.Call {
	return coupon.Call{User: c.id, Order: c.id + "-order", Request: "r1"}
}

func (c *crashCase) coupon() couponrpc.Ref { return couponrpc.Ref{ID: int64(c.picture.Coupons[0])} }

// has makes a coupon the case's.
func (c *crashCase) has(r coupon.Coupon, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.flow.name, err)
	}
	c.picture.Coupons = append(c.picture.Coupons, r.ID)
}

// did fails the test where a step of a preparation failed.
func (c *crashCase) did(_ coupon.Result, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.flow.name, err)
	}
}

var changed = []string{coupon.StepChangeWritten, coupon.StepChangeCommitted}

// crashFlows are all flows. Those with operations come first: what a dead server
// holds is free after ten seconds.
var crashFlows = []crashFlow{
	{name: "generate", points: []string{coupon.StepOperationLeased, coupon.StepGenerateChunk + ":9", coupon.StepGenerateChunked, coupon.StepOperationWorked},
		prepare: func(c *crashCase, s *couponServer) {
			c.picture = coupontest.Picture{Campaign: c.world.campaign(s, 1_000, 1), Own: true}
		}, act: func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
			_, err := s.Generate(ctx, c.picture.Campaign)
			return err
		}},
	{name: "issue many", points: []string{coupon.StepIssuePlaced, coupon.StepOperationLeased, coupon.StepIssueChunk + ":9", coupon.StepIssueChunked, coupon.StepIssueDone, coupon.StepOperationWorked},
		prepare: func(c *crashCase, _ *couponServer) { c.issues(c.world.large) },
		act:     issue(600, false)},
	{name: "issue", points: []string{coupon.StepIssueBatch, coupon.StepIssuePlaced, coupon.StepIssueChunk + ":9", coupon.StepIssueChunked, coupon.StepIssueDone},
		prepare: func(c *crashCase, _ *couponServer) { c.issues(c.world.large) },
		act:     issue(40, false)},
	{name: "issue to a user", points: []string{coupon.StepIssueWallet + ":3"},
		prepare: func(c *crashCase, _ *couponServer) { c.issues(c.world.drained); c.picture.User = c.id },
		act:     issue(10, true)},
	{name: "reserve", points: changed, prepare: claimed, act: func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
		return errOf(s.Reserve(ctx, c.coupon(), c.call(), 0))
	}},
	{name: "release", points: changed, prepare: func(c *crashCase, s *couponServer) {
		claimed(c, s)
		c.did(s.Reserve(c.t.Context(), c.coupon(), c.call(), 0))
	}, act: func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
		return errOf(s.Release(ctx, c.coupon(), c.call()))
	}},
	{name: "redeem", points: changed, prepare: claimed, act: func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
		return errOf(s.Redeem(ctx, c.coupon(), c.call()))
	}},
	{name: "void", points: changed, prepare: func(c *crashCase, s *couponServer) {
		claimed(c, s)
		c.did(s.Redeem(c.t.Context(), c.coupon(), c.call()))
	}, act: func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
		return errOf(s.Void(ctx, c.picture.Coupons[0], c.call()))
	}},
	{name: "claim", points: []string{coupon.StepClaimLocal}, prepare: func(c *crashCase, _ *couponServer) { c.claims(c.world.open) }, act: claim},
	{name: "claim elsewhere", points: []string{coupon.StepClaimPending, coupon.StepClaimBound, coupon.StepClaimDone},
		prepare: func(c *crashCase, _ *couponServer) { c.claims(c.world.drained) }, act: claim},
	{name: "claim of a coupon that another gets", points: []string{coupon.StepClaimMoved}, prepare: func(c *crashCase, _ *couponServer) {
		coupontest.Steal(c.t, c.world.home.direct.Store, c.world.drained, c.pend(), c.id+"-thief")
	}, act: claim},
	{name: "sweep", points: []string{coupon.StepSweepFound}, prepare: func(c *crashCase, _ *couponServer) { c.pend() }, act: claim, idle: true},
	{name: "bind", points: []string{coupon.StepBindPending, coupon.StepBindBound, coupon.StepBindDone}, prepare: bearer, act: bind},
	{name: "bind of a used coupon", points: []string{coupon.StepBindRefused}, prepare: func(c *crashCase, s *couponServer) {
		bearer(c, s)
		c.did(s.Redeem(c.t.Context(), c.coupon(), coupon.Call{Order: c.id + "-other"}))
	}, act: bind, refusal: coupon.ErrUnavailable},
}

func errOf(_ coupon.Result, err error) error { return err }

// claims makes the case one of a claim.
func (c *crashCase) claims(campaign int64) { c.picture.Campaign, c.picture.User = campaign, c.id }

func (c *crashCase) issues(campaign int64) {
	c.picture.Campaign, c.picture.Batch = campaign, c.id+"-batch"
}

// pend leaves a pending claim and returns its coupon.
func (c *crashCase) pend() coupon.Ref {
	c.claims(c.world.drained)
	store := c.world.home.direct.Store
	ref := coupontest.Elsewhere(c.t, store, c.world.drained, c.id)
	coupontest.Pend(c.t, store, coupon.Claim{
		User: c.id, Campaign: c.world.drained, Request: "r1", Number: 1, Coupon: ref.ID,
	})
	return ref
}

func claim(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
	return errOf(s.Claim(ctx, c.picture.Campaign, c.call()))
}

func claimed(c *crashCase, s *couponServer) {
	c.claims(c.world.open)
	r, err := s.Claim(c.t.Context(), c.world.open, c.call())
	c.has(r.Coupon, err)
}

func bind(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
	return errOf(s.Bind(ctx, c.coupon(), c.call()))
}

// bearer gives the case a bearer coupon that is not on its user's shard.
func bearer(c *crashCase, _ *couponServer) {
	c.claims(c.world.open)
	c.has(c.world.gifts[0], nil)
	c.world.gifts = c.world.gifts[1:]
}

// issue issues to the case's order. An operation is awaited: the server may die
// in it.
func issue(n int64, toUser bool) func(context.Context, *crashCase, *couponrpc.Client) error {
	return func(ctx context.Context, c *crashCase, s *couponrpc.Client) error {
		r := coupon.IssueRequest{Campaign: c.picture.Campaign, Batch: c.picture.Batch, Order: c.id + "-order", Count: n}
		if toUser {
			r.User = c.id
		}
		_, err := s.Issue(ctx, r)
		return err
	}
}

// A crashWorld is campaigns that cases share.
type crashWorld struct {
	t     *testing.T
	home  *couponHome
	users []string // who claimed of open and drained

	open    int64 // every shard has many
	drained int64 // the users' shard has none
	large   int64 // for orders
	gifts   []coupon.Coupon
	others  []*crashCase // that nobody died in
}

func newCrashWorld(t *testing.T, home *couponHome, s *couponServer) *crashWorld {
	w := &crashWorld{t: t, home: home}
	w.open, w.drained, w.large = w.campaign(s, 3_200, 1), w.campaign(s, 640, 20), w.campaign(s, 10_000, 1)
	for _, id := range []int64{w.open, w.drained, w.large} {
		w.generate(s, id)
	}
	drain := w.name("drain")
	for i := range 20 {
		if err := persist(t.Context(), func(ctx context.Context) error {
			return errOf(s.Claim(ctx, w.drained, coupon.Call{User: drain, Request: fmt.Sprint(i)}))
		}); err != nil {
			t.Fatal(err)
		}
	}
	issue, err := s.Issue(t.Context(), coupon.IssueRequest{Campaign: w.open, Batch: "gifts", Order: "gifts", Count: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range issue.Coupons {
		if c.ID.Shard() != crashHome {
			w.gifts = append(w.gifts, c)
		}
	}
	return w
}

func (w *crashWorld) campaign(s *couponServer, total int64, limit int) int64 {
	w.t.Helper()
	c, err := s.CreateCampaign(w.t.Context(), coupon.Campaign{
		Name: "crash", Total: total, PerUserLimit: limit, TimeZone: "UTC", ValidDays: 30, Value: coupon.Amount{Minor: 500, Currency: "EUR"},
	}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return c.ID
}

func (w *crashWorld) generate(s *couponServer, campaign int64) {
	w.t.Helper()
	op, err := s.Generate(w.t.Context(), campaign)
	eventually(w.t, "the campaign is generated", func() bool {
		if err == nil {
			op, err = s.Operation(w.t.Context(), op.ID)
		}
		return err != nil || op.Done
	})
	if err != nil || op.Error != "" {
		w.t.Fatal(op, err)
	}
}

// name returns a name of a user on the users' shard.
func (w *crashWorld) name(prefix string) string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s~%d", prefix, n)
		if shard.Text(name).Bucket().Shard() == crashHome {
			w.users = append(w.users, name)
			return name
		}
	}
}

// take returns the case's picture.
func (c *crashCase) take() string {
	c.t.Helper()
	c.picture.Without = c.id
	text, err := c.picture.Take(c.t.Context(), c.world.home.direct.Store, c.world.home.direct.Control)
	if err != nil && !errors.Is(err, coupon.ErrNoRow) {
		c.t.Fatalf("%s at %s: %v", c.flow.name, c.point, err)
	}
	return text
}

// settled waits until nothing is pending and every campaign that a case has to
// itself is generated.
func (w *crashWorld) settled(cases []*crashCase) {
	w.t.Helper()
	limit := time.Now().Add(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		n, err := coupontest.Pending(w.t.Context(), w.home.direct.Store)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range cases {
			if c.picture.Own {
				campaign, err := w.home.direct.Control.Campaign(w.t.Context(), c.picture.Campaign)
				if err != nil {
					w.t.Fatal(err)
				}
				if !campaign.Closed() {
					n++
				}
			}
		}
		if n == 0 {
			return
		}
		if time.Now().After(limit) {
			w.t.Fatalf("%d things are pending still", n)
		}
	}
}
