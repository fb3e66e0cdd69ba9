package shardtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// locked runs fn while another handle holds row 1.
func locked(t *testing.T, s Subject, fn func()) {
	t.Helper()
	other := connect(t, s.Open(t))
	err := other.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if _, err := tx.Exec(set, 9, 1); err != nil {
			return err
		}
		fn()
		return nil
	})
	if err != nil {
		t.Errorf("the holder: %v", err)
	}
}

func testBusy(t *testing.T, s Subject) {
	c := prepare(t, s)
	locked(t, s, func() {
		start := time.Now()
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			_, err := tx.Exec(add, 5, 1)
			return err
		})
		if !errors.Is(err, shard.ErrBusy) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v, want ErrBusy", err, time.Since(start))
		}
	})
	c.holds(t, 1, 9)
}

func testHiddenFailure(t *testing.T, s Subject) {
	c := prepare(t, s)
	locked(t, s, func() {
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			tx.Exec(insert, 2, 2)
			tx.Exec(add, 5, 1) // busy
			tx.Exec(insert, 3, 3)
			return nil
		})
		if !errors.Is(err, shard.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
	})
	c.holds(t, 2, -1)
	c.holds(t, 3, -1)
}

func testIncrements(t *testing.T, s Subject) {
	c := prepare(t, s)
	other := connect(t, s.Open(t))
	const writers, each = 8, 25
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for range each {
				handle := c
				if i%2 == 1 {
					handle = other
				}
				err := handle.Write(t.Context(), seven, func(tx *shard.Tx) error {
					_, err := tx.Exec(add, 1, 1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	c.holds(t, 1, writers*each)
}
