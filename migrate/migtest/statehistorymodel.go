package migtest

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A claimState is a slot in the model. Its deadline lies between two times,
// since a call happened between its begin and its end.
type claimState struct {
	epoch           uint64
	held            bool
	soonest, latest int64 // the deadline
	read            int64
	finished        bool
	ended           string // which claims were given up or finished, in words
}

// slack is for a clock that counts milliseconds.
const slack = 2e6

var claimModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		slots := map[int64][]porcupine.Operation{}
		for _, o := range history {
			i := o.Input.(claimCall).slot
			slots[i] = append(slots[i], o)
		}
		var all [][]porcupine.Operation
		for _, s := range slots {
			all = append(all, s)
		}
		return all
	},
	Init: func() []any { return []any{claimState{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(claimState), input.(claimCall), output.(claimReply)
		switch {
		case out.unknown && s.may(in):
			return []any{s, s.after(in, out)}
		case out.unknown, !out.ok && !s.must(in):
			return []any{s}
		case out.ok && s.may(in) && s.fits(in, out):
			return []any{s.after(in, out)}
		case out.ok && strings.Contains(s.ended, in.ending()): // repeated
			return []any{s}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

// ending returns a word for a call that ends a claim.
func (in claimCall) ending() string { return fmt.Sprintf("%s %d\n", in.op, in.epoch) }

// may reports whether a call can have succeeded.
func (s claimState) may(in claimCall) bool {
	if in.op == "claim" {
		return !s.finished && (!s.held || in.end >= s.soonest)
	}
	return s.owned(in) && in.call <= s.latest
}

// must reports whether a call cannot have been refused.
func (s claimState) must(in claimCall) bool {
	if in.op == "claim" {
		return !s.finished && (!s.held || in.call > s.latest)
	}
	return s.owned(in) && in.end < s.soonest
}

// owned reports whether a call is of the slot's owner and advances.
func (s claimState) owned(in claimCall) bool {
	advances := in.op != "save" && in.op != "finish" || in.read >= s.read
	return s.held && in.epoch == s.epoch && advances
}

// fits reports whether a claim that succeeded got what it must get.
func (s claimState) fits(in claimCall, out claimReply) bool {
	return in.op != "claim" || out.epoch > s.epoch && out.read == s.read
}

// after returns the slot after a call that succeeded. A claim nobody knows of
// has an epoch nobody knows.
func (s claimState) after(in claimCall, out claimReply) claimState {
	ttl := int64(ClaimTTL)
	s.soonest, s.latest = in.call+ttl-slack, math.MaxInt64
	if !out.unknown {
		s.latest = in.end + ttl + slack
	}
	switch in.op {
	case "claim":
		s.held = true
		if !out.unknown {
			s.epoch = out.epoch
		} else {
			s.epoch++
		}
	case "save":
		s.read = in.read
	case "release":
		s.held, s.ended = false, s.ended+in.ending()
	case "finish":
		s.held, s.finished, s.read, s.ended = false, true, in.read, s.ended+in.ending()
	}
	return s
}
