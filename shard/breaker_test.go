package shard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A mute is a database that answers with err, or, while it hangs, not at all.
type mute struct {
	shard.Database
	err   error
	hangs bool
	asked int
}

func (m *mute) Write(ctx context.Context, _ func(shard.Conn) error) error { return m.Read(ctx, nil) }

func (m *mute) Read(ctx context.Context, _ func(shard.Conn) error) error {
	m.asked++
	if m.hangs {
		<-ctx.Done()
		return errors.Join(shard.ErrUnavailable, ctx.Err())
	}
	return m.err
}

// askAll makes n calls that may take that long each, and returns how long all took
// and the last error.
func askAll(t *testing.T, db shard.Database, n int, limit time.Duration) (took time.Duration, err error) {
	began := time.Now()
	for range n {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = db.Write(ctx, nil)
		cancel()
	}
	return time.Since(began), err
}

func TestDatabaseThatHangsCostsAMomentAndThenOneCallASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &mute{hangs: true}
		var changes []bool
		b := shard.NewBreaker(db, func(open bool, _ error) { changes = append(changes, open) })
		if took, _ := askAll(t, b, 5, time.Second); took != 5*time.Second || len(changes) != 1 || !changes[0] {
			t.Fatalf("%v, told %v", took, changes)
		}
		took, err := askAll(t, b, 1_000, time.Second)
		if took != 0 || !errors.Is(err, shard.ErrUnavailable) || db.asked != 5 {
			t.Errorf("1,000 calls took %v, %d asked, %v", took, db.asked, err)
		}
		time.Sleep(time.Second)
		if took, _ := askAll(t, b, 1_000, 700*time.Millisecond); took != 700*time.Millisecond || db.asked != 6 {
			t.Errorf("1,000 calls a second later took %v, %d asked", took, db.asked)
		}
	})
}

func TestFirstAnswerLetsAllThroughAgain(t *testing.T) {
	for name, answer := range map[string]error{
		"success": nil, "lock": shard.ErrBusy, "moved": shard.ErrMoved, "duplicate": shard.ErrDuplicate, "the caller's own": errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &mute{err: shard.ErrUnavailable}
				var changes []bool
				b := shard.NewBreaker(db, func(open bool, _ error) { changes = append(changes, open) })
				askAll(t, b, 5, time.Second)
				db.err = answer
				if _, err := askAll(t, b, 1, time.Second); !errors.Is(err, shard.ErrUnavailable) {
					t.Errorf("let through before its time: %v", err)
				}
				time.Sleep(time.Second)
				if _, err := askAll(t, b, 10, time.Second); err != answer || db.asked != 15 {
					t.Errorf("%v, %d asked", err, db.asked)
				}
				if len(changes) != 2 || changes[1] {
					t.Errorf("told %v", changes)
				}
			})
		})
	}
}

func TestCallsThatSayNothingOfTheDatabaseDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &mute{hangs: true}
		b := shard.NewBreaker(db, nil)
		askAll(t, b, 20, 400*time.Millisecond) // they had little time
		for range 20 {                         // and these went away
			gone, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, leave)
			b.Read(gone, nil)
			leave()
		}
		if db.asked != 40 {
			t.Errorf("%d asked", db.asked)
		}
	})
}

func TestFailuresBetweenAnswersDoNotCount(t *testing.T) {
	db := &mute{}
	b := shard.NewBreaker(db, nil)
	for range 10 {
		db.err = shard.ErrUnavailable
		askAll(t, b, 4, time.Second)
		db.err = nil
		askAll(t, b, 1, time.Second)
	}
	if db.asked != 50 {
		t.Errorf("%d asked", db.asked)
	}
}
