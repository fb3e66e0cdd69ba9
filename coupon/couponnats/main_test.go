package couponnats_test

import (
	"os"
	"testing"
)

// TestMain is the process that dies, if the test says that this is one.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		relayAndDie(dir, os.Getenv(childPoint))
	}
	os.Exit(m.Run())
}
