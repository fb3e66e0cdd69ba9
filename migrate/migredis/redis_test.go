package migredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// record returns a plan of slots.
func record(lo, hi int64) migrate.PlanRecord {
	return migrate.PlanRecord{Name: "events", Hash: "h", Slots: migrate.Span{Lo: lo, Hi: hi}}
}

// start opens s and starts the migration.
func start(t testing.TB, s *migredis.State, r migrate.PlanRecord) {
	t.Helper()
	err := errors.Join(s.Open(t.Context(), r), s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart),
		s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
	if err != nil {
		t.Fatal(err)
	}
}

func request(r migrate.PlanRecord) migrate.ClaimRequest {
	return migrate.ClaimRequest{Pass: migrate.Copying, Worker: "pod 1", TTL: time.Minute, Within: r.Slots}
}

func claim(t testing.TB, s migrate.State, r migrate.PlanRecord) migrate.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), request(r))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNamesAreTheAxis: the script that chooses a slot writes keys by the name
// that everybody else computes in Go.
func TestNamesAreTheAxis(t *testing.T) {
	url, _ := realtest.RedisPrefix(t)
	rdb := client(t, url)
	for name, axis := range map[string]migrate.Axis{
		"hour":    {By: migrate.ByULID, Width: 3_600_000},
		"minute":  {By: migrate.ByTimestamp, Width: 15 * 60_000},
		"milli":   {By: migrate.ByUUIDv7, Width: 100},
		"integer": {By: migrate.ByInteger, Width: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 60 {
				i := rand.Int64N(253_402_300_800_000) / axis.Width // until the year 10000
				if n%3 == 0 && axis.By != migrate.ByULID && axis.By != migrate.ByUUIDv7 {
					i = -rand.Int64N(60_000_000_000_000) / axis.Width // from the year 69
				}
				_, prefix := realtest.RedisPrefix(t)
				s, err := migredis.Open(t.Context(), plan(url, prefix), axis)
				if err != nil {
					t.Fatal(err)
				}
				r := record(i, i+1)
				start(t, s, r)
				c := claim(t, s, r)
				if want := prefix + axis.Name(c.Slot) + ":worker"; rdb.Exists(t.Context(), want).Val() != 1 || c.Slot.Index != i {
					t.Errorf("slot %d: %s is not among %v", c.Slot.Index, want, keys(t, rdb, prefix))
				}
				if err := s.Finish(t.Context(), c, migrate.Progress{}, r.Slots); err != nil {
					t.Error(err)
				}
				if last := rdb.Get(t.Context(), prefix+"last_slot").Val(); last != axis.Name(c.Slot) {
					t.Errorf("last_slot is %q, want %q", last, axis.Name(c.Slot))
				}
				s.Close()
			}
		})
	}
}

func TestLastSlotIsAtTheEndOfTheUnbrokenRun(t *testing.T) {
	for order, want := range map[string][]int64{"newest-first": {0, 9, 9, 6}, "oldest-first": {0, 0, 0, 3}} {
		t.Run(order, func(t *testing.T) {
			url, prefix := realtest.RedisPrefix(t)
			p := plan(url, prefix)
			p.Slots.Order = order
			s, r := open(t, p), record(1000, 1010)
			start(t, s, r)
			var claims []migrate.Claim
			for range 4 {
				req := request(r)
				req.Oldest = p.Oldest()
				c, err := s.Claim(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				claims = append(claims, c)
			}
			for step, i := range []int{2, 0, 3, 1} {
				if err := s.Finish(t.Context(), claims[i], migrate.Progress{}, migrate.Span{}); err != nil {
					t.Fatal(err)
				}
				got := client(t, url).Get(t.Context(), prefix+"last_slot").Val()
				name := migtest.StateAxis.Name(migrate.Slot{Index: 1000 + want[step]})
				if step == 0 {
					name = ""
				}
				if got != name {
					t.Errorf("step %d: last_slot %q, want %q", step, got, name)
				}
			}
		})
	}
}

// TestOnlyWhatMayExpireExpires: plain loss of time loses no finished slot and
// no piece of a split one.
func TestOnlyWhatMayExpireExpires(t *testing.T) {
	url, prefix := realtest.RedisPrefix(t)
	s, r, rdb := open(t, plan(url, prefix)), record(0, 10), client(t, url)
	start(t, s, r)
	if err := s.Finish(t.Context(), claim(t, s, r), migrate.Progress{}, migrate.Span{}); err != nil {
		t.Fatal(err)
	}
	c := claim(t, s, r)
	rest := migrate.Slot{Index: c.Slot.Index, Below: migrate.Key{"m"}}
	p := migrate.Progress{Last: migrate.Key{"x"}, Lo: rest.Below, Counts: migrate.Counts{Read: 5}}
	_, lead := s.Lead(t.Context(), "k", time.Minute)
	err := errors.Join(lead, s.Split(t.Context(), c, p, rest, migrate.Progress{}), s.Want(t.Context(), time.Minute), s.SetVerdict(t.Context(), "v", migrate.Verdict{}),
		s.Quarantine(t.Context(), c, []migrate.Quarantined{{Key: migrate.Key{"k"}}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys(t, rdb, prefix) {
		ttl := rdb.PTTL(t.Context(), key).Val()
		name, _ := strings.CutPrefix(key, prefix)
		if expires := name == "keeper" || strings.HasSuffix(name, ":worker") || strings.HasSuffix(name, ":states"); expires != (ttl > 0) {
			t.Errorf("%s has the time to live %v", name, ttl)
		}
		if ttl > 0 { // time passes
			rdb.Del(t.Context(), key)
		}
	}
	v, err := s.View(t.Context())
	if err != nil || !slices.Equal(v.Finished[migrate.Copying], []migrate.Span{{Lo: 9, Hi: 10}}) || len(v.Open) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	part, base := claim(t, s, r), claim(t, s, r)
	if !part.Slot.Below.Equal(rest.Below) || base.Slot.Index != c.Slot.Index || !base.Progress.Lo.Equal(rest.Below) || base.Progress.Last != nil {
		t.Fatalf("claimed %+v and %+v", part, base)
	}
	if v, err = s.View(t.Context()); err != nil || v.Counts != (migrate.Counts{}) {
		t.Errorf("rows that will be read again count already: %+v, %v", v.Counts, err)
	}
}

// TestManySlotsAreFewKeys: 200,000 slots, a hundredth of which have rows.
func TestManySlotsAreFewKeys(t *testing.T) {
	url, prefix := realtest.RedisPrefix(t)
	s, r, rdb := open(t, plan(url, prefix)), record(0, 200_000), client(t, url)
	start(t, s, r)
	begin, most := time.Now(), 0
	for i := range 2000 {
		c := claim(t, s, r)
		p := migrate.Progress{Last: migrate.Key{"x"}, Counts: migrate.Counts{Read: 1}}
		err := s.Finish(t.Context(), c, p, migrate.Span{Lo: c.Slot.Index - 99, Hi: c.Slot.Index})
		if err != nil {
			t.Fatal(err)
		}
		if i%200 == 0 {
			most = max(most, len(keys(t, rdb, prefix)))
		}
	}
	t.Logf("%d keys at most; %.0f slots/s", most, 2000/time.Since(begin).Seconds())
	v, err := s.View(t.Context())
	if err != nil || !slices.Equal(v.Finished[migrate.Copying], []migrate.Span{r.Slots}) || most > 100 {
		t.Fatalf("%+v, %v, %d keys", v.Finished, err, most)
	}
}

func TestServersThatCannotKeepAStateAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		url      string
		want     string
	}{
		"evicting":       {[]string{"maxmemory-policy allkeys-lru"}, "redis://%s/0", "noeviction"},
		"cluster":        {[]string{"cluster-enabled yes", "databases 1"}, "redis://%s/0", "is a cluster"},
		"replica":        {[]string{"replicaof 127.0.0.1 1"}, "redis://%s/0", "is a replica"},
		"wrong password": {[]string{"requirepass hunter2"}, "redis://:hunter3@%s/0", "refuses the credentials"},
		"no password":    {[]string{"requirepass hunter2"}, "redis://%s/0", "refuses the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			server := realtest.Redis(t, c.settings...)
			s, err := migredis.Open(t.Context(), plan(fmt.Sprintf(c.url, server.Addr), "mgre:"), migtest.StateAxis)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, c.want)
			}
		})
	}
	if _, err := migredis.Open(t.Context(), plan("redis://:hunter2@ not a host", "mgre:"), migtest.StateAxis); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("error %v", err)
	}
	if _, err := migredis.Open(t.Context(), plan("redis://"+realtest.FreeAddr(t), "mgre:"), migtest.StateAxis); !errors.Is(err, migrate.ErrTransient) {
		t.Errorf("nobody there: %v", err)
	}
}

// again repeats call while the server is not there.
func again(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	for {
		err := call(t.Context())
		if !errors.Is(err, migrate.ErrTransient) {
			return err
		}
	}
}

func TestRestartWithDataGoesOn(t *testing.T) {
	server := realtest.Redis(t, "appendonly yes", "appendfsync always")
	s, r := open(t, plan(server.URL, "mgre:")), record(0, 10)
	start(t, s, r)
	c := claim(t, s, r)
	server.Kill()
	if _, err := s.View(t.Context()); !errors.Is(err, migrate.ErrTransient) {
		t.Fatalf("while it is down: %v", err)
	}
	server.Start()
	if err := again(t, func(ctx context.Context) error { return s.Renew(ctx, c) }); err != nil {
		t.Fatal(err)
	}
	if d := claim(t, s, r); d.Epoch <= c.Epoch || d.Slot.Index == c.Slot.Index {
		t.Fatalf("claimed %+v after %+v", d, c)
	}
}

func TestRestartWithoutDataStops(t *testing.T) {
	server := realtest.Redis(t)
	s, r := open(t, plan(server.URL, "mgre:")), record(0, 10)
	start(t, s, r)
	c := claim(t, s, r)
	server.Kill()
	server.Start()
	if err := again(t, func(ctx context.Context) error { return s.Renew(ctx, c) }); !errors.Is(err, migrate.ErrStateLost) {
		t.Fatalf("error %v, want ErrStateLost", err)
	}
	command := open(t, plan(server.URL, "mgre:"))
	if err := errors.Join(command.Reset(t.Context()), command.Open(t.Context(), r)); err != nil {
		t.Fatal(err)
	}
}

func TestStateWithoutItsRunIsLost(t *testing.T) {
	url, prefix := realtest.RedisPrefix(t)
	start(t, open(t, plan(url, prefix)), record(0, 10))
	client(t, url).Del(t.Context(), prefix+"run")
	if err := open(t, plan(url, prefix)).Open(t.Context(), record(0, 10)); !errors.Is(err, migrate.ErrStateLost) {
		t.Fatalf("error %v, want ErrStateLost", err)
	}
}

func TestSlotsBeyondLuasNumbersAreRefused(t *testing.T) {
	url, prefix := realtest.RedisPrefix(t)
	_, isPlan := errors.AsType[*migrate.PlanError](open(t, plan(url, prefix)).Open(t.Context(), record(0, 1<<40)))
	if !isPlan {
		t.Error("they were not")
	}
}

// TestAClaimWhoseReplyIsLostExpires: its pod does not know of it, and nobody
// gets the slot until it is over.
func TestAClaimWhoseReplyIsLostExpires(t *testing.T) {
	server := realtest.Redis(t)
	proxy := realtest.NewProxy(t, server.Addr)
	s, r := open(t, plan("redis://"+proxy.Addr+"/0", "mgre:")), record(0, 10)
	start(t, s, r)
	if err := s.Release(t.Context(), claim(t, s, r)); err != nil { // the server knows the script now
		t.Fatal(err)
	}
	proxy.Delay(time.Minute) // of what the server sends
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Claim(ctx, request(r)); !errors.Is(err, migrate.ErrTransient) {
		t.Fatalf("error %v", err)
	}
	direct := open(t, plan(server.URL, "mgre:"))
	v, err := direct.View(t.Context())
	if err != nil || len(v.Live) != 1 || v.Live[0].Slot.Index != 9 {
		t.Fatalf("live %+v, %v", v.Live, err)
	}
	if err := direct.Open(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, direct, r); c.Slot.Index != 8 {
		t.Fatalf("claimed %+v", c)
	}
}

func BenchmarkCalls(b *testing.B) {
	url, prefix := realtest.RedisPrefix(b)
	s, r := open(b, plan(url, prefix)), record(0, 2_000_000)
	start(b, s, r)
	p := migrate.Progress{Last: migrate.Key{"01JAKXW2V00000000000000000"}, Counts: migrate.Counts{Read: 1}}
	b.Run("claim and finish", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Finish(b.Context(), claim(b, s, r), p, migrate.Span{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	c := claim(b, s, r)
	b.Run("save", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Counts.Read++
			if _, err := s.Save(b.Context(), c, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare get", func(b *testing.B) {
		rdb := client(b, url)
		for b.Loop() {
			if err := rdb.Get(b.Context(), prefix+"run").Err(); err != nil && err != redis.Nil {
				b.Fatal(err)
			}
		}
	})
}
