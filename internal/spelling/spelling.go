// Package spelling finds the word that somebody probably meant.
package spelling

import (
	"cmp"
	"strings"
)

// Nearest returns the word that differs from typed in the fewest letters, ""
// if none is near. Upper and lower case are the same.
func Nearest(typed string, words []string) string {
	best, least := "", cmp.Or(min(2, len(typed)/2), 1)+1
	for _, w := range words {
		if d := distance(strings.ToLower(typed), strings.ToLower(w)); d < least || d == least && w < best {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to add, drop, change or swap with their
// neighbour between a and b (optimal string alignment).
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		now[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			now[j+1] = min(last[j+1]+1, now[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
