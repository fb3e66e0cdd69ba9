package migredis

import "strings"

// Plant replaces a part of the scripts that this pod runs, to see a fault
// caught.
func (s *State) Plant(old, new string) {
	found := false
	s.scripts = newLibrary(func(text string) string {
		found = found || strings.Contains(text, old)
		return strings.ReplaceAll(text, old, new)
	})
	if !found {
		panic("no script has " + old)
	}
}
