package spelling_test

import (
	"testing"

	"github.com/tallystick/tallystick/internal/spelling"
)

func TestNearest(t *testing.T) {
	words := []string{"order", "lag", "from", "to", "width", "sweep"}
	for typed, want := range map[string]string{
		"oder": "order", "ordre": "order", "Order": "order", "ORDRE": "order", "TO": "to", "witdh": "width", "swep": "sweep",
		"lagg": "lag", "form": "from", "t": "to", "colour": "", "": "", "x": "",
	} {
		if got := spelling.Nearest(typed, words); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	if got := spelling.Nearest("ab", []string{"ac", "aa"}); got != "aa" {
		t.Errorf("of two as near: %q", got)
	}
}
