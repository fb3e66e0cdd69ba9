package main_test

import (
	"strings"
	"testing"
)

// TestServerSaysThatStatementsAreRouted looks into the log of a running server.
func TestServerSaysThatStatementsAreRouted(t *testing.T) {
	t.Parallel()
	p := start(t, "--coupons", "embedded")
	if said := p.err.String(); !strings.Contains(said, `"statements of coupons without their shard key are refused","databases":9`) {
		t.Errorf("the log does not say so: %s", said)
	}
}
