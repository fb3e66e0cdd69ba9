package main_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
)

// A zoneCase is a campaign whose coupons end around the next change of the clocks
// in a zone, whenever the test runs.
type zoneCase struct {
	zone    string
	longer  bool // the change makes a day longer; false: shorter, or no change
	before  int  // days from the last day of validity to that of the change
	capped  bool // valid_until is shortly before the end that the days give
	days    int
	changes time.Time // zero: never
}

// zoneCases are zones whose clocks change by an hour by night, by half an hour,
// at midnight, so that a day begins at one or begins twice, and never.
func zoneCases() []zoneCase {
	return []zoneCase{
		{zone: "Europe/Berlin"}, {zone: "Europe/Berlin", longer: true},
		{zone: "Europe/Berlin", capped: true},
		{zone: "America/New_York"}, {zone: "America/New_York", longer: true},
		{zone: "Australia/Lord_Howe"}, {zone: "Australia/Lord_Howe", longer: true},
		{zone: "Asia/Beirut"}, {zone: "Asia/Beirut", before: 1}, {zone: "Asia/Beirut", longer: true},
		{zone: "Africa/Cairo", before: 1}, {zone: "Africa/Cairo", longer: true},
		{zone: "America/Havana", before: 1}, {zone: "America/Havana", longer: true, before: 1},
		{zone: "Asia/Kathmandu"},
	}
}

// plan chooses the days of validity: those to the next change at least three days
// ahead, or 30 where there is none.
func (c *zoneCase) plan(t *testing.T, now time.Time) {
	t.Helper()
	zone, err := time.LoadLocation(c.zone)
	if err != nil {
		t.Fatal(err)
	}
	c.days = 30
	today := day(now.In(zone))
	for at := now.In(zone); ; {
		_, end := at.ZoneBounds()
		if end.IsZero() {
			return
		}
		_, was := at.Zone()
		_, is := end.Zone()
		away := int(day(end).Sub(today).Hours() / 24)
		if away >= 3 && is != was && (is < was) == c.longer {
			c.days, c.changes = away-c.before, end
			return
		}
		at = end
	}
}

// day returns the date of t at midnight in UTC.
func day(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// A calendar is PostgreSQL's: of each quarter of an hour it says which date it is
// in a zone.
type calendar struct{ *pgx.Conn }

func openCalendar(t *testing.T) calendar {
	db, err := pgx.Connect(t.Context(), realtest.PostgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(t.Context()) })
	if _, err := db.Exec(t.Context(), "SET TIME ZONE 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return calendar{db}
}

// begin returns the first quarter whose date in the zone is at least so many days
// after that of at.
func (c calendar) begin(t *testing.T, zone string, at time.Time, days int) (first time.Time) {
	t.Helper()
	err := c.QueryRow(t.Context(), `
		SELECT min(i)
		FROM generate_series(date_trunc('hour', $1::timestamptz) + make_interval(days => $2::int - 2),
		                     $1::timestamptz + make_interval(days => $2::int + 3), '15 minutes') i
		WHERE (i AT TIME ZONE $3)::date >= ($1::timestamptz AT TIME ZONE $3)::date + $2::int`, at, days, zone).Scan(&first)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// TestCouponsEndWithTheDaysOfTheirZone claims coupons of a running server, by the
// clock as it is, and compares their ends with PostgreSQL's calendar.
func TestCouponsEndWithTheDaysOfTheirZone(t *testing.T) {
	t.Parallel()
	calendar := openCalendar(t)
	p := start(t, "--coupons", "embedded")
	seen := map[string]int{}
	for _, c := range zoneCases() {
		now := time.Now()
		c.plan(t, now)
		seen[calendar.lastDay(t, c, now)]++
		fields := fmt.Sprintf(`"time_zone":%q,"valid_days":%d`, c.zone, c.days)
		var limit time.Time
		if c.capped {
			limit = calendar.begin(t, c.zone, now, c.days+1).Add(-90 * time.Minute)
			fields += fmt.Sprintf(`,"valid_until":%q`, limit.Format(time.RFC3339))
		}
		id := p.campaign(t, fields)
		p.generated(t, id)
		claimed, expires := p.claimedAt(t, id)
		want := calendar.begin(t, c.zone, claimed, c.days+1)
		if c.capped {
			want = limit
		}
		if !expires.Equal(want) {
			t.Errorf("%s, %d days from %s: expires %s, PostgreSQL says %s", c.zone, c.days, claimed, expires, want)
		}
	}
	t.Logf("last days of validity, and what comes after them: %v", seen)
	for _, kind := range []string{"23h0m0s, then 00:00", "25h0m0s, then 00:00", "23h30m0s, then 00:00", "24h30m0s, then 00:00", "24h0m0s, then 01:00", "24h0m0s, then 00:00 for the first time"} {
		if seen[kind] == 0 {
			t.Errorf("no coupon was valid for a last day of %s", kind)
		}
	}
}

// lastDay describes the last day of a coupon that is claimed at that instant.
func (c calendar) lastDay(t *testing.T, z zoneCase, claim time.Time) string {
	t.Helper()
	begin, end := c.begin(t, z.zone, claim, z.days), c.begin(t, z.zone, claim, z.days+1)
	var local, later string
	err := c.QueryRow(t.Context(), "SELECT to_char($1::timestamptz AT TIME ZONE $2, 'HH24:MI'), to_char(($1::timestamptz + interval '1 hour') AT TIME ZONE $2, 'HH24:MI')", end, z.zone).Scan(&local, &later)
	if err != nil {
		t.Fatal(err)
	}
	kind := fmt.Sprintf("%v, then %s", end.Sub(begin), local)
	if later == local {
		kind += " for the first time"
	}
	return kind
}

// claimedAt claims a coupon and returns when the server says that was, and the
// coupon's end.
func (p *process) claimedAt(t *testing.T, campaign string) (claimed, expires time.Time) {
	t.Helper()
	var c struct {
		Coupon struct {
			ID      string
			Expires time.Time `json:"expire_time"`
		}
	}
	p.claim(t, campaign, "ann", "r1").into(t, 200, &c)
	var history struct {
		Events []struct {
			Version json.Number
			At      time.Time
		}
	}
	p.rest(t, "GET", "/v1/coupons/"+c.Coupon.ID+"/history", "").into(t, 200, &history)
	for _, e := range history.Events {
		if e.Version == "2" {
			claimed = e.At
		}
	}
	if claimed.IsZero() {
		t.Fatalf("no claim in %+v", history)
	}
	return claimed, c.Coupon.Expires
}
