package coupon

import (
	"errors"
	"testing"
	"time"
)

var (
	begin = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	noon  = begin.Add(12 * time.Hour)
	until = begin.Add(48 * time.Hour)
)

// owned returns ann's coupon, edited.
func owned(edit func(*Coupon)) Coupon {
	c := Coupon{ID: 33, Status: Issued, User: "ann", Valid: Window{begin, until}, Version: 2}
	if edit != nil {
		edit(&c)
	}
	return c
}

func bearer(edit func(*Coupon)) Coupon {
	return owned(func(c *Coupon) {
		c.User = ""
		if edit != nil {
			edit(c)
		}
	})
}

func holds(order string, until time.Time) func(*Coupon) {
	return func(c *Coupon) { c.Status, c.ReservedOrder, c.ReservedUntil = Reserved, order, until }
}

func used(order, user string) func(*Coupon) {
	return func(c *Coupon) { c.Status, c.RedeemedOrder, c.RedeemedUser, c.RedeemedAt = Redeemed, order, user, noon }
}

// An outcome is what a decision came to: a refusal, a replay or a new status.
type outcome struct {
	err      error
	replayed bool
	status   Status
}

func judge(t *testing.T, before Coupon, did decided, err error, want outcome) {
	t.Helper()
	if !errors.Is(err, want.err) {
		t.Fatalf("error %v, want %v", err, want.err)
	}
	if err != nil {
		return
	}
	if did.replayed != want.replayed || did.next.Status != want.status {
		t.Fatalf("replayed %v, %v; want %v, %v", did.replayed, did.next.Status, want.replayed, want.status)
	}
	if want.replayed && did.next.Version != before.Version || !want.replayed && did.next.Version != before.Version+1 {
		t.Errorf("version %d after %d", did.next.Version, before.Version)
	}
}

func TestRedeem(t *testing.T) {
	after := until.Add(time.Second)
	for name, c := range map[string]struct {
		coupon      Coupon
		now         time.Time
		user, order string
		want        outcome
	}{
		"the owner's":                       {owned(nil), noon, "ann", "o1", outcome{status: Redeemed}},
		"at the first instant":              {owned(nil), begin, "ann", "o1", outcome{status: Redeemed}},
		"before it":                         {owned(nil), begin.Add(-1), "ann", "o1", outcome{err: ErrNotStarted}},
		"at the first instant too late":     {owned(nil), until, "ann", "o1", outcome{err: ErrExpired}},
		"another's":                         {owned(nil), noon, "bob", "o1", outcome{err: ErrUnavailable}},
		"nobody said who":                   {owned(nil), noon, "", "o1", outcome{err: ErrUnavailable}},
		"another's that is used":            {owned(used("o1", "")), noon, "bob", "o1", outcome{err: ErrUnavailable}},
		"not issued":                        {owned(func(c *Coupon) { c.Status, c.User = Available, "" }), noon, "", "o1", outcome{err: ErrUnavailable}},
		"the same order again":              {owned(used("o1", "")), after, "ann", "o1", outcome{replayed: true, status: Redeemed}},
		"another order later":               {owned(used("o1", "")), noon, "ann", "o2", outcome{err: ErrAlreadyRedeemed}},
		"the order that holds it":           {owned(holds("o1", noon.Add(1))), noon, "ann", "o1", outcome{status: Redeemed}},
		"the order that holds it, late":     {owned(holds("o1", after.Add(1))), after, "ann", "o1", outcome{status: Redeemed}},
		"held by another":                   {owned(holds("o2", noon.Add(1))), noon, "ann", "o1", outcome{err: ErrReserved}},
		"another's hold has lapsed":         {owned(holds("o2", noon)), noon, "ann", "o1", outcome{status: Redeemed}},
		"its own hold lapsed after the end": {owned(holds("o1", after)), after, "ann", "o1", outcome{err: ErrExpired}},
		"bearer, without a user":            {bearer(nil), noon, "", "o1", outcome{status: Redeemed}},
		"bearer, by a user":                 {bearer(nil), noon, "bob", "o1", outcome{status: Redeemed}},
		"bearer, used, same order":          {bearer(used("o1", "bob")), noon, "bob", "o1", outcome{replayed: true, status: Redeemed}},
		"bearer, used, order for another":   {bearer(used("o1", "bob")), noon, "ann", "o1", outcome{err: ErrMismatch}},
		"bearer, used, somebody else":       {bearer(used("o1", "bob")), noon, "ann", "o2", outcome{err: ErrUnavailable}},
		"bearer, used, who used it":         {bearer(used("o1", "bob")), noon, "bob", "o2", outcome{err: ErrAlreadyRedeemed}},
	} {
		t.Run(name, func(t *testing.T) {
			did, err := c.coupon.redeem(c.now, c.user, c.order)
			judge(t, c.coupon, did, err, c.want)
			if err == nil && !did.replayed && (did.next.RedeemedOrder != c.order || !did.next.RedeemedAt.Equal(c.now) || did.next.held(c.now)) {
				t.Errorf("%+v", did.next)
			}
		})
	}
}

func TestReserveAndRelease(t *testing.T) {
	for name, c := range map[string]struct {
		coupon           Coupon
		user, order      string
		reserve, release outcome
	}{
		"free":                   {owned(nil), "ann", "o1", outcome{status: Reserved}, outcome{err: ErrNotReserved}},
		"another's":              {owned(nil), "bob", "o1", outcome{err: ErrUnavailable}, outcome{err: ErrUnavailable}},
		"held by the order":      {owned(holds("o1", noon.Add(1))), "ann", "o1", outcome{replayed: true, status: Reserved}, outcome{status: Issued}},
		"held by another":        {owned(holds("o2", noon.Add(1))), "ann", "o1", outcome{err: ErrReserved}, outcome{err: ErrReserved}},
		"the order's has lapsed": {owned(holds("o1", noon)), "ann", "o1", outcome{status: Reserved}, outcome{status: Issued}},
		"another's has lapsed":   {owned(holds("o2", noon)), "ann", "o1", outcome{status: Reserved}, outcome{err: ErrNotReserved}},
		"released by the order":  {owned(func(c *Coupon) { c.ReservedOrder = "o1" }), "ann", "o1", outcome{status: Reserved}, outcome{replayed: true, status: Issued}},
		"redeemed by the order":  {owned(used("o1", "")), "ann", "o1", outcome{err: ErrAlreadyRedeemed}, outcome{err: ErrAlreadyRedeemed}},
		"expired":                {owned(func(c *Coupon) { c.Valid.Until = noon }), "ann", "o1", outcome{err: ErrExpired}, outcome{err: ErrNotReserved}},
		"bearer":                 {bearer(nil), "", "o1", outcome{status: Reserved}, outcome{err: ErrNotReserved}},
	} {
		t.Run(name, func(t *testing.T) {
			did, err := c.coupon.reserve(noon, c.user, c.order, time.Minute)
			judge(t, c.coupon, did, err, c.reserve)
			if err == nil && !did.replayed && !did.next.ReservedUntil.Equal(noon.Add(time.Minute)) {
				t.Errorf("held until %v", did.next.ReservedUntil)
			}
			did, err = c.coupon.release(noon, c.user, c.order)
			judge(t, c.coupon, did, err, c.release)
		})
	}
}

func TestBind(t *testing.T) {
	for name, c := range map[string]struct {
		coupon Coupon
		want   outcome
	}{
		"bearer":          {bearer(nil), outcome{status: Issued}},
		"the user's":      {owned(nil), outcome{replayed: true, status: Issued}},
		"another's":       {owned(func(c *Coupon) { c.User = "bob" }), outcome{err: ErrUnavailable}},
		"used":            {bearer(used("o1", "")), outcome{err: ErrUnavailable}},
		"held":            {bearer(holds("o1", noon.Add(1))), outcome{err: ErrReserved}},
		"a lapsed hold":   {bearer(holds("o1", noon)), outcome{status: Reserved}},
		"expired":         {bearer(func(c *Coupon) { c.Valid.Until = noon }), outcome{err: ErrExpired}},
		"not yet started": {bearer(func(c *Coupon) { c.Valid.From = until }), outcome{status: Issued}},
	} {
		t.Run(name, func(t *testing.T) {
			did, err := c.coupon.bind(noon, "ann")
			judge(t, c.coupon, did, err, c.want)
		})
	}
}

func TestVoidGivesBackWhatTheOrderRedeemed(t *testing.T) {
	redeemed := owned(used("o1", ""))
	did, err := redeemed.void(noon, "o1")
	judge(t, redeemed, did, err, outcome{status: Issued})
	if got := did.next.At(until); got != Expired {
		t.Errorf("a coupon voided after its end is %v, want EXPIRED", got)
	}
	for name, c := range map[string]Coupon{"another order": redeemed, "not redeemed": owned(nil)} {
		if _, err := c.void(noon, "o2"); !errors.Is(err, ErrWrongOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVoidedBeforeTellsRepetitionFromMistake(t *testing.T) {
	voided := Event{Type: WasVoided, Order: "o1", Request: "r1"}
	for name, c := range map[string]struct {
		events []Event
		call   Call
		want   bool
		err    error
	}{
		"never":                       {nil, Call{Order: "o1", Request: "r1"}, false, nil},
		"the same":                    {[]Event{voided}, Call{Order: "o1", Request: "r1"}, true, nil},
		"the same for another order":  {[]Event{voided}, Call{Order: "o2", Request: "r1"}, false, ErrMismatch},
		"another for the same order":  {[]Event{voided}, Call{Order: "o1", Request: "r2"}, false, ErrRedemptionVoided},
		"another for another order":   {[]Event{voided}, Call{Order: "o2", Request: "r2"}, false, nil},
		"only redeemed by that order": {[]Event{{Type: WasRedeemed, Order: "o1", Request: "r1"}}, Call{Order: "o1", Request: "r1"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := voidedBefore(c.events, c.call)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%v, %v; want %v, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestAllowCountsClaimsAndKnowsRequests(t *testing.T) {
	made := []Claim{
		{Request: "bind", Number: 0, Coupon: 1, Done: true},
		{Request: "first", Number: 1, Coupon: 2, Done: true},
		{Request: "second", Number: 2, Coupon: 3},
	}
	for name, c := range map[string]struct {
		limit   int
		state   CampaignState
		request string
		before  ID
		number  int
		err     error
	}{
		"below the limit":             {3, Active, "third", 0, 3, nil},
		"at the limit":                {2, Active, "third", 0, 0, ErrUserLimit},
		"the same request":            {2, Active, "first", 2, 1, nil},
		"the same, ended since":       {2, Ended, "second", 3, 2, nil},
		"a request that was a bind's": {3, Active, "bind", 0, 0, ErrMismatch},
		"paused":                      {3, Paused, "third", 0, 0, ErrCampaignPaused},
		"ended":                       {3, Ended, "third", 0, 0, ErrCampaignEnded},
	} {
		t.Run(name, func(t *testing.T) {
			before, number, err := allow(made, Campaign{State: c.state, PerUserLimit: c.limit}, c.request, noon)
			var got ID
			if before != nil {
				got = before.Coupon
			}
			if got != c.before || number != c.number || !errors.Is(err, c.err) {
				t.Errorf("%d, %d, %v; want %d, %d, %v", got, number, err, c.before, c.number, c.err)
			}
			if refused, ok := errors.AsType[*Refusal](err); ok && c.err == ErrUserLimit && len(refused.Held) != 2 {
				t.Errorf("held %v, want both claims", refused.Held)
			}
		})
	}
}

func TestSpreadIsEvenAndExact(t *testing.T) {
	for n := range int64(200) {
		var sum, least, most int64 = 0, n, 0
		for _, q := range spread(n) {
			sum, least, most = sum+q, min(least, q), max(most, q)
		}
		if sum != n || most-least > 1 {
			t.Errorf("%d: sum %d, %d to %d", n, sum, least, most)
		}
	}
}

func TestAfterwardsAsksOthersForWhatSomeLack(t *testing.T) {
	b := Batch{Count: 100, Quota: spread(100)}
	var short [32]int64
	short[3], short[9] = b.Quota[3], 1
	next := b.afterwards(short)
	if next.Done || next.Quota[3] != 0 || !next.Dry[3] || !next.Dry[9] {
		t.Fatalf("%+v", next)
	}
	var sum int64
	for _, q := range next.Quota {
		sum += q
	}
	if sum != 100 {
		t.Errorf("quotas sum up to %d, want 100", sum)
	}
	if done := next.afterwards([32]int64{}); !done.Done || done.given() != 100 || done.lacking() != nil {
		t.Errorf("nothing lacks: %+v", done)
	}
	if done := b.afterwards(b.Quota); !done.Done || done.given() != 0 || !errors.Is(done.lacking(), ErrPoolExhausted) {
		t.Errorf("all are dry: %+v", done)
	}
}
