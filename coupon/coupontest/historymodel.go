package coupontest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// An Act is one call about a coupon, as its caller made it.
type Act struct {
	Op      string // claim, bind, reserve, release, redeem, void or get
	Coupon  coupon.ID
	User    string
	Order   string
	Request string
	TTL     time.Duration // of reserve
}

// An Answer is what the caller was told. Where it was told nothing, or that it may
// ask again, the outcome is not known.
type Answer struct {
	Unknown  bool
	Refusal  string // its code, as the API has it; "": done
	Replayed bool
	View     View
}

// A View is what a coupon looks like to a caller.
type View struct {
	Status   coupon.Status
	Version  uint32
	User     string
	Redeemed string // order
}

// A Life is what a coupon is, by the contract, written down anew: nothing of the
// code under test decides here. Lives are values; those of a history are equal if
// they look the same to every caller.
type Life struct {
	View
	From, Until time.Time // zero: no limit on that side

	Hold   string    // order that holds it, or held it when that lapsed
	Lapses time.Time // when the hold does
	Last   string    // order that held it last and let it go
	UsedBy string    // who redeemed it as a bearer coupon
	Claim  string    // request
	Once   set       // orders that ever redeemed it
	Voids  pairs     // request to order
}

// set and pairs are changed by copying, so that lives can be kept.
type (
	set   map[string]bool
	pairs map[string]string
)

func (s set) with(k string) set {
	n := maps.Clone(s)
	if n == nil {
		n = set{}
	}
	n[k] = true
	return n
}

func (p pairs) with(k, v string) pairs {
	n := maps.Clone(p)
	if n == nil {
		n = pairs{}
	}
	n[k] = v
	return n
}

// Free returns the life of a coupon that nobody has, Bearer that of one that was
// issued to an order.
func Free() Life   { return Life{View: View{Status: coupon.Available, Version: 1}} }
func Bearer() Life { return Life{View: View{Status: coupon.Issued, Version: 2}} }

// Equal reports whether two lives look the same to every caller.
func (l Life) Equal(m Life) bool {
	return l.View == m.View && l.Hold == m.Hold && l.Last == m.Last && l.UsedBy == m.UsedBy && l.Claim == m.Claim &&
		l.Lapses.Equal(m.Lapses) && maps.Equal(l.Once, m.Once) && maps.Equal(l.Voids, m.Voids)
}

// Do returns what an act at an instant comes to: the life after it and the answer.
func (l Life) Do(a Act, now time.Time) (Life, Answer) {
	switch a.Op {
	case "claim":
		return l.claim(a)
	case "void":
		return l.void(a)
	case "get":
		return l, Answer{View: l.view()}
	}
	if refusal := l.stranger(a); refusal != "" {
		return l, Answer{Refusal: refusal}
	}
	switch a.Op {
	case "bind":
		return l.bind(a, now)
	case "reserve":
		return l.reserve(a, now)
	case "release":
		return l.release(a, now)
	case "redeem":
		return l.redeem(a, now)
	}
	panic("no such act: " + a.Op)
}

// stranger refuses whoever has nothing to do with the coupon.
func (l Life) stranger(a Act) string {
	used := l.User == "" && l.Status == coupon.Redeemed
	knows := a.Order != "" && a.Order == l.Redeemed || a.User != "" && a.User == l.UsedBy
	if l.Status == coupon.Available || l.User != "" && l.User != a.User || used && !knows {
		return "COUPON_UNAVAILABLE"
	}
	return ""
}

// view is what callers see: of a used bearer coupon, its user is who used it.
func (l Life) view() View {
	v := l.View
	v.User = cmp.Or(v.User, l.UsedBy)
	return v
}

func (l Life) same() (Life, Answer) { return l, Answer{Replayed: true, View: l.view()} }

func (l Life) no(code string) (Life, Answer) { return l, Answer{Refusal: code} }

// next is the life after a change.
func (l Life) next(s coupon.Status) (Life, Answer) {
	l.Status = s
	l.Version++
	return l, Answer{View: l.view()}
}

// held reports whether an order holds the coupon, and whether it is this one.
func (l Life) held(order string, now time.Time) (held, mine bool) {
	held = l.Status == coupon.Reserved && now.Before(l.Lapses)
	return held, held && l.Hold == order
}

// outside returns why the coupon cannot be used at all now; "": it can.
func (l Life) outside(now time.Time) string {
	switch {
	case now.Before(l.From):
		return "NOT_STARTED"
	case !l.Until.IsZero() && !now.Before(l.Until):
		return "EXPIRED"
	}
	return ""
}

// claim is of the coupon that the claim was told it got.
func (l Life) claim(a Act) (Life, Answer) {
	switch {
	case l.User == a.User && l.Claim == a.Request && a.Request != "":
		return l.same()
	case l.Status != coupon.Available:
		return l.no("taken")
	}
	l.User, l.Claim = a.User, a.Request
	return l.next(coupon.Issued)
}

func (l Life) bind(a Act, now time.Time) (Life, Answer) {
	held, _ := l.held("", now)
	switch {
	case l.User == a.User:
		return l.same()
	case l.Status == coupon.Redeemed:
		return l.no("ALREADY_REDEEMED")
	case held:
		return l.no("RESERVED_BY_OTHER_ORDER")
	case l.outside(now) == "EXPIRED":
		return l.no("EXPIRED")
	}
	l.User = a.User
	return l.next(l.Status)
}

func (l Life) reserve(a Act, now time.Time) (Life, Answer) {
	held, mine := l.held(a.Order, now)
	switch {
	case l.Status == coupon.Redeemed:
		return l.no("ALREADY_REDEEMED")
	case mine:
		return l.same()
	case held:
		return l.no("RESERVED_BY_OTHER_ORDER")
	case l.outside(now) != "":
		return l.no(l.outside(now))
	}
	l.Hold, l.Lapses, l.Last = a.Order, now.Add(a.TTL), ""
	return l.next(coupon.Reserved)
}

func (l Life) release(a Act, now time.Time) (Life, Answer) {
	held, mine := l.held(a.Order, now)
	switch {
	case l.Status == coupon.Redeemed:
		return l.no("ALREADY_REDEEMED")
	case held && !mine:
		return l.no("RESERVED_BY_OTHER_ORDER")
	case l.Status == coupon.Reserved && l.Hold == a.Order: // lapsed or not
		l.Hold, l.Lapses, l.Last = "", time.Time{}, a.Order
		return l.next(coupon.Issued)
	case l.Status == coupon.Issued && l.Last == a.Order:
		return l.same()
	}
	return l.no("NOT_RESERVED")
}

func (l Life) redeem(a Act, now time.Time) (Life, Answer) {
	held, mine := l.held(a.Order, now)
	switch {
	case l.Status == coupon.Redeemed && l.Redeemed != a.Order:
		return l.no("ALREADY_REDEEMED")
	case l.Status == coupon.Redeemed && l.User == "" && l.UsedBy != a.User:
		return l.no("IDEMPOTENCY_MISMATCH")
	case l.Status == coupon.Redeemed:
		return l.same()
	case held && !mine:
		return l.no("RESERVED_BY_OTHER_ORDER")
	case !mine && l.outside(now) != "":
		return l.no(l.outside(now))
	case l.Once[a.Order]: // and it was voided
		return l.no("REDEMPTION_VOIDED")
	}
	l.Hold, l.Lapses, l.Last = "", time.Time{}, ""
	l.Redeemed, l.Once = a.Order, l.Once.with(a.Order)
	if l.User == "" {
		l.UsedBy = a.User
	}
	return l.next(coupon.Redeemed)
}

func (l Life) void(a Act) (Life, Answer) {
	order, made := l.Voids[a.Request]
	switch {
	case made && order == a.Order:
		return l.same()
	case made:
		return l.no("IDEMPOTENCY_MISMATCH")
	case slices.Contains(slices.Collect(maps.Values(l.Voids)), a.Order):
		return l.no("REDEMPTION_VOIDED")
	case l.Status != coupon.Redeemed || l.Redeemed != a.Order:
		return l.no("WRONG_ORDER")
	}
	l.Voids = l.Voids.with(a.Request, a.Order)
	l.Redeemed, l.UsedBy = "", ""
	return l.next(coupon.Issued)
}
