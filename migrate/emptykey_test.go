package migrate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tallystick/tallystick/migrate"
)

// patient is a state that is asked for the quarantine so often and not again.
type patient struct {
	migrate.State
	left int
}

func (p *patient) Quarantined(ctx context.Context, after string, limit int) ([]migrate.Quarantined, error) {
	if p.left--; p.left < 0 {
		return nil, errors.New("the quarantine is read for ever")
	}
	return p.State.Quarantined(ctx, after, limit)
}

// TestAnEmptyKeyInQuarantineIsCountedAndTriedAgain: it is the text that a walk
// over the quarantine begins with, too.
func TestAnEmptyKeyInQuarantineIsCountedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		w.setAside(migrate.Key{""})
		pod := func() *migrate.Migration {
			return migrate.New(w.plan, w.source, w.sink, &patient{w.state.Pod(), 3}, migrate.Options{})
		}
		if v, err := pod().Verify(t.Context(), migrate.VerifyOptions{Mode: "full"}); err != nil || v.Clean || v.Quarantined != 1 || v.Compared != 4_000 {
			t.Errorf("verdict %+v, %v", v, err)
		}
		if settled, left, err := pod().Replay(t.Context()); settled != 1 || left != 0 || err != nil {
			t.Errorf("replay: %d settled, %d left, %v", settled, left, err)
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict %+v", v)
		}
	})
}
