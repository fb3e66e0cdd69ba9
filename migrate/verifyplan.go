package migrate

import (
	"cmp"
	"slices"
	"time"
)

// A VerifyPlan says how rows are compared.
type VerifyPlan struct {
	// Recheck is how long after it was compared, and after each further look, a
	// row that is not equal on both sides is read again: longer than the
	// double-writer's second write and a replica's lag take.
	Recheck []Duration `yaml:"recheck"`
}

var defaultRecheck = []Duration{Duration(time.Second), Duration(5 * time.Second), Duration(30 * time.Second)}

// delays returns the waits before each further look at a row. The last one goes
// on for rows that keep changing.
func (p VerifyPlan) delays() []time.Duration {
	delays := slices.Clone(p.Recheck)
	if len(delays) == 0 {
		delays = slices.Clone(defaultRecheck)
	}
	all := make([]time.Duration, len(delays))
	for i, d := range delays {
		all[i] = time.Duration(cmp.Or(d, 1))
	}
	return all
}
