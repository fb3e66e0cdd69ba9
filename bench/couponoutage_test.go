package bench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
)

// outageSize is how many databases there are and how long a phase lasts.
type outageSize struct {
	databases int
	phase     time.Duration
	batches   int           // of 500 bearer coupons, to be redeemed and looked up
	scarce    int           // coupons of the scarce campaign on each shard
	answer    time.Duration // within which a call that needs what is gone is refused
	slower    float64       // how much slower the other calls may be than before
}

// What is promised of a database that is gone, beside the size's.
const (
	outageRate   = 100             // calls a second
	outageNotice = 2 * time.Second // until no claim takes a coupon of it any more
	outageSettle = 2 * time.Second // after it is back, until every call succeeds
)

// TestFaultCouponDatabases kills one of eight databases, then stops another one as
// well, brings both back, and takes the control database away, while calls come at
// a fixed rate. Those that need a database that is gone are refused in time; the
// others notice nothing. Without control claims go on for a minute, and everything
// else for ever.
func TestFaultCouponDatabases(t *testing.T) {
	// A hundred calls have no median to speak of, and the tests of other packages
	// run at the same time.
	size := outageSize{databases: 4, phase: time.Second, batches: 1, scarce: 8, answer: 3 * time.Second, slower: 10}
	if full {
		size = outageSize{databases: 8, phase: 10 * time.Second, batches: 6, scarce: 24, answer: 1500 * time.Millisecond, slower: 1.25}
	}
	o := newOutage(t, size)
	first, second := o.databases[0], o.databases[1]
	healthy := o.phase(size.phase, "healthy", func() {}).judge(t, nil)
	o.phase(size.phase, "one killed", first.Kill, 0).judge(t, healthy)
	o.phase(size.phase, "one killed, one stopped", second.Pause, 0, 1).judge(t, healthy)
	back := o.phase(size.phase, "both back", func() { second.Resume(); first.Start() })
	back.judge(t, healthy)
	<-time.After(time.Until(back.changed.Add(outageSettle)))
	stopped := o.phase(size.phase, "control stopped", o.control.Pause)
	stopped.judge(t, nil)
	if full {
		o.phase(size.phase, "control killed", o.control.Kill).judge(t, nil)
		o.afterAMinute(t, stopped.changed)
	}
}

// afterAMinute follows claims to the end of their minute without control, and
// beyond, until it is back.
func (o *outage) afterAMinute(t *testing.T, gone time.Time) {
	left := time.Until(gone.Add(58 * time.Second)) // a campaign was read up to a second before
	o.phase(left, "control killed, to the end of a minute", func() {}).judge(t, nil)
	<-time.After(time.Until(gone.Add(61 * time.Second)))
	beyond := o.phase(o.size.phase/2, "control killed, after a minute", func() {})
	beyond.noClaims = true
	beyond.judge(t, nil)
	back := o.phase(o.size.phase, "control back", o.control.Start)
	back.noClaimsBefore = true
	back.judge(t, nil)
}

// An outage is a server of coupons on databases that can be taken away one by one.
type outage struct {
	size      outageSize
	url       string
	client    *http.Client
	control   *realtest.MariaDBServer
	databases []*realtest.MariaDBServer
	at        shard.Map
	plenty    int64                    // a campaign that lasts
	scarce    int64                    // one whose slices on the last database are empty
	bearers   [shard.Count][]coupon.ID // to redeem and to look up
	made      map[string]int           // calls, by kind
	gone      []shard.Shard
}

// newOutage starts everything and makes what the calls need.
func newOutage(t *testing.T, size outageSize) *outage {
	o := &outage{size: size, made: map[string]int{}}
	o.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	small := []string{"innodb-buffer-pool-size=16M", "innodb-log-file-size=16M", "max-connections=100"}
	o.control = realtest.MariaDB(t, small...)
	text := fmt.Sprintf("control: %q\nshards:\n", o.control.CreateDatabase("control"))
	var names []string
	for i := range size.databases {
		db := realtest.MariaDB(t, small...)
		names = append(names, fmt.Sprint("db", i))
		text += fmt.Sprintf("  - {name: %s, dsn: %q}\n", names[i], db.CreateDatabase("coupons"))
		o.databases = append(o.databases, db)
	}
	text += "check_keys:\n  - {id: k1, created: 2026-01-01T00:00:00Z, secret: \"00112233445566778899aabbccddeeff\"}\n"
	file := filepath.Join(t.TempDir(), "coupons.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.at, err = shard.Spread(names...); err != nil {
		t.Fatal(err)
	}
	c := &coupons{}
	c.start(t, "--coupons", file)
	o.url = c.servers[0].URL
	o.stock(t, c)
	return o
}

// stock makes campaigns and bearer coupons, empties slices, and makes each kind of
// call on each shard, so that nothing is cold.
func (o *outage) stock(t *testing.T, c *coupons) {
	o.plenty = c.campaign(t, 200*shard.Count, 1).ID
	for i := range o.size.batches {
		issued, err := c.clients[0].Issue(t.Context(), coupon.IssueRequest{
			Campaign: o.plenty, Batch: fmt.Sprint("b", i), Order: "gifts", Count: 500})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range issued.Coupons {
			o.bearers[b.ID.Shard()] = append(o.bearers[b.ID.Shard()], b.ID)
		}
	}
	o.scarce = c.campaign(t, int64(o.size.scarce*shard.Count), 1).ID
	var calls []httpCall
	for range o.size.scarce * len(o.undisturbed()) {
		calls = append(calls, o.next("far"))
	}
	for range shard.Count {
		calls = append(calls, o.next("claim"), o.next("look up"), o.next("wallet"))
	}
	for range 8 {
		calls = append(calls, o.next("redeem"), o.next("far"))
	}
	for _, call := range calls {
		if a := call.make(o.client, time.Now()); a.status != http.StatusOK {
			t.Fatalf("%+v", a)
		}
	}
}

// undisturbed are the shards of the last database.
func (o *outage) undisturbed() []shard.Shard {
	return o.at.On(fmt.Sprint("db", o.size.databases-1))
}

// next returns one more call of a kind, in turn on all shards. Far claims are those
// of users of the last database, whose slices of the campaign are empty.
func (o *outage) next(kind string) httpCall {
	n := o.made[kind]
	o.made[kind]++
	at, round := shard.Shard(n%shard.Count), n/shard.Count
	switch kind {
	case "redeem":
		id := o.bearers[at][round]
		return httpCall{kind, at, "POST", o.url + "/v1/coupons:redeem", fmt.Sprintf(`{"id":"%d","order_no":"o-%d"}`, id, n)}
	case "look up":
		return httpCall{kind, at, "GET", fmt.Sprintf("%s/v1/coupons/%d", o.url, o.bearers[at][round%len(o.bearers[at])]), ""}
	case "claim":
		return o.claim(kind, o.plenty, at, round)
	case "far":
		all := o.undisturbed()
		return o.claim(kind, o.scarce, all[n%len(all)], n/len(all))
	}
	return httpCall{kind, at, "GET", o.url + "/v1/users/" + userOn(at, 0) + "/coupons", ""}
}

func (o *outage) claim(kind string, campaign int64, at shard.Shard, n int) httpCall {
	return httpCall{kind, at, "POST", fmt.Sprintf("%s/v1/campaigns/%d:claim", o.url, campaign),
		fmt.Sprintf(`{"user_id":%q,"request_no":"r1"}`, userOn(at, n))}
}

// userOn returns the n-th user of a shard.
func userOn(at shard.Shard, n int) string {
	for i := 0; ; i++ {
		user := fmt.Sprintf("user-%d-%d", n, i)
		if shard.Text(user).Bucket().Shard() == at {
			return user
		}
	}
}

// A phase of an outage is what was answered around the moment that databases went or
// came back.
type outagePhase struct {
	outageSize
	name                     string
	before, gone             []shard.Shard // that were away before that moment, and from it on
	noClaimsBefore, noClaims bool          // no campaign was known
	changed                  time.Time
	answers                  []httpAnswer
}

// phase makes calls and, when some are under way, the change, from which on the
// databases are gone.
func (o *outage) phase(d time.Duration, name string, change func(), gone ...int) outagePhase {
	p := outagePhase{outageSize: o.size, name: name, before: o.gone}
	for _, db := range gone {
		p.gone = append(p.gone, o.at.On(fmt.Sprint("db", db))...)
	}
	o.gone = p.gone
	var changing sync.WaitGroup
	changing.Go(func() {
		<-time.After(d / 10)
		change()
		p.changed = time.Now()
	})
	kinds := []string{"redeem", "look up", "claim", "wallet"}
	p.answers = openLoop(o.client, outageRate, d, func(i int) httpCall {
		if i%20 == 19 {
			return o.next("far")
		}
		return o.next(kinds[i%len(kinds)])
	})
	changing.Wait()
	return p
}

// judge fails the test where a phase is not as promised, and returns the times of
// the calls that needed nothing that was gone.
func (p outagePhase) judge(t *testing.T, healthy []time.Duration) (others []time.Duration) {
	t.Helper()
	var refused []time.Duration
	var last time.Duration
	for _, a := range p.answers {
		since := a.due.Sub(p.changed)
		wrong := p.wrong(a, since)
		switch {
		case wrong != "":
			t.Errorf("%s: %s on shard %d, %v after the change, was answered %d %s in %v: %s (%v)", p.name, a.kind, a.at, since, a.status, a.code, a.took, wrong, a.err)
		case a.status == http.StatusOK:
			others = append(others, a.took)
		default:
			refused, last = append(refused, a.took), since+a.took
		}
	}
	slices.Sort(others)
	slices.Sort(refused)
	t.Logf("%s: %d calls; %d refused in %v to %v, the last %v after the change; %d others, median %v, p99 %v, longest %v", p.name, len(p.answers),
		len(refused), at(refused, 0), at(refused, 1), last.Round(time.Millisecond), len(others), at(others, 0.5), at(others, 0.99), at(others, 1))
	if healthy != nil && float64(at(others, 0.5)) > p.slower*float64(at(healthy, 0.5)) {
		t.Errorf("%s: the median of the others is %v, and was %v when all was well: want %v times that at most", p.name, at(others, 0.5), at(healthy, 0.5), p.slower)
	}
	return others
}

// wrong says what is wrong with an answer to a call that was due that long after
// the change, or "".
func (p outagePhase) wrong(a httpAnswer, since time.Duration) string {
	gone := slices.Contains(p.gone, a.at)
	switch {
	case a.status == http.StatusOK && gone && since > 0:
		return "it cannot have succeeded"
	case a.status == http.StatusOK:
		return ""
	case !gone && !p.excused(a, since):
		return "it needed nothing that was gone"
	case a.status != http.StatusServiceUnavailable || a.code != coupon.ErrShardUnavailable.Code || a.retryAfter == "":
		return "want 503 SHARD_UNAVAILABLE with Retry-After"
	case a.took > p.answer:
		return "too late"
	}
	return ""
}

// excused reports whether a call may fail although its shard is there: it, or
// control, has just come back, or the claim met with a coupon of one that has just
// gone.
func (p outagePhase) excused(a httpAnswer, since time.Duration) bool {
	claims := a.kind == "claim" || a.kind == "far"
	switch {
	case slices.Contains(p.before, a.at), claims && p.noClaimsBefore:
		return since < outageSettle
	case a.kind == "far" && len(p.gone) > 0:
		return since < outageNotice
	}
	return claims && p.noClaims
}

func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Round(100 * time.Microsecond)
}
