package coupontest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// claim returns a pending claim.
func (s *storeTest) claim(user, request string, number int) coupon.Claim {
	c := s.coupon(19)
	return coupon.Claim{User: user, Campaign: s.campaign, Request: request, Number: number, Coupon: c.ID, At: day(3)}
}

// put adds a claim and returns why it did not.
func (s *storeTest) put(t *testing.T, c coupon.Claim) error {
	return s.Write(t.Context(), shard.Text(c.User), func(tx coupon.Tx) error { return tx.PutClaim(c) })
}

func (s *storeTest) claims(t *testing.T, user string) []coupon.Claim {
	t.Helper()
	return read(t, s, shard.Text(user), func(rows coupon.Rows) ([]coupon.Claim, error) { return rows.Claims(user, s.campaign) })
}

func testClaims(t *testing.T, s *storeTest) {
	user := s.user(13, "claims")
	equal(t, s.claims(t, user), []coupon.Claim{})
	second, bind, first := s.claim(user, "a", 2), s.claim(user, "b", 0), s.claim(user, "c", 1)
	first.Done = true
	bind2 := s.claim(user, "d", 0)
	for _, c := range []coupon.Claim{second, bind, first, bind2} {
		if err := s.put(t, c); err != nil {
			t.Fatal(err)
		}
	}
	want := []coupon.Claim{bind, bind2, first, second}
	equal(t, s.claims(t, user), want)
	for _, c := range []coupon.Claim{s.claim(user, "e", 2), s.claim(user, "a", 3), s.claim(user, "a", 0)} {
		wantErr(t, s.put(t, c), shard.ErrDuplicate)
	}
	equal(t, s.claims(t, user), want)

	// Another user, another campaign, another spelling.
	elsewhere := s.claim(user, "a", 2)
	elsewhere.Campaign++
	for _, c := range []coupon.Claim{s.claim(s.user(13, "CLAIMS"), "a", 2), elsewhere, s.claim(user, "A", 3)} {
		if err := s.put(t, c); err != nil {
			t.Fatal(err)
		}
	}
}

// testPending moves, finishes and drops claims: each only if it is pending and
// has the coupon that the caller thinks.
func testPending(t *testing.T, s *storeTest) {
	user := s.user(21, "pending")
	moved, finished, dropped, done := s.claim(user, "m", 1), s.claim(user, "f", 2), s.claim(user, "d", 3), s.claim(user, "x", 4)
	moved.At, finished.At, dropped.At, done.Done = day(5), day(4), day(6), true
	for _, c := range []coupon.Claim{moved, finished, dropped, done} {
		if err := s.put(t, c); err != nil {
			t.Fatal(err)
		}
	}
	pending := func(before time.Time, n int) []coupon.Claim {
		return read(t, s, shard.Text(user), func(rows coupon.Rows) ([]coupon.Claim, error) { return rows.Pending(before, n) })
	}
	equal(t, pending(day(30), 10), []coupon.Claim{finished, moved, dropped})
	equal(t, pending(day(30), 2), []coupon.Claim{finished, moved})
	equal(t, pending(day(5), 10), []coupon.Claim{finished})

	next := s.claim(user, "m", 1)
	next.At = moved.At
	wrong := s.claim(user, "f", 2)
	for _, c := range []struct {
		name string
		do   func(coupon.Tx) (bool, error)
		want bool
	}{
		{"move from another coupon", func(tx coupon.Tx) (bool, error) { return tx.MoveClaim(next, wrong.Coupon) }, false},
		{"finish another coupon", func(tx coupon.Tx) (bool, error) { return tx.FinishClaim(wrong) }, false},
		{"drop another coupon", func(tx coupon.Tx) (bool, error) { return tx.DropClaim(wrong) }, false},
		{"finish what is done", func(tx coupon.Tx) (bool, error) { return tx.FinishClaim(done) }, false},
		{"drop what is done", func(tx coupon.Tx) (bool, error) { return tx.DropClaim(done) }, false},
		{"move what is done", func(tx coupon.Tx) (bool, error) { return tx.MoveClaim(done, done.Coupon) }, false},
		{"move", func(tx coupon.Tx) (bool, error) { return tx.MoveClaim(next, moved.Coupon) }, true},
		{"finish", func(tx coupon.Tx) (bool, error) { return tx.FinishClaim(finished) }, true},
		{"drop", func(tx coupon.Tx) (bool, error) { return tx.DropClaim(dropped) }, true},
	} {
		s.write(t, shard.Text(user), func(tx coupon.Tx) error {
			did, err := c.do(tx)
			if did != c.want {
				t.Errorf("%s: %v, want %v", c.name, did, c.want)
			}
			return err
		})
	}
	finished.Done = true
	equal(t, s.claims(t, user), []coupon.Claim{next, finished, done})
	equal(t, pending(day(30), 10), []coupon.Claim{next})
	if err := s.put(t, dropped); err != nil {
		t.Fatalf("a claim that was dropped, again: %v", err)
	}
}

// testClaimRace has eight requests of one user for the same number.
func testClaimRace(t *testing.T, s *storeTest) {
	user := s.user(30, "race")
	for number := 1; number <= 3; number++ {
		won := together(t, 8, func(i int) (bool, error) {
			err := s.put(t, s.claim(user, fmt.Sprintf("%d/%d", number, i), number))
			if errors.Is(err, shard.ErrDuplicate) {
				return false, nil
			}
			return true, err
		})
		if won != 1 || len(s.claims(t, user)) != number {
			t.Fatalf("number %d: %d claims made of 8, %d there", number, won, len(s.claims(t, user)))
		}
	}
}
