package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

// TestFaultCouponCrashPoints kills the real server at each point between two
// steps of each flow, starts it again and compares what is there with what an
// uninterrupted run leaves: after the caller has asked again with the same
// numbers, and after it has not. In the small run each point has one of the two
// on each kind of database.
func TestFaultCouponCrashPoints(t *testing.T) {
	for i, d := range []struct {
		name string
		home func(*testing.T) *couponHome
	}{{"SQLite", embeddedHome}, {"MariaDB", mariadbHome}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, d.home(t), i)
		})
	}
}

func crashEverywhere(t *testing.T, home *couponHome, turn int) {
	s := home.crash(t)
	w := newCrashWorld(t, home, s)
	wanted := w.uninterrupted(s)
	cases := w.cases(s, turn)
	s.stop(t)
	for _, c := range cases {
		c.crash()
	}
	s = home.crash(t)
	for _, c := range cases {
		if c.repeated {
			c.repeat(s)
		}
	}
	s.stop(t)
	s = home.crash(t, "TALLYSTICK_CRASH_PATIENCE=600ms")
	w.settled(cases)
	for _, c := range cases {
		want := wanted[c.flow.name]
		if !c.repeated && c.point == coupon.StepChangeWritten {
			want = c.before
		}
		if got := c.take(); got != want {
			t.Errorf("%s, killed at %s, repeated %v:\n%s\nwant\n%s", c.flow.name, c.point, c.repeated, got, want)
		}
	}
	w.audit(cases)
	w.operations(len(crashFlows))
	s.stop(t)
}

// uninterrupted returns what each flow comes to where nobody dies.
func (w *crashWorld) uninterrupted(s *couponServer) map[string]string {
	wanted := make(map[string]string)
	for _, flow := range crashFlows {
		c := w.prepared(s, flow, "", false)
		err := persist(w.t.Context(), func(ctx context.Context) error { return flow.act(ctx, c, s.Client) })
		if !errors.Is(err, flow.refusal) {
			w.t.Fatalf("%s: %v", flow.name, err)
		}
		w.settled([]*crashCase{c})
		w.others = append(w.others, c)
		wanted[flow.name] = c.take()
	}
	return wanted
}

// cases prepares a case for each point.
func (w *crashWorld) cases(s *couponServer, turn int) (cases []*crashCase) {
	points := make(map[string]bool)
	for _, flow := range crashFlows {
		for i, point := range flow.points {
			points[strings.Split(point, ":")[0]] = true
			for _, repeated := range []bool{true, false} {
				if full := os.Getenv("TALLYSTICK_FULL") == "1"; full || repeated == ((i+turn)%2 == 0) {
					cases = append(cases, w.prepared(s, flow, point, repeated))
				}
			}
		}
	}
	for _, point := range coupon.Steps() {
		if !points[point] {
			w.t.Errorf("no flow dies at %s", point)
		}
	}
	return cases
}

func (w *crashWorld) prepared(s *couponServer, flow crashFlow, point string, repeated bool) *crashCase {
	id := w.name(fmt.Sprintf("%s.%s.%v", strings.ReplaceAll(flow.name, " ", "-"), point, repeated))
	c := &crashCase{t: w.t, flow: flow, point: point, repeated: repeated, id: id, world: w}
	flow.prepare(c, s)
	c.before = c.take()
	return c
}

// crash makes the call to a server that dies in it.
func (c *crashCase) crash() {
	c.t.Helper()
	env := []string{"TALLYSTICK_CRASH_AT=" + c.point}
	if c.flow.idle {
		env = append(env, "TALLYSTICK_CRASH_PATIENCE=600ms")
	}
	s := c.world.home.crash(c.t, env...)
	if !c.flow.idle {
		// Its outcome is not known, or an operation has begun in which it dies.
		_ = c.flow.act(c.t.Context(), c, s.Client)
	}
	s.died(c.t, c.flow.name+" at "+c.point)
}

// repeat makes the call again.
func (c *crashCase) repeat(s *couponServer) {
	c.t.Helper()
	err := persist(c.t.Context(), func(ctx context.Context) error { return c.flow.act(ctx, c, s.Client) })
	if !errors.Is(err, c.flow.refusal) {
		c.t.Errorf("%s, killed at %s, again: %v", c.flow.name, c.point, err)
	}
}

// audit checks the books of campaigns that cases share; the stolen coupons of one
// are in none.
func (w *crashWorld) audit(cases []*crashCase) {
	batches := map[int64][]string{w.open: {"gifts"}, w.large: nil}
	for _, c := range append(cases, w.others...) {
		if c.picture.Batch != "" {
			batches[c.picture.Campaign] = append(batches[c.picture.Campaign], c.picture.Batch)
		}
	}
	for _, campaign := range []int64{w.open, w.large} {
		found, err := coupontest.Books{Campaign: campaign, Users: w.users, Batches: batches[campaign]}.
			Audit(w.t.Context(), w.home.direct.Store, w.home.direct.Control)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, problem := range found {
			w.t.Errorf("campaign %d: %s", campaign, problem)
		}
	}
}

// operations waits until every operation is done, of which there are at least
// that many, and looks at how.
func (w *crashWorld) operations(least int) {
	db, err := sql.Open(w.home.driver, w.home.control)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	count := func(where string) (n int) {
		if err := db.QueryRowContext(w.t.Context(), "SELECT COUNT(*) FROM operation WHERE "+where).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		return n
	}
	eventually(w.t, "all operations are done", func() bool { return count("open_subject IS NOT NULL") == 0 })
	if all, good := count("1 = 1"), count("succeeded = total AND failed = 0 AND error = ''"); all < least || good != all {
		w.t.Errorf("%d of %d operations have done all that they were to do", good, all)
	}
}
