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
	batches   int     // of 500 bearer coupons, to be redeemed
	slower    float64 // how much slower the other calls may be than before
}

// What is promised of a database that is gone.
const (
	outageRate   = 100                     // calls a second
	outageAnswer = 1500 * time.Millisecond // within which a call that needs it is refused
	outageSettle = 2 * time.Second         // after it is back, until every call succeeds
)

// TestFaultCouponDatabases kills one of eight databases, then stops another one as
// well, brings both back, and takes the control database away, while calls come at
// a fixed rate. Those that need a database that is gone are refused in time; the
// others notice nothing.
func TestFaultCouponDatabases(t *testing.T) {
	size := outageSize{databases: 4, phase: 1500 * time.Millisecond, batches: 1, slower: 3}
	if full {
		size = outageSize{databases: 8, phase: 10 * time.Second, batches: 4, slower: 1.25}
	}
	o := newOutage(t, size)
	first, second := o.databases[0], o.databases[1]
	healthy := o.phase(t, "healthy", nil, nil)
	o.judge(t, healthy, healthy)
	killed := o.phase(t, "one killed", []int{0}, first.Kill)
	o.judge(t, killed, healthy)
	stopped := o.phase(t, "one killed, one stopped", []int{0, 1}, second.Pause)
	o.judge(t, stopped, healthy)
	back := o.phase(t, "both back", nil, func() { second.Resume(); first.Start() })
	o.judge(t, back, healthy)
	o.judge(t, o.phase(t, "control stopped", nil, o.control.Pause), healthy)
	o.judge(t, o.phase(t, "control killed", nil, o.control.Kill), healthy)
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

// scarcePerSlice is how many coupons of the scarce campaign are on each shard.
const scarcePerSlice = 16

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
	o.scarce = c.campaign(t, scarcePerSlice*shard.Count, 1).ID
	var calls []httpCall
	for range scarcePerSlice * len(o.undisturbed()) {
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

// A phase of an outage is what was answered while databases were gone.
type outagePhase struct {
	name    string
	gone    []shard.Shard
	changed time.Time // when they were gone, or those before were back
	answers []httpAnswer
}

// phase makes calls and, when some are under way, the change.
func (o *outage) phase(t *testing.T, name string, gone []int, change func()) outagePhase {
	p := outagePhase{name: name}
	for _, db := range gone {
		p.gone = append(p.gone, o.at.On(fmt.Sprint("db", db))...)
	}
	var changing sync.WaitGroup
	changing.Go(func() {
		<-time.After(o.size.phase / 10)
		if change != nil {
			change()
		}
		p.changed = time.Now()
	})
	kinds := []string{"redeem", "look up", "claim", "wallet"}
	p.answers = openLoop(o.client, outageRate, o.size.phase, func(i int) httpCall {
		if i%20 == 19 {
			return o.next("far")
		}
		return o.next(kinds[i%len(kinds)])
	})
	changing.Wait()
	return p
}

// judge fails the test where a phase is not as promised.
func (o *outage) judge(t *testing.T, p, healthy outagePhase) {
	t.Helper()
	var refused, others []time.Duration
	var settled time.Duration
	for _, a := range p.answers {
		ok := a.status == http.StatusOK
		inTime := a.status == http.StatusServiceUnavailable && a.code == coupon.ErrShardUnavailable.Code && a.retryAfter != "" && a.took <= outageAnswer
		since := a.due.Sub(p.changed)
		if !ok {
			settled = since + a.took
		}
		switch needed := slices.Contains(p.gone, a.at); {
		case needed && since > 0 && !inTime:
			t.Errorf("%s: %s on shard %d, %v after the change: %d %s in %v (%v)", p.name, a.kind, a.at, since, a.status, a.code, a.took, a.err)
		case needed && !ok:
			refused = append(refused, a.took)
		case !needed && !ok:
			t.Errorf("%s: %s on shard %d, %v after the change: %d %s in %v (%v)", p.name, a.kind, a.at, since, a.status, a.code, a.took, a.err)
		case !needed:
			others = append(others, a.took)
		}
	}
	slices.Sort(others)
	slices.Sort(refused)
	t.Logf("%s: %d calls; %d refused in %v to %v; %d others, median %v, longest %v; last error %v after the change", p.name,
		len(p.answers), len(refused), at(refused, 0), at(refused, 1), len(others), at(others, 0.5), at(others, 1), settled)
}

func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Round(100 * time.Microsecond)
}
