package coupon_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // as the command does

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/coupon"
)

var update = flag.Bool("update", false, "write the golden files anew")

// zoneCases are claims whose coupons end on days that are not like others.
var zoneCases = []struct {
	zone  string
	claim string // local
	days  int
	note  string
}{
	{"UTC", "2024-02-28 00:00:00", 1, "leap day"},
	{"UTC", "2024-02-28 23:59:59", 1, "same end, whenever on the day"},
	{"Europe/Berlin", "2024-03-30 12:00:00", 1, "valid on the day of 23 hours"},
	{"Europe/Berlin", "2024-10-26 12:00:00", 1, "valid on the day of 25 hours"},
	{"Europe/Berlin", "2024-03-31 01:59:59", 7, "claimed on the day of 23 hours"},
	{"America/New_York", "2024-03-09 23:59:59", 1, "23 hours"},
	{"America/New_York", "2024-11-02 00:00:00", 1, "25 hours"},
	{"Australia/Lord_Howe", "2024-04-06 09:00:00", 1, "24.5 hours"},
	{"Asia/Kathmandu", "2024-06-01 09:00:00", 30, "45 minutes off the hour"},
	{"America/Sao_Paulo", "2018-11-02 12:00:00", 1, "next day begins at 01:00"},
	{"America/Sao_Paulo", "2018-11-03 12:00:00", 1, "valid on the day that begins at 01:00"},
	{"America/Sao_Paulo", "2018-02-16 12:00:00", 1, "23:00 to 24:00 twice on the last day"},
	{"Asia/Beirut", "2022-03-25 12:00:00", 1, "next day begins at 01:00"},
	{"America/Havana", "2022-11-04 12:00:00", 1, "next day has midnight twice"},
	{"America/St_Johns", "2006-10-27 12:00:00", 1, "next day begins, goes back a minute later, begins again"},
	{"Pacific/Apia", "2011-12-28 12:00:00", 1, "next day left out of the calendar"},
	{"Pacific/Apia", "2011-12-29 12:00:00", 1, "last day left out of the calendar"},
	{"Pacific/Kiritimati", "2024-12-31 23:59:59", 1, "14 hours ahead"},
	{"Europe/Berlin", "2024-01-31 10:00:00", 3660, "ten years"},
}

func TestEndsOfValidity(t *testing.T) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "zone\tclaim\tdays\tends (local)\tends (UTC)\tnote")
	for _, c := range zoneCases {
		zone := loadZone(t, c.zone)
		claim, err := time.ParseInLocation(time.DateTime, c.claim, zone)
		if err != nil {
			t.Fatal(err)
		}
		until := coupon.Validity{Days: c.days, Zone: zone}.Window(claim).Until
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", c.zone, c.claim, c.days,
			until.In(zone).Format("2006-01-02 15:04:05 -07:00"), until.UTC().Format(time.RFC3339), c.note)
	}
	w.Flush()
	golden(t, "validity.golden", b.String())
}

func TestWindow(t *testing.T) {
	berlin := loadZone(t, "Europe/Berlin")
	at := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		u, err := time.ParseInLocation("2006-01-02 15:04", s, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for name, c := range map[string]struct {
		from, until string
		days        int
		claim       string
		wantUntil   string
	}{
		"until alone":                     {"2024-05-01 00:00", "2024-06-01 00:00", 0, "2024-05-10 12:00", "2024-06-01 00:00"},
		"days alone":                      {"2024-05-01 00:00", "", 3, "2024-05-10 12:00", "2024-05-14 00:00"},
		"days within until":               {"2024-05-01 00:00", "2024-06-01 00:00", 3, "2024-05-10 12:00", "2024-05-14 00:00"},
		"days capped by until":            {"2024-05-01 00:00", "2024-05-12 18:30", 3, "2024-05-10 12:00", "2024-05-12 18:30"},
		"claim before the start":          {"2024-05-20 09:00", "", 3, "2024-05-10 12:00", "2024-05-24 00:00"},
		"claim in the last local second":  {"2024-05-01 00:00", "", 1, "2024-05-10 23:59", "2024-05-12 00:00"},
		"claim in the first local second": {"2024-05-01 00:00", "", 1, "2024-05-11 00:00", "2024-05-13 00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			v := coupon.Validity{From: at(c.from), Until: at(c.until), Days: c.days, Zone: berlin}
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
			w := v.Window(at(c.claim))
			if !w.From.Equal(at(c.from)) || !w.Until.Equal(at(c.wantUntil)) {
				t.Errorf("got %v, want %v to %v", w, c.from, c.wantUntil)
			}
		})
	}
}

// TestEndIsTheFirstInstantOfItsDay finds the end by going through the minutes
// one by one, mostly around changes of the offset in zones that did strange things.
func TestEndIsTheFirstInstantOfItsDay(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/Havana",
		"America/St_Johns", "Asia/Beirut", "Asia/Amman", "Asia/Tehran", "Africa/Cairo", "Africa/Casablanca",
		"Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Antarctica/Troll", "Asia/Pyongyang", "America/Asuncion"}
	rng := rand.New(rand.NewPCG(1, 2))
	late := 0
	for range 800 {
		zone := loadZone(t, zones[rng.IntN(len(zones))])
		claim := time.Date(1980, 1, 1, 0, 0, rng.IntN(60*365*86400), 0, time.UTC)
		if transition, _ := claim.In(zone).ZoneBounds(); rng.IntN(3) > 0 && !transition.IsZero() { // most around changes
			claim = transition.Add(time.Duration(rng.IntN(96*3600)-72*3600) * time.Second)
		}
		days := 1 + rng.IntN(3)
		until := coupon.Validity{Days: days, Zone: zone}.Window(claim).Until
		if want := slowStart(claim, days+1, zone); !until.Equal(want) {
			t.Fatalf("%s, claim %s, %d days: ends %s, want %s", zone, claim, days, until, want)
		}
		if h, m, _ := until.In(zone).Clock(); h > 0 || m > 0 {
			late++
		}
	}
	if late < 8 {
		t.Errorf("only %d days began after midnight", late)
	}
}

// slowStart returns the first minute whose local date is at least so many days
// after claim's. Zones change on full minutes since 1980, but for one of 1/4 s.
func slowStart(claim time.Time, days int, zone *time.Location) time.Time {
	y, m, d := claim.In(zone).Date()
	want := time.Date(y, m, d+days, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	u := claim.UTC().Truncate(time.Minute).AddDate(0, 0, days-3)
	for u.In(zone).Format(time.DateOnly) < want {
		u = u.Add(time.Minute)
	}
	return u
}

func TestValidityValidate(t *testing.T) {
	now := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		validity coupon.Validity
		field    string // at fault; "": none
	}{
		"until":              {coupon.Validity{From: now, Until: now.Add(1), Zone: time.UTC}, ""},
		"days":               {coupon.Validity{Days: 1, Zone: time.UTC}, ""},
		"most days":          {coupon.Validity{Days: coupon.MaxValidDays, Zone: time.UTC}, ""},
		"neither":            {coupon.Validity{From: now, Zone: time.UTC}, "valid_until"},
		"no zone":            {coupon.Validity{Days: 1}, "time_zone"},
		"negative days":      {coupon.Validity{Days: -1, Zone: time.UTC}, "valid_days"},
		"too many days":      {coupon.Validity{Days: coupon.MaxValidDays + 1, Zone: time.UTC}, "valid_days"},
		"latest start":       {coupon.Validity{From: time.Date(9899, 12, 31, 23, 59, 59, 0, time.UTC), Days: coupon.MaxValidDays, Zone: time.UTC}, ""},
		"starts too late":    {coupon.Validity{From: time.Date(9900, 1, 1, 0, 0, 0, 0, time.UTC), Days: 1, Zone: time.UTC}, "valid_from"},
		"starts in 1970":     {coupon.Validity{From: time.UnixMilli(0), Days: 1, Zone: time.UTC}, "valid_from"},
		"ends in 1970":       {coupon.Validity{From: time.UnixMilli(-1), Until: time.UnixMilli(0), Zone: time.UTC}, "valid_from"},
		"ends as it starts":  {coupon.Validity{From: now, Until: now, Zone: time.UTC}, "valid_until"},
		"ends before starts": {coupon.Validity{From: now, Until: now.Add(-1), Days: 3, Zone: time.UTC}, "valid_until"},
	} {
		t.Run(name, func(t *testing.T) { checkField(t, c.validity.Validate(), c.field) })
	}
}

func TestLoadZoneRefusesWhatIsNoZone(t *testing.T) {
	for _, name := range []string{"", "Local", "Mars/Olympus", "Europe/Berlin ", "../etc/passwd", "/etc/localtime", "CEST", strings.Repeat("x", 500)} {
		_, err := coupon.LoadZone(name)
		checkField(t, err, "time_zone")
	}
	if _, err := coupon.LoadZone("Mars/Olympus"); err == nil || !strings.Contains(err.Error(), `"Mars/Olympus"`) {
		t.Errorf("the error does not name the zone: %v", err)
	}
}

// TestWindowIsHalfOpen is to the nanosecond.
func TestWindowIsHalfOpen(t *testing.T) {
	from := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	w := coupon.Window{From: from, Until: from.Add(time.Hour)}
	for _, c := range []struct {
		after          time.Duration
		started, ended bool
	}{{-1, false, false}, {0, true, false}, {time.Hour - 1, true, false}, {time.Hour, true, true}} {
		if now := from.Add(c.after); w.Started(now) != c.started || w.Ended(now) != c.ended {
			t.Errorf("%v after its start: started %v, ended %v", c.after, w.Started(now), w.Ended(now))
		}
	}
	if always := (coupon.Window{}); !always.Started(from) || always.Ended(from) {
		t.Error("the zero window is not always")
	}
}

// TestStatusOverTime shows a coupon that was reserved shortly before its end.
func TestStatusOverTime(t *testing.T) {
	end := time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC)
	held := end.Add(10 * time.Minute)
	for _, c := range []struct {
		stored coupon.Status
		until  time.Time
		now    time.Time
		want   coupon.Status
	}{
		{coupon.Issued, time.Time{}, end.Add(-time.Millisecond), coupon.Issued},
		{coupon.Issued, time.Time{}, end, coupon.Expired},
		{coupon.Reserved, held, end.Add(-time.Millisecond), coupon.Reserved},
		{coupon.Reserved, held, end, coupon.Reserved},
		{coupon.Reserved, held, held.Add(-time.Millisecond), coupon.Reserved},
		{coupon.Reserved, held, held, coupon.Expired},
		{coupon.Reserved, end.Add(-time.Hour), end.Add(-time.Hour), coupon.Issued},
		{coupon.Redeemed, held, end.Add(time.Hour), coupon.Redeemed},
		{coupon.Voided, held, end.Add(time.Hour), coupon.Voided},
		{coupon.Available, time.Time{}, end.Add(time.Hour), coupon.Available},
	} {
		if got := coupon.StatusAt(c.stored, c.until, end, c.now); got != c.want {
			t.Errorf("stored %v, held until %v, at %v: %v, want %v", c.stored, c.until, c.now, got, c.want)
		}
	}
}

func loadZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := coupon.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; accept with -update):\n%s", file, d)
	}
}
