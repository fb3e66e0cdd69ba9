package migdynamo

import (
	"context"

	"github.com/tallystick/tallystick/internal/awsdynamo"
)

// caller is the key of the context that a request was made with.
type caller struct{}

// callersOwn returns ctx such that [over] asks it itself in whatever is derived
// from it. A claim's context has a deadline that moves, and knows better than a
// timer whether that has passed.
func callersOwn(ctx context.Context) context.Context { return context.WithValue(ctx, caller{}, ctx) }

// over returns why nothing more may be sent.
func over(ctx context.Context) error {
	if err := awsdynamo.Ended(ctx); err != nil {
		return err
	}
	if own, ok := ctx.Value(caller{}).(context.Context); ok {
		return own.Err()
	}
	return nil
}
