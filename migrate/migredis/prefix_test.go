package migredis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migredis"
)

// TestMigrationsWhosePrefixesBeginAlikeShareNothing: a slot's name begins with
// a digit, a sign or the word for the second pass, so without a separator the
// key of one migration might be another's. Each claims its slots, and a reset
// of the one takes nothing from the other.
func TestMigrationsWhosePrefixesBeginAlikeShareNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prefixes [2]string
		slots    [2]migrate.Span
		passes   [2]migrate.Pass
	}{
		"a letter more":        {[2]string{"a", "ab"}, [2]migrate.Span{{Lo: 1, Hi: 3}, {Lo: 1, Hi: 3}}, [2]migrate.Pass{migrate.Copying, migrate.Copying}},
		"a digit more":         {[2]string{"a", "a1"}, [2]migrate.Span{{Lo: 11, Hi: 13}, {Lo: 1, Hi: 3}}, [2]migrate.Pass{migrate.Copying, migrate.Copying}},
		"a digit after one":    {[2]string{"a1", "a11"}, [2]migrate.Span{{Lo: 11, Hi: 13}, {Lo: 1, Hi: 3}}, [2]migrate.Pass{migrate.Copying, migrate.Copying}},
		"a hyphen more":        {[2]string{"a-", "a--"}, [2]migrate.Span{{Lo: -3, Hi: -1}, {Lo: 2, Hi: 4}}, [2]migrate.Pass{migrate.Copying, migrate.Copying}},
		"the word of the pass": {[2]string{"a:", "a:sweep:"}, [2]migrate.Span{{Lo: 1, Hi: 3}, {Lo: 1, Hi: 3}}, [2]migrate.Pass{migrate.Sweeping, migrate.Copying}},
	} {
		t.Run(name, func(t *testing.T) {
			url, mine := realtest.RedisPrefix(t)
			var states [2]*migredis.State
			for i, p := range c.prefixes {
				s, err := migredis.Open(t.Context(), plan(url, mine+p), migrate.Axis{By: migrate.ByInteger, Width: 1})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				states[i] = s
				r := record(c.slots[i].Lo, c.slots[i].Hi)
				r.Sweep = r.Slots
				start(t, s, r)
				if c.passes[i] == migrate.Sweeping {
					sweep(t, s)
				}
			}
			var claims [2][]migrate.Claim
			for i, s := range states {
				for range 2 {
					req := request(record(c.slots[i].Lo, c.slots[i].Hi))
					req.Pass = c.passes[i]
					got, err := s.Claim(t.Context(), req)
					if err != nil {
						t.Fatalf("prefix %q: %v", c.prefixes[i], err)
					}
					claims[i] = append(claims[i], got)
				}
			}
			for _, held := range claims[1] {
				if err := states[1].Release(t.Context(), held); err != nil {
					t.Fatal(err)
				}
			}
			if err := states[1].Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, held := range claims[0] {
				if err := states[0].Renew(t.Context(), held); err != nil {
					t.Errorf("after a reset of the other: %v", err)
				}
			}
			rdb := client(t, url)
			for _, key := range keys(t, rdb, mine) {
				if strings.HasPrefix(key, mine+c.prefixes[1]+":") && !strings.HasSuffix(key, ":epoch") {
					t.Errorf("the reset left %s", key)
				}
			}
		})
	}
}

// sweep begins the second pass.
func sweep(t testing.TB, s *migredis.State) {
	t.Helper()
	term, err := s.Lead(t.Context(), "keeper", time.Minute)
	if err == nil {
		err = s.Advance(t.Context(), term, migrate.PhaseSweep)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAPrefixWithASeparatorIsTakenAsItIs: whoever looks into Redis finds the
// keys under it.
func TestAPrefixWithASeparatorIsTakenAsItIs(t *testing.T) {
	url, mine := realtest.RedisPrefix(t)
	rdb := client(t, url)
	for prefix, want := range map[string]string{mine + "x:": mine + "x:plan", mine + "x_": mine + "x_plan", mine + "y": mine + "y:plan"} {
		s := open(t, plan(url, prefix))
		if err := s.Open(t.Context(), record(0, 1)); err != nil {
			t.Fatal(err)
		}
		if n, err := rdb.Exists(t.Context(), want).Result(); n != 1 || err != nil {
			t.Errorf("prefix %q: %s is not there, %v", prefix, want, err)
		}
	}
}
