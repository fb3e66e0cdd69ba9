package coupontest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/coupon"
)

// Models of what callers see. The step of a call whose outcome is not known is
// what it comes to where that is a change; that it never happened is its being
// the last of all, which its open end allows.

// livesModel is of the coupons, one by one.
func livesModel(bearer map[coupon.ID]bool) porcupine.Model {
	fresh := func(l Life, a Act) Life { // the first step sees no life yet
		switch {
		case l.Version > 0:
			return l
		case bearer[a.Coupon]:
			return Bearer()
		}
		return Free()
	}
	return porcupine.Model{
		Partition: partition(func(a Act) any { return a.Coupon }),
		Init:      func() any { return Life{} },
		Equal:     func(a, b any) bool { return a.(Life).Equal(b.(Life)) },
		Step: func(state, input, output any) (bool, any) {
			act, answer := input.(Act), output.(Answer)
			life := fresh(state.(Life), act)
			next, want := life.Do(act, time.Time{})
			switch {
			case answer.Unknown && want.Refusal != "":
				return true, life
			case answer.Unknown:
				return true, next
			case answer.Refusal != want.Refusal:
				return false, nil
			case answer.Refusal != "":
				return true, life
			case answer.View != want.View, want.Replayed && !answer.Replayed:
				return false, nil
			}
			return true, next // a replay may be of the call's own lost reply
		},
	}
}

// claimsModel is of the claims of each user: a coupon for each request, up to a
// limit.
func claimsModel(limit int) porcupine.Model {
	return porcupine.Model{
		Partition: partition(func(a Act) any { return a.User }),
		Init:      func() any { return map[string]coupon.ID{} },
		Equal: func(a, b any) bool {
			return maps.Equal(a.(map[string]coupon.ID), b.(map[string]coupon.ID))
		},
		Step: func(state, input, output any) (bool, any) {
			made, act, answer := state.(map[string]coupon.ID), input.(Act), output.(Answer)
			got, again := made[act.Request]
			full := len(made) >= limit
			switch {
			case answer.Refusal == "USER_LIMIT":
				if again || !full {
					return false, nil
				}
				return true, made
			case answer.Unknown && (again || full):
				return true, made
			case answer.Refusal != "", again && (got != act.Coupon || !answer.Replayed && !answer.Unknown), !again && full:
				return false, nil
			case again:
				return true, made
			}
			next := maps.Clone(made)
			next[act.Request] = act.Coupon
			return true, next
		},
	}
}

// partition divides a history into parts that have nothing to do with each other.
func partition(key func(Act) any) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[any]int{}
		for _, op := range all {
			k := key(op.Input.(Act))
			i, there := of[k]
			if !there {
				i = len(parts)
				of[k], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	}
}

// check checks the parts of a history and returns the first that is not sound, a
// line for each call.
func check(m porcupine.Model, history []porcupine.Operation, timeout time.Duration) (porcupine.CheckResult, string) {
	for _, part := range m.Partition(history) {
		got := porcupine.CheckOperationsTimeout(m, part, timeout)
		if got == porcupine.Ok {
			continue
		}
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var text strings.Builder
		for _, op := range part {
			fmt.Fprintf(&text, "%9d to %9d us: %+v: %+v\n", op.Call/1000, op.Return/1000, op.Input, op.Output)
		}
		return got, text.String()
	}
	return porcupine.Ok, ""
}
