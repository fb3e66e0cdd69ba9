package coupontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// Shifted is a store whose clock can be put ahead.
type Shifted struct {
	coupon.Store
	ahead atomic.Int64 // nanoseconds
}

// Write runs fn in a transaction of the store, at another time.
func (s *Shifted) Write(ctx context.Context, key shard.Key, fn func(coupon.Tx) error) error {
	return s.Store.Write(ctx, key, func(tx coupon.Tx) error { return fn(shiftedTx{tx, time.Duration(s.ahead.Load())}) })
}

type shiftedTx struct {
	coupon.Tx
	ahead time.Duration
}

// Now is the database's clock, put ahead.
func (t shiftedTx) Now() time.Time { return t.Tx.Now().Add(t.ahead) }

// TestLives makes random calls about a few coupons, one after the other and at any
// time of their validity, and compares each answer with that of the model.
func TestLives(t *testing.T, p Platform) {
	store := &Shifted{Store: p.Store}
	w := newWorld(t, store, p.Control, nil, nil, coupon.Options{})
	base := time.Now().Truncate(time.Millisecond)
	soon := w.Campaign(t, 4_000, func(c *coupon.Campaign) {
		c.ValidDays, c.ValidFrom, c.ValidUntil, c.PerUserLimit = 0, base.Add(time.Hour), base.Add(50*time.Hour), 2
	})
	always := w.Campaign(t, 4_000, func(c *coupon.Campaign) { c.ValidDays, c.ValidUntil = 0, base.AddDate(20, 0, 0) })
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		store.ahead.Store(0)
		m := &lives{rt: rt, w: w, store: store, prefix: fmt.Sprintf("%d.", run), campaigns: []coupon.Campaign{soon, always}, paused: map[int64]bool{}}
		m.begin()
		rt.Repeat(map[string]func(*rapid.T){
			"":        m.look,
			"claim":   m.claim,
			"bind":    m.bind,
			"reserve": m.change, "release": m.change, "redeem": m.change, "void": m.change,
			"wait":  m.wait,
			"pause": m.pause,
		})
	})
}

// lives is a run of the random test.
type lives struct {
	rt        *rapid.T
	w         *World
	store     *Shifted
	prefix    string // of names in this run
	campaigns []coupon.Campaign
	paused    map[int64]bool
	coupons   []*known
	requests  []numbered
}

// A known coupon is one that a caller was told of.
type known struct {
	Life
	id       coupon.ID
	campaign int64
}

// numbered is a claim or bind of a user.
type numbered struct {
	user    string
	request string
	coupon  *known
	bind    bool
}

// begin gives each campaign the same state, and two bearer coupons to an order.
func (m *lives) begin() {
	for _, c := range m.campaigns {
		m.must(m.w.MoveCampaign(context.Background(), c.ID, coupon.Active))
		issue, err := m.w.Issue(context.Background(), coupon.IssueRequest{Campaign: c.ID, Batch: m.prefix + "b", Order: m.prefix + "gifts", Count: 2})
		m.must(issue, err)
		for _, got := range issue.Coupons {
			m.add(got, Bearer())
		}
	}
}

func (m *lives) must(_ any, err error) {
	if err != nil {
		m.rt.Fatal(err)
	}
}

func (m *lives) add(c coupon.Coupon, l Life) *known {
	for _, campaign := range m.campaigns {
		if campaign.ID == c.Campaign {
			l.From, l.Until = campaign.ValidFrom, campaign.ValidUntil
		}
	}
	k := &known{l, c.ID, c.Campaign}
	m.coupons = append(m.coupons, k)
	return k
}

// now is what the time is. What ends or lapses does so hours apart.
func (m *lives) now() time.Time { return time.Now().Add(time.Duration(m.store.ahead.Load())) }

func (m *lives) user() string {
	return m.prefix + rapid.SampledFrom([]string{"ann", "bob"}).Draw(m.rt, "user")
}

func (m *lives) number(kind string) string {
	return rapid.SampledFrom([]string{kind + "1", kind + "2", kind + "3"}).Draw(m.rt, kind)
}

func (m *lives) wait(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{10 * time.Minute, 2 * time.Hour, 20 * time.Hour}).Draw(rt, "wait")
	m.store.ahead.Add(int64(d))
}

func (m *lives) pause(rt *rapid.T) {
	c := rapid.SampledFrom(m.campaigns).Draw(rt, "campaign")
	m.paused[c.ID] = !m.paused[c.ID]
	to := coupon.Active
	if m.paused[c.ID] {
		to = coupon.Paused
	}
	m.must(m.w.MoveCampaign(context.Background(), c.ID, to))
}

// requested returns what a user asked for by a number.
func (m *lives) requested(user, request string, campaign int64) (numbered, bool) {
	for _, r := range m.requests {
		if r.user == user && r.request == request && r.coupon.campaign == campaign {
			return r, true
		}
	}
	return numbered{}, false
}

// claim compares one with the model of a user's claims.
func (m *lives) claim(rt *rapid.T) {
	c := rapid.SampledFrom(m.campaigns).Draw(rt, "campaign")
	user, request := m.user(), m.number("r")
	r, err := m.w.Claim(context.Background(), c.ID, call(user, "", request))
	before, made := m.requested(user, request, c.ID)
	held := 0
	for _, other := range m.requests {
		if other.user == user && !other.bind && other.coupon.campaign == c.ID {
			held++
		}
	}
	switch {
	case made && before.bind:
		m.same("claim", r, err, Answer{Refusal: "IDEMPOTENCY_MISMATCH"})
	case made:
		m.same("claim", r, err, Answer{Replayed: true, View: before.coupon.view()})
	case m.paused[c.ID]:
		m.same("claim", r, err, Answer{Refusal: "CAMPAIGN_PAUSED"})
	case !m.now().Before(c.ValidUntil):
		m.same("claim", r, err, Answer{Refusal: "CAMPAIGN_ENDED"})
	case held >= c.PerUserLimit:
		m.same("claim", r, err, Answer{Refusal: "USER_LIMIT"})
	default:
		life, want := Free().Do(Act{Op: "claim", User: user, Request: request}, m.now())
		m.same("claim", r, err, want)
		m.requests = append(m.requests, numbered{user, request, m.add(r.Coupon, life), false})
	}
}

// bind is about a number first, which is remembered if it succeeds.
func (m *lives) bind(rt *rapid.T) {
	k := rapid.SampledFrom(m.coupons).Draw(rt, "coupon")
	user, request := m.user(), m.number("r")
	r, err := m.w.Bind(context.Background(), coupon.Target{ID: k.id}, call(user, "", request))
	before, made := m.requested(user, request, k.campaign)
	switch {
	case made && (!before.bind || before.coupon != k):
		m.same("bind", r, err, Answer{Refusal: "IDEMPOTENCY_MISMATCH"})
	case made:
		m.same("bind", r, err, Answer{Replayed: true, View: k.view()})
	default:
		life, want := k.Do(Act{Op: "bind", User: user, Request: request}, m.now())
		m.same("bind", r, err, want)
		k.Life = life
		if want.Refusal == "" {
			m.requests = append(m.requests, numbered{user, request, k, true})
		}
	}
}

// change makes one of the calls that are about a coupon alone.
func (m *lives) change(rt *rapid.T) {
	k := rapid.SampledFrom(m.coupons).Draw(rt, "coupon")
	a := Act{
		Op: rapid.SampledFrom([]string{"reserve", "release", "redeem", "void"}).Draw(rt, "op"), Coupon: k.id,
		Order: m.number("o"), Request: m.number("v"), TTL: rapid.SampledFrom([]time.Duration{time.Hour, 10 * time.Hour}).Draw(rt, "ttl"),
	}
	a.User = rapid.SampledFrom([]string{"", m.prefix + "ann", m.prefix + "bob"}).Draw(rt, "user")
	if k.User != "" && rapid.IntRange(0, 3).Draw(rt, "who") > 0 {
		a.User = k.User
	}
	r, err := Do(context.Background(), Local{m.w.Service}, a)
	life, want := k.Do(a, m.now())
	m.same(fmt.Sprintf("%+v", a), r, err, want)
	k.Life = life
}

// look compares every coupon, and the length of its history.
func (m *lives) look(rt *rapid.T) {
	for _, k := range m.coupons {
		r, err := m.w.Get(context.Background(), coupon.Target{ID: k.id}, "")
		m.same("get", r, err, Answer{View: k.view()})
		events, err := m.w.History(context.Background(), k.id)
		if err != nil || len(events) != int(k.Version) {
			rt.Errorf("version %d has %d events, %v", k.Version, len(events), err)
		}
	}
}

// same compares an answer with what it should be.
func (m *lives) same(what string, r coupon.Result, err error, want Answer) {
	m.rt.Helper()
	if got := AnswerOf(r, err); got != want {
		m.rt.Fatalf("%s: got %+v (%v), want %+v", what, got, err, want)
	}
}

// AnswerOf returns how a call looks to its caller. What is no refusal, or one
// after which the call may be made again, is unknown.
func AnswerOf(r coupon.Result, err error) Answer {
	if err == nil {
		c := r.Coupon
		return Answer{Replayed: r.Replayed, View: View{Status: c.Status, Version: c.Version, User: cmp.Or(c.User, c.RedeemedUser), Redeemed: c.RedeemedOrder}}
	}
	if refused, ok := errors.AsType[*coupon.Refusal](err); ok && !refused.Retryable {
		return Answer{Refusal: refused.Code}
	}
	return Answer{Unknown: true}
}
