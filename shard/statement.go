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

type queueKey struct{}

// queued marks a call as one for a statement whose answer nobody waits for.
func queued(ctx context.Context) context.Context {
	return context.WithValue(ctx, queueKey{}, true)
}

// Queued reports whether a statement may wait and travel with the next one of its
// transaction, or with the COMMIT. The driver wrapper asks.
func Queued(ctx context.Context) bool { return ctx.Value(queueKey{}) != nil }
