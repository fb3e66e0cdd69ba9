package coupon_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

// What no lease can rule out: that the control database forgets, and that a
// process is there twice. It ends at the next look of whoever has to go.

// TestBackupInPlaceOfTheControlDatabase puts a backup of ten minutes ago back
// while a process has a number that it leased before that, or since. There is no
// other number.
func TestBackupInPlaceOfTheControlDatabase(t *testing.T) {
	for name, since := range map[string]bool{"leased before": false, "leased since": true} {
		t.Run(name, func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				workers := new(coupontest.Workers)
				leaseAllBut(workers, []byte{7})
				workers.Put(coupon.Worker{Number: 7, HighWater: time.Now().UnixMilli() - 1})
				var log bytes.Buffer
				open := func() *coupon.Minter {
					m := coupon.OpenMinter(t.Context(), workers, coupon.MinterOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
					t.Cleanup(func() { m.Close(context.Background()) })
					return m
				}
				var old *coupon.Minter
				if !since {
					old = open()
				}
				backup := workers.Row(7)
				time.Sleep(10 * time.Minute)
				if since {
					old = open()
				}
				time.Sleep(5 * time.Second)
				before := mint(t, old, 1)
				workers.Put(backup)
				if !since { // it is the first that looks
					time.Sleep(15 * time.Second)
					next := openMinter(t, workers, coupon.MinterSetup{})
					refused(t, next)
					if got := mint(t, old, 1); got.Worker != 7 || got.Ms <= before.Ms {
						t.Errorf("%+v after %+v", got, before)
					}
					if !strings.Contains(log.String(), "has forgotten a lease") {
						t.Errorf("nobody is told: %s", &log)
					}
					return
				}
				next := openMinter(t, workers, coupon.MinterSetup{})
				oneEnds(t, old, next)
			})
		})
	}
}

// TestDoubledProcess copies a process while it runs, as when a machine is started
// from a snapshot beside the one it was taken of.
func TestDoubledProcess(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		leaseAllBut(workers, []byte{7})
		one := coupon.NewMinterByHand(workers, coupon.MinterSetup{})
		one.Tend(t.Context())
		mint(t, one, 1)
		two := one.Double(workers, coupon.MinterSetup{})
		if a, b := mint(t, one, 1), mint(t, two, 1); a != b {
			t.Fatalf("%+v and %+v of two with one memory", a, b)
		}
		for range 3 { // whoever is the first to look keeps the number
			time.Sleep(15 * time.Second)
			one.Tend(t.Context())
			two.Tend(t.Context())
			mint(t, one, 1)
			refused(t, two)
		}
	})
}

// oneEnds checks that of two that have one number only the second makes ids
// after the first has looked, and that those of then are none that were made.
func oneEnds(t *testing.T, first, second *coupon.Minter) {
	t.Helper()
	made := map[coupon.IDParts]bool{}
	twice := 0
	for range 9 { // the first has made its look 5 s ago
		for _, m := range []*coupon.Minter{first, second} {
			id := mint(t, m, 1)
			if made[id] {
				twice++
			}
			made[id] = true
		}
		time.Sleep(time.Second)
	}
	if twice == 0 {
		t.Error("no id came twice: the test is not about two that have one number")
	}
	time.Sleep(2 * time.Second)
	for range 100 {
		refused(t, first)
		id := mint(t, second, 1)
		if made[id] {
			t.Errorf("%+v came twice after the first has looked", id)
		}
		made[id] = true
		time.Sleep(time.Second)
	}
}
