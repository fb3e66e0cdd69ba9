package coupon_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/coupon"
)

// TestStepsAreExplained looks in the tables for users for each point where a
// process may die.
func TestStepsAreExplained(t *testing.T) {
	b, err := os.ReadFile("../docs/coupon.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range coupon.Steps() {
		if !strings.Contains(string(b), "`"+point+"`") {
			t.Errorf("docs/coupon.md does not say what is there when a process dies at %s", point)
		}
	}
}
