package coupon

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// operationQueue has operations of a kind that nobody knows: each is refused.
type operationQueue struct {
	Control
	left, done int
}

func (q *operationQueue) LeaseOperation(context.Context, string, time.Duration) (Operation, error) {
	if q.left == 0 {
		return Operation{}, ErrNoRow
	}
	q.left--
	return Operation{Kind: "?"}, nil
}

func (q *operationQueue) SaveOperation(context.Context, Operation, string, time.Duration) (bool, error) {
	q.done++
	return true, nil
}

func TestOperationsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &operationQueue{left: 100}
		s := &Service{control: q, patience: defaultPatience, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), operateEvery+operateEvery/2)
		defer cancel()
		s.operator(ctx)
		if q.done != 100 {
			t.Errorf("%d of 100 operations are done in the second half second", q.done)
		}
	})
}
