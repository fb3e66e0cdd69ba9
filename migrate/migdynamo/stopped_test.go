package migdynamo_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/migrate"
)

// A stopped is the context of a process that is stopped beyond the deadline of
// its claim after it has looked at it some times: no timer has fired yet, and
// what is derived from it does not know.
type stopped struct {
	context.Context
	looks atomic.Int64 // left until then
}

func (s *stopped) Err() error {
	if s.looks.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestNothingIsSentOnceTheClaimIsOver: it is looked at before a request is
// signed, when it is, and when its body leaves.
func TestNothingIsSentOnceTheClaimIsOver(t *testing.T) {
	for _, mode := range modes {
		sink, proxy, _ := behind(t, mode)
		for looks, sent := range map[int]int{0: 0, 1: 0, 2: 0, 100: 1} {
			proxy.ResetCounts()
			ctx := &stopped{Context: t.Context()}
			ctx.looks.Store(int64(looks))
			_, err := sink.Writer().Write(ctx, []migrate.Row{row("a", 1)})
			if got := proxy.Count("", ""); got != sent || (sent == 0) != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, over after %d looks: %d requests came, want %d; %v", mode, looks, got, sent, err)
			}
		}
	}
}
