package coupontest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A HistoryPlan is what callers do to coupons, all at once, so that it can be
// checked whether each saw what one after the other could have seen.
type HistoryPlan struct {
	Campaign coupon.Campaign // its coupons suffice for all claims
	Bearers  []coupon.Coupon // nobody has done anything with
	Users    []string        // who claim
	Calls    int             // at least
	Callers  int
	Timeouts int           // one call in so many ends early; 0: none
	Pause    time.Duration // of a caller after an outcome that is not known
}

// A History is calls with their answers.
type History struct {
	plan  HistoryPlan
	begin time.Time

	mu     sync.Mutex
	calls  []recorded
	active []coupon.Coupon // those that callers do something with
	use    map[coupon.ID]int
	next   int // of the bearers
}

// recorded is a call; of a claim that has no answer the coupon is filled in once
// its repetition has one.
type recorded struct {
	act       Act
	answer    Answer
	call, end int64
}

// How callers choose.
const (
	historyActive  = 8  // coupons at a time
	historyCalls   = 40 // about one coupon
	historyOrders  = 3
	historyLimit   = 3 // claims a user may make; a fourth is tried
	historyTimeout = 15 * time.Millisecond
	historyTTL     = 24 * time.Hour
)

// MakeHistory makes the calls through the processes, each caller through any of
// them, until there are enough. Then it asks for the outcome of each claim until
// it knows, and for the state of each coupon.
func MakeHistory(t testing.TB, plan HistoryPlan, processes ...Calls) *History {
	h := &History{plan: plan, begin: time.Now(), use: map[coupon.ID]int{}}
	var callers sync.WaitGroup
	for i := range plan.Callers {
		callers.Go(func() {
			for h.more() && t.Context().Err() == nil {
				h.one(t, processes[rand.IntN(len(processes))], i)
			}
		})
	}
	callers.Wait()
	h.settle(t, processes[0])
	return h
}

func (h *History) more() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls) < h.plan.Calls
}

// Len returns how many calls there are, and of how many the outcome is not known.
func (h *History) Len() (calls, unknown int) {
	for _, r := range h.calls {
		if r.answer.Unknown {
			unknown++
		}
	}
	return len(h.calls), unknown
}

func (h *History) now() int64 { return int64(time.Since(h.begin)) }

// one makes one call, about a claim or about a coupon.
func (h *History) one(t testing.TB, p Calls, caller int) {
	ctx := t.Context()
	if h.plan.Timeouts > 0 && rand.IntN(h.plan.Timeouts) == 0 {
		short, cancel := context.WithTimeout(ctx, rand.N(historyTimeout))
		defer cancel()
		ctx = short
	}
	var unknown bool
	if rand.IntN(16) == 0 {
		user := h.plan.Users[rand.IntN(len(h.plan.Users))]
		unknown = h.claim(t, ctx, p, user, fmt.Sprint("r", rand.IntN(historyLimit+1))).Unknown
	} else {
		unknown = h.do(t, ctx, p, h.act(h.choose())).Unknown
	}
	if unknown {
		h.pause(t)
	}
}

func (h *History) pause(t testing.TB) {
	select {
	case <-t.Context().Done():
	case <-time.After(h.plan.Pause):
	}
}

// HistoryUsers returns names of users who share two shards, so that many of their
// claims find no coupon there.
func HistoryUsers(n int) (users []string) {
	for i := 0; len(users) < n; i++ {
		if user := fmt.Sprint("user-", i); shard.Text(user).Bucket().Shard() < 2 {
			users = append(users, user)
		}
	}
	return users
}

// choose returns a coupon that others use too. One that was used enough makes
// room for a bearer coupon; claims add theirs.
func (h *History) choose() coupon.Coupon {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.active) < historyActive && h.next < len(h.plan.Bearers) {
		h.active = append(h.active, h.plan.Bearers[h.next])
		h.next++
	}
	i := rand.IntN(len(h.active))
	c := h.active[i]
	if h.use[c.ID]++; h.use[c.ID] >= historyCalls && (len(h.active) > historyActive || h.next < len(h.plan.Bearers)) {
		h.active = append(h.active[:i:i], h.active[i+1:]...)
	}
	return c
}

// act returns something to do with a coupon, mostly as who may.
func (h *History) act(c coupon.Coupon) Act {
	ops := []string{"bind", "get", "get", "reserve", "reserve", "reserve", "release", "release", "redeem", "redeem", "redeem", "void", "void"}
	a := Act{Op: ops[rand.IntN(len(ops))], Coupon: c.ID, Order: fmt.Sprint("o", rand.IntN(historyOrders)), User: c.User, TTL: historyTTL}
	if c.User == "" && rand.IntN(3) > 0 || rand.IntN(10) == 0 {
		a.User = h.plan.Users[rand.IntN(3)]
	}
	switch a.Op {
	case "bind":
		a.User, a.Order, a.Request = h.plan.Users[rand.IntN(3)], "", fmt.Sprint("bind-", c.ID)
	case "void":
		a.User, a.Request = "", fmt.Sprint("v", rand.IntN(3))
	case "get":
		a.User, a.Order = "", ""
	}
	return a
}

// do makes a call about a coupon.
func (h *History) do(t testing.TB, ctx context.Context, p Calls, a Act) Answer {
	r := recorded{act: a, call: h.now()}
	result, err := Do(ctx, p, a)
	r.answer = AnswerOf(result, err)
	return h.record(t, r, err)
}

// claim makes a claim. Where it succeeds the coupon is one for all callers.
func (h *History) claim(t testing.TB, ctx context.Context, p Calls, user, request string) Answer {
	r := recorded{act: Act{Op: "claim", User: user, Request: request}, call: h.now()}
	result, err := p.Claim(ctx, h.plan.Campaign.ID, coupon.Call{User: user, Request: request})
	r.answer = AnswerOf(result, err)
	r.act.Coupon = result.Coupon.ID
	if err == nil && !result.Replayed {
		h.mu.Lock()
		h.active = append(h.active, result.Coupon)
		h.mu.Unlock()
	}
	return h.record(t, r, err)
}

func (h *History) record(t testing.TB, r recorded, err error) Answer {
	r.end = h.now()
	if r.answer.Unknown {
		r.end = math.MaxInt64
	}
	switch r.answer.Refusal {
	case "INTERNAL", "INVALID_ARGUMENT", "POOL_EXHAUSTED":
		t.Errorf("%+v: %v", r.act, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.answer.Unknown || r.act.Op != "get" {
		h.calls = append(h.calls, r)
	}
	return r.answer
}

// settle asks until every claim has an answer, and looks at every coupon.
func (h *History) settle(t testing.TB, p Calls) {
	type name struct{ user, request string }
	claims, coupons := map[name]coupon.ID{}, map[coupon.ID]bool{}
	for _, r := range h.calls {
		if r.act.Op == "claim" {
			n := name{r.act.User, r.act.Request}
			claims[n] = max(claims[n], r.act.Coupon)
		}
		if r.act.Coupon != 0 {
			coupons[r.act.Coupon] = true
		}
	}
	for n, known := range claims {
		for known == 0 {
			answer := h.claim(t, t.Context(), p, n.user, n.request)
			if claims[n] = h.calls[len(h.calls)-1].act.Coupon; !answer.Unknown {
				break
			}
			h.pause(t)
		}
	}
	for i, r := range h.calls {
		if r.act.Op == "claim" {
			h.calls[i].act.Coupon = claims[name{r.act.User, r.act.Request}]
		}
	}
	for id := range coupons {
		for h.do(t, t.Context(), p, Act{Op: "get", Coupon: id}).Unknown {
			h.pause(t)
		}
	}
}

// Check reports whether every coupon and every user's claims are as if the calls
// had come one after the other, each within its time or, where its outcome is not
// known, at any time after its begin or never. If not, it tells of one.
func (h *History) Check(timeout time.Duration) (porcupine.CheckResult, string) {
	bearer := map[coupon.ID]bool{}
	for _, c := range h.plan.Bearers {
		bearer[c.ID] = true
	}
	var lives, claims []porcupine.Operation
	for _, r := range h.calls {
		op := porcupine.Operation{Input: r.act, Output: r.answer, Call: r.call, Return: r.end}
		if r.act.Op == "claim" {
			claims = append(claims, op)
		}
		if r.act.Coupon != 0 && r.answer.Refusal != "USER_LIMIT" {
			lives = append(lives, op)
		}
	}
	if got, why := check(claimsModel(historyLimit), claims, timeout); got != porcupine.Ok {
		return got, why
	}
	return check(livesModel(bearer), lives, timeout)
}
