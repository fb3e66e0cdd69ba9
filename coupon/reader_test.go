package coupon_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func TestRedeliver(t *testing.T) {
	broken, away := errors.New("broken"), fmt.Errorf("shard 3: %w", shard.ErrUnavailable)
	for _, c := range []struct {
		name  string
		err   error
		tries int
		pause time.Duration
		again bool
	}{
		{"first failure", broken, 1, 500 * time.Millisecond, true},
		{"third failure", broken, 3, 2 * time.Second, true},
		{"last failure", broken, 8, 0, false},
		{"beyond the last", broken, 9, 0, false},
		{"database away", away, 1, 500 * time.Millisecond, true},
		{"database away for long", away, 1000, time.Minute, true},
		{"late", context.DeadlineExceeded, 20, time.Minute, true},
		{"no message", fmt.Errorf("x: %w", coupon.ErrMalformedMessage), 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if pause, again := coupon.Redeliver(c.err, c.tries); pause != c.pause || again != c.again {
				t.Errorf("%v, %v; want %v, %v", pause, again, c.pause, c.again)
			}
		})
	}
}

func TestRelayLease(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	held := coupon.RelayLease{Token: "a", Epoch: 4, Until: now.Add(time.Second)}
	over := coupon.RelayLease{Token: "a", Epoch: 4, Until: now}
	for _, c := range []struct {
		name  string
		from  coupon.RelayLease
		token string
		epoch uint64
		taken bool
	}{
		{"nobody's", coupon.RelayLease{}, "b", 1, true},
		{"another's", held, "b", 4, false},
		{"another's, over", over, "b", 5, true},
		{"its own", held, "a", 4, true},
		{"its own, over", over, "a", 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.from
			if c.taken {
				want = coupon.RelayLease{Token: c.token, Epoch: c.epoch, Until: now.Add(time.Minute)}
			}
			if got, taken := c.from.Take(c.token, now, time.Minute); taken != c.taken || got != want {
				t.Errorf("%+v, %v; want %+v, %v", got, taken, want, c.taken)
			}
		})
	}
}
