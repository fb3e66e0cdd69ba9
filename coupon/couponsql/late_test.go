package couponsql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

// away makes the databases whose place has that word unreachable while it says so.
func away(o couponsql.Options, word string) (couponsql.Options, *atomic.Bool) {
	gone, open := new(atomic.Bool), o.Open
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		if gone.Load() && strings.Contains(at, word) {
			return nil, fmt.Errorf("%w: connection refused", shard.ErrUnavailable)
		}
		return open(ctx, at)
	}
	return o, gone
}

func TestPlatformOpensWithoutADatabaseThatComesLater(t *testing.T) {
	o, gone := away(sqlite(t).options(2), "db1")
	open(t, o).Close()
	gone.Store(true)
	told := make(chan error, 8)
	o.Late = func(name string, err error) {
		if name != "db1" {
			t.Errorf("%s is late", name)
		}
		told <- err
	}
	p := open(t, o)
	write := func(s shard.Shard) error {
		return p.Cluster.Write(t.Context(), s, func(*shard.Tx) error { return nil })
	}
	if err := <-told; !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("told %v", err)
	}
	if err := errors.Join(write(0), write(15)); err != nil {
		t.Errorf("shards of the other database: %v", err)
	}
	if err := write(16); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("a shard of the late one: %v", err)
	}
	gone.Store(false)
	for waited := time.After(time.Minute); ; {
		select {
		case err := <-told:
			if err != nil {
				continue
			}
		case <-waited:
			t.Fatal("it was never opened")
		}
		break
	}
	if err := errors.Join(write(16), write(31)); err != nil {
		t.Errorf("its shards once it is there: %v", err)
	}
}

func TestPlatformThatWaitsForADatabaseCloses(t *testing.T) {
	o, gone := away(sqlite(t).options(2), "db1")
	open(t, o).Close()
	gone.Store(true)
	o.Late = func(string, error) {}
	if err := open(t, o).Close(); err != nil {
		t.Error(err)
	}
}

func TestFirstOpenNeedsEveryDatabase(t *testing.T) {
	o, gone := away(sqlite(t).options(2), "db1")
	gone.Store(true)
	o.Late = func(string, error) { t.Error("told that a database is late") }
	if _, err := couponsql.Open(t.Context(), o); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestDatabaseThatIsNoneIsNotWaitedFor(t *testing.T) {
	o := sqlite(t).options(2)
	open(t, o).Close()
	denied := errors.New("access denied")
	o.Open = func(context.Context, string) (couponsql.Database, error) { return nil, denied }
	o.Late = func(string, error) { t.Error("told that a database is late") }
	if _, err := couponsql.Open(t.Context(), o); !errors.Is(err, denied) {
		t.Errorf("error %v", err)
	}
}
