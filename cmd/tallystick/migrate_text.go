package main

import (
	"fmt"
	"time"
)

// sizeText returns bytes for people.
func sizeText(n int64) string {
	v, unit := float64(n), "bytes"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, next
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}

// spanText returns a range of seconds for people.
func spanText(s []int64) string {
	if len(s) != 2 {
		return "unknown"
	}
	lo, hi := roundTime(s[0]), roundTime(s[1])
	if lo == hi {
		return lo
	}
	return lo + " to " + hi
}

// roundTime returns seconds with as many units as anybody wants to know of an
// estimate.
func roundTime(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}
