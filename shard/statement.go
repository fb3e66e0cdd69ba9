package shard

import (
	"context"
	"fmt"
	"strings"
)

// A Statement is SQL for one shard's tables.
type Statement struct{ text [Count]string }

// SQL makes a statement of text in which # stands for the number of the shard,
// two digits: coupon_# is coupon_07 on shard 7. Text without # panics: it would
// be no statement for a shard.
func SQL(text string) Statement {
	if !strings.Contains(text, "#") {
		panic(fmt.Sprintf("shard: statement names no shard's table: %s", text))
	}
	var s Statement
	for i := range s.text {
		s.text[i] = strings.ReplaceAll(text, "#", fmt.Sprintf("%02d", i))
	}
	return s
}

// On returns the text for a shard.
func (s Statement) On(shard Shard) string { return s.text[shard] }

type routeKey struct{}

// routed marks a call as one for a shard.
func routed(ctx context.Context, s Shard) context.Context {
	return context.WithValue(ctx, routeKey{}, s)
}

// Route returns the shard that a call is for, and false for one that did not
// come through a [Cluster]. The driver wrapper asks.
func Route(ctx context.Context) (Shard, bool) {
	s, ok := ctx.Value(routeKey{}).(Shard)
	return s, ok
}

// A Wait is how long the caller of a statement waits for its answer.
type Wait int

const (
	// ForAnswer: until it is there.
	ForAnswer Wait = iota
	// ForNothing: the statement may wait and travel with the next one of its
	// transaction, or with the COMMIT.
	ForNothing
	// ForMatch is the same, but the transaction has to fail with [ErrNoMatch] if
	// the statement matches no row.
	ForMatch
)

type waitKey struct{}

func waiting(ctx context.Context, w Wait) context.Context {
	return context.WithValue(ctx, waitKey{}, w)
}

// WaitOf returns how long the caller of a statement waits. The driver wrapper asks.
func WaitOf(ctx context.Context) Wait {
	w, _ := ctx.Value(waitKey{}).(Wait)
	return w
}
