package rollout_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties tried often enough to find what takes several
// accidents in a row; -rapid.checks overrides it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
