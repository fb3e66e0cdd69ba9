package rollouttest_test

import (
	"testing"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

func number(i int) int { return i }

func TestOldInMemory(t *testing.T) {
	rollouttest.TestOld(t, func(*testing.T) rollout.OldSide[int, int] { return rollouttest.NewOld[int, int]() }, number, number)
}

func TestNewInMemory(t *testing.T) {
	rollouttest.TestNew(t, func(*testing.T) rollout.NewSide[int, int] { return rollouttest.NewNew[int, int]() }, number, number)
}
