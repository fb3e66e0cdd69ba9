//go:build crashpoints

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// crashPoints makes this process die, with no chance to do anything, where
// TALLYSTICK_CRASH_AT says: the name of one of [coupon.Steps], or NAME:N for the
// Nth time it is reached. TALLYSTICK_CRASH_PATIENCE is how soon processes go on
// with what others left. Builds without the tag crashpoints have neither.
func crashPoints(o *coupon.Options) {
	if d, err := time.ParseDuration(os.Getenv("TALLYSTICK_CRASH_PATIENCE")); err == nil {
		o.Patience = d
	}
	point, count, _ := strings.Cut(os.Getenv("TALLYSTICK_CRASH_AT"), ":")
	if point == "" {
		return
	}
	var reached atomic.Int64
	last, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		last = 1
	}
	o.Step = func(at string) {
		if at == point && reached.Add(1) == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
}
