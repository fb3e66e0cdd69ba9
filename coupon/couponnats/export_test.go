package couponnats

import "time"

// Stuck returns a function that is told whether a server answered at an instant,
// and reports whether to start it again.
func Stuck() func(answered bool, now time.Time) bool { return new(stuckness).note }
