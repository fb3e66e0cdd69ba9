package coupon

import (
	"sync"
	"time"
)

// A Validity is when the coupons of a campaign are valid. It needs Until, Days
// or both.
type Validity struct {
	From  time.Time // first instant, after 1970 and before 9900; zero: always has been
	Until time.Time // first instant no longer; zero: Days alone decides
	Days  int       // local days after that of the claim; 0: Until alone decides
	Zone  *time.Location
}

// MaxValidDays is the most days a [Validity] may have, ten years.
const MaxValidDays = 3660

// What a validity may begin in: the databases keep 1970 as no time at all, and the
// end has to have a year of four digits.
var (
	firstFrom = time.UnixMilli(1)
	endOfFrom = time.Date(9900, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Validate reports what is wrong with the validity, as [ErrInvalid].
func (v Validity) Validate() error {
	switch {
	case v.Zone == nil:
		return invalidField("time_zone", "time_zone is missing: want a name of the IANA database, like Europe/Berlin")
	case v.Days < 0 || v.Days > MaxValidDays:
		return invalidField("valid_days", "valid_days is %d: want 1 to %d", v.Days, MaxValidDays)
	case v.Days == 0 && v.Until.IsZero():
		return invalidField("valid_until", "neither valid_until nor valid_days is given: coupons need an end")
	case !v.From.IsZero() && (v.From.Before(firstFrom) || !v.From.Before(endOfFrom)):
		return invalidField("valid_from", "valid_from is %s: want an instant after 1970 began and before 9900", v.From.UTC().Format(time.RFC3339))
	case !v.Until.IsZero() && !v.Until.After(v.From):
		return invalidField("valid_until", "valid_until %s is not after valid_from %s",
			v.Until.UTC().Format(time.RFC3339), v.From.UTC().Format(time.RFC3339))
	}
	return nil
}

// Window returns when a coupon is valid that is claimed, or issued to a user, at
// that instant. It is computed once and stored: later changes of the campaign or
// of the zone's rules do not move it.
//
// Days are those of the zone. Day 0 is the one of the claim, or of From if the
// claim comes earlier; the coupon is valid to the end of day number Days,
// whether its days have 23, 24 or 25 hours, but not beyond Until.
func (v Validity) Window(claim time.Time) Window {
	w := Window{From: v.From, Until: v.Until}
	if v.Days == 0 {
		return w
	}
	first := claim
	if v.From.After(claim) {
		first = v.From
	}
	if end := startOfDay(first, v.Days+1, v.Zone); w.Until.IsZero() || end.Before(w.Until) {
		w.Until = end
	}
	return w
}

// A Window is half-open: From belongs to it, Until does not. The zero Window is
// always.
type Window struct {
	From, Until time.Time // zero: no limit on that side
}

// Started reports whether the window has begun.
func (w Window) Started(now time.Time) bool { return !now.Before(w.From) }

// Ended reports whether the window is over.
func (w Window) Ended(now time.Time) bool { return !w.Until.IsZero() && !now.Before(w.Until) }

// StatusAt returns what a coupon is at an instant. A reservation whose time is
// past counts for nothing, and an issued coupon whose end is past is expired.
// One that is held stays held beyond the end, so that what was reserved in time
// can be redeemed.
func StatusAt(stored Status, reservedUntil, validUntil, now time.Time) Status {
	if stored == Reserved && !now.Before(reservedUntil) {
		stored = Issued
	}
	if stored == Issued && (Window{Until: validUntil}).Ended(now) {
		return Expired
	}
	return stored
}

// LoadZone returns the zone of a name in the IANA database, like Europe/Berlin
// or UTC. Any other is refused as [ErrInvalid].
//
// The data are the system's or, where it has none, what the program carries: a
// command that uses this package imports time/tzdata.
func LoadZone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // the last two depend on where the process runs
		return nil, invalidField("time_zone", "time_zone %.64q is not in the IANA database: want a name like Europe/Berlin or UTC", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// zones are those that were read, by name: as many at most as the database has. A
// claim needs one, and to read it takes ten times as long as all the rest that a
// claim calculates.
var zones sync.Map

// startOfDay returns the first instant of the local day that is so many days
// after the one of t. That is not always midnight: where clocks jump over it the
// day begins later, and a day left out altogether begins where the next one does.
func startOfDay(t time.Time, days int, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return firstAt(time.Date(y, m, d+days, 0, 0, 0, 0, time.UTC), zone)
}

// firstAt returns the first instant at which clocks of the zone show at least
// the given time, written as UTC. It goes through the stretches between changes
// of the offset from UTC: in each, the instant is wall minus the offset, unless
// the stretch begins with clocks that are beyond wall already.
func firstAt(wall time.Time, zone *time.Location) time.Time {
	at := wall.Add(-48 * time.Hour) // no offset was ever that large
	for {
		_, offset := at.In(zone).Zone()
		_, end := at.In(zone).ZoneBounds()
		first := wall.Add(-time.Duration(offset) * time.Second)
		if first.Before(at) {
			return at.UTC()
		}
		if end.IsZero() || first.Before(end) {
			return first
		}
		at = end
	}
}
