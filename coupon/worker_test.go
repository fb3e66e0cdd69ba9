package coupon_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

// cuttable refuses all calls while it is cut off.
type cuttable struct {
	mem coupontest.Workers
	cut atomic.Bool
}

var errCut = errors.New("connect to 10.0.0.1: connection refused")

func (c *cuttable) Workers(ctx context.Context) ([]coupon.Worker, time.Time, error) {
	if c.cut.Load() {
		return nil, time.Time{}, errCut
	}
	return c.mem.Workers(ctx)
}

func (c *cuttable) SwapWorker(ctx context.Context, old, next coupon.Worker) (bool, error) {
	if c.cut.Load() {
		return false, errCut
	}
	return c.mem.SwapWorker(ctx, old, next)
}

func TestLeaseIsRenewedEvery15Seconds(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		begin := time.Now()
		m := openMinter(t, workers, coupon.MinterSetup{})
		number, _ := m.LeasedNumber()
		tokens := map[string]bool{}
		for second := range 61 {
			ahead := workers.Row(number).HighWater - begin.UnixMilli()
			if want := int64(second/15*15+60) * 1000; ahead != want {
				t.Errorf("after %d s the high-water is %d ms ahead of the start, want %d", second, ahead, want)
			}
			token := workers.Row(number).Token
			if tokens[token] = true; len(token) < 26 || len(token) > 32 {
				t.Errorf("the token is %q", token)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if len(tokens) != 5 {
			t.Errorf("%d tokens of 5 writes", len(tokens))
		}
	})
}

func TestIDsGoOnForAMinuteWithoutTheControlDatabase(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(cuttable)
		var log bytes.Buffer
		m := coupon.OpenMinter(t.Context(), workers, coupon.MinterOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer m.Close(context.Background())
		workers.cut.Store(true)
		for range 60 * 4 {
			mint(t, m, 1)
			time.Sleep(250 * time.Millisecond)
		}
		time.Sleep(time.Millisecond)
		if message := refused(t, m); strings.Contains(message, "10.0.0.1") {
			t.Errorf("the refusal tells where the database is: %s", message)
		}
		time.Sleep(time.Hour)
		refused(t, m)
		workers.cut.Store(false)
		time.Sleep(leaseRetry)
		mint(t, m, 1)
		synctest.Wait()
		if got := log.String(); strings.Count(got, "10.0.0.1") != 1 || strings.Count(got, "can be made again") != 1 {
			t.Errorf("each change is to be logged once: %s", got)
		}
	})
}

func TestMinterOpensWithoutTheControlDatabase(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(cuttable)
		workers.cut.Store(true)
		m := openMinter(t, workers, coupon.MinterSetup{})
		refused(t, m)
		time.Sleep(10 * time.Second)
		workers.cut.Store(false)
		time.Sleep(leaseRetry)
		mint(t, m, 1)
	})
}

// TestLostLeaseEndsAtTheNextLook: nobody may have a number before its high-water
// has passed, so whoever does is not to be trusted to leave the rest alone.
func TestLostLeaseEndsAtTheNextLook(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		m := openMinter(t, workers, coupon.MinterSetup{})
		number, _ := m.LeasedNumber()
		leaseAllBut(workers, nil) // so that there is no other number, and this one is another's
		for range 15 {
			if got := mint(t, m, 1); got.Worker != number {
				t.Fatalf("got %+v with a lease of number %d", got, number)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if message := refused(t, m); !strings.Contains(message, "all 256 worker numbers are leased") {
			t.Errorf("the refusal does not say why: %s", message)
		}
		free := coupon.Worker{Number: 77, HighWater: time.Now().UnixMilli() - 1}
		workers.Put(free)
		time.Sleep(leaseRetry)
		if got := mint(t, m, 1); got.Worker != 77 || got.Ms <= free.HighWater {
			t.Errorf("after number 77 is free: %+v", got)
		}
	})
}

// leaseAllBut has others hold all numbers, for a year, but for those.
func leaseAllBut(workers *coupontest.Workers, free []uint8) {
	for n := range coupon.WorkerNumbers {
		if !bytes.Contains(free, []byte{uint8(n)}) {
			workers.Put(coupon.Worker{Number: uint8(n), Token: "another", HighWater: time.Now().AddDate(1, 0, 0).UnixMilli()})
		}
	}
}

func TestPastTheLastNumberMintingIsRefusedUntilOneIsFree(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		var all []*coupon.Minter
		numbers := map[uint8]bool{}
		for range coupon.WorkerNumbers {
			m := openMinter(t, workers, coupon.MinterSetup{})
			numbers[mint(t, m, 1).Worker] = true
			all = append(all, m)
		}
		if len(numbers) != coupon.WorkerNumbers {
			t.Fatalf("%d numbers are used, want all", len(numbers))
		}
		late := openMinter(t, workers, coupon.MinterSetup{})
		if message := refused(t, late); !strings.Contains(message, "all 256 worker numbers are leased") {
			t.Errorf("the refusal does not say why: %s", message)
		}
		time.Sleep(10 * time.Minute)
		refused(t, late)
		freed := mint(t, all[100], 1)
		if err := all[100].Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(leaseRetry)
		if got := mint(t, late, 1); got.Worker != freed.Worker || got.Ms <= freed.Ms {
			t.Errorf("after %+v was given back: %+v", freed, got)
		}
	})
}

func TestNumberOfAKilledProcessIsFreeAfterAMinute(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		leaseAllBut(workers, []byte{7})
		killed := coupon.NewMinterByHand(workers, coupon.MinterSetup{})
		killed.Tend(t.Context())
		last := mint(t, killed, 1)
		m := openMinter(t, workers, coupon.MinterSetup{})
		if message := refused(t, m); !strings.Contains(message, "free in 1m0.001s") {
			t.Errorf("the refusal does not say when there will be one: %s", message)
		}
		time.Sleep(time.Minute)
		refused(t, m)
		time.Sleep(leaseRetry)
		if got := mint(t, m, 1); got.Worker != 7 || got.Ms != last.Ms+61_000 && got.Ms != last.Ms+61_010 {
			t.Errorf("got %+v, after %+v of a killed process", got, last)
		}
	})
}

func TestCloseGivesTheNumberBack(t *testing.T) {
	for name, ids := range map[string]int{"unused": 0, "used": 1, "running ahead": 1000} {
		t.Run(name, func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				workers := new(coupontest.Workers)
				leaseAllBut(workers, []byte{7})
				before := coupon.Worker{Number: 7, HighWater: time.Now().UnixMilli() - 5000}
				workers.Put(before)
				m := openMinter(t, workers, coupon.MinterSetup{})
				want := coupon.Worker{Number: 7, HighWater: before.HighWater}
				for range ids {
					want.HighWater = mint(t, m, 1).Ms
				}
				if ids > 16 { // another bucket is not as far ahead
					mint(t, m, 2)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := workers.Row(7); got != want {
					t.Errorf("the row is %+v, want %+v", got, want)
				}
				refused(t, m)
			})
		})
	}
}

func TestCloseLeavesAnothersNumber(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		m := openMinter(t, workers, coupon.MinterSetup{})
		number, _ := m.LeasedNumber()
		leaseAllBut(workers, nil)
		want := workers.Row(number)
		if err := m.Close(t.Context()); err != nil || workers.Row(number) != want {
			t.Errorf("%v; the row is %+v, want %+v", err, workers.Row(number), want)
		}
	})
}

func TestCloseWithoutTheControlDatabaseSaysSo(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(cuttable)
		m := openMinter(t, workers, coupon.MinterSetup{})
		workers.cut.Store(true)
		if err := m.Close(t.Context()); !errors.Is(err, errCut) {
			t.Errorf("closed with %v", err)
		}
	})
}

// TestClockStepsOfAnHour steps a process's own clock while it runs.
func TestClockStepsOfAnHour(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				var off atomic.Int64
				clock := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
				workers := new(coupontest.Workers)
				m := openMinter(t, workers, coupon.MinterSetup{Clock: clock})
				seen := map[coupon.IDParts]bool{}
				count := 0
				for second := range 7200 {
					switch second {
					case 600:
						off.Store(int64(step))
					case 2400:
						off.Store(0)
					}
					id, err := m.Mint(1)
					switch {
					case err == nil:
						seen[coupon.PartsOf(id)] = true
						count++
					case step < 0 || second < 600 || second > 602:
						t.Fatalf("second %d: %v", second, err)
					}
					time.Sleep(time.Second)
				}
				if len(seen) != count {
					t.Errorf("%d different ids of %d", len(seen), count)
				}
			})
		})
	}
}

func TestOneWrongReadingOfTheClockDoesNoHarm(t *testing.T) {
	in2026(t, func(t *testing.T) {
		off := 0
		m := openMinter(t, new(coupontest.Workers), coupon.MinterSetup{Clock: func() time.Time { return time.Now().AddDate(off, 0, 0) }})
		first := mint(t, m, 1)
		off = 1
		refused(t, m)
		off = 0
		if got := mint(t, m, 1); got.Ms != first.Ms {
			t.Errorf("got %+v after %+v", got, first)
		}
	})
}

// TestProcessWhoseClockIsBehindKeepsItsNumber, as its high-water is ahead by the
// database's clock too.
func TestProcessWhoseClockIsBehindKeepsItsNumber(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		leaseAllBut(workers, []byte{7})
		behind := openMinter(t, workers, coupon.MinterSetup{Clock: func() time.Time { return time.Now().Add(-time.Hour) }})
		right := openMinter(t, workers, coupon.MinterSetup{})
		for range 300 {
			mint(t, behind, 1)
			refused(t, right)
			time.Sleep(time.Second)
		}
	})
}

// TestNumberIsFreeOnlyByBothClocks has a number whose high-water is half an hour
// away by the clock that is right.
func TestNumberIsFreeOnlyByBothClocks(t *testing.T) {
	hour := func() time.Time { return time.Now().Add(time.Hour) }
	for name, c := range map[string]struct{ own, db func() time.Time }{
		"own clock ahead":      {hour, time.Now},
		"database clock ahead": {time.Now, hour},
	} {
		t.Run(name, func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				workers := &coupontest.Workers{Clock: c.db}
				leaseAllBut(workers, []byte{7})
				workers.Put(coupon.Worker{Number: 7, Token: "another", HighWater: time.Now().Add(30 * time.Minute).UnixMilli()})
				m := openMinter(t, workers, coupon.MinterSetup{Clock: c.own})
				for range 30 {
					refused(t, m)
					time.Sleep(time.Minute)
				}
				time.Sleep(leaseRetry)
				if got := mint(t, m, 1); got.Worker != 7 {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestClockDaysAheadIsRefused(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		m := openMinter(t, workers, coupon.MinterSetup{Clock: func() time.Time { return time.Now().AddDate(1, 0, 0) }})
		if message := refused(t, m); !strings.Contains(message, "clock is 8760h0m0s ahead") {
			t.Errorf("the refusal does not say why: %s", message)
		}
		if rows, _, _ := workers.Workers(t.Context()); len(rows) > 0 {
			t.Errorf("it leased %+v", rows)
		}
	})
}

// TestPauseBetweenClockAndMint stops a caller there until another process has
// its number.
func TestPauseBetweenClockAndMint(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(cuttable)
		leaseAllBut(&workers.mem, []byte{7})
		var pause func()
		stopped := coupon.NewMinterByHand(workers, coupon.MinterSetup{AfterClock: func() { pause() }})
		stopped.Tend(t.Context())
		seen := map[coupon.IDParts]bool{}
		pause = func() {}
		for range 5 {
			seen[mint(t, stopped, 1)] = true
		}
		pause = func() {
			time.Sleep(2 * time.Minute)
			next := openMinter(t, workers, coupon.MinterSetup{})
			for range 50_000 {
				seen[mint(t, next, 1)] = true
			}
		}
		seen[mint(t, stopped, 1)] = true // of its own stretch, though two minutes late
		if len(seen) != 50_006 {
			t.Errorf("%d different ids of 50,006", len(seen))
		}
		pause = func() {}
		stopped.Tend(t.Context())
		refused(t, stopped)
	})
}
