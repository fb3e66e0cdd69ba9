package seqprom_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqprom"
)

var full = sequence.ServiceStats{
	Granted: 1, Leases: 2, Refused: map[sequence.Code]int64{sequence.CodeExhausted: 3}, Misses: 4, Returned: 5, GivenBack: 6,
	Refills: 7, RefillsFailed: 8, Burned: map[sequence.BurnCause]int64{sequence.BurnedAlter: 9, sequence.BurnedReturn: 0},
	StoreRequests: map[sequence.StoreRequest]int64{{Op: sequence.OpAdvance, Outcome: sequence.OutcomeConflict}: 10},
	Sequences:     11, Cached: 12,
}

const want = `
# HELP tallystick_sequence_cached_sequences Sequences in the server's cache.
# TYPE tallystick_sequence_cached_sequences gauge
tallystick_sequence_cached_sequences 11
# HELP tallystick_sequence_cached_values Values in the server's cache, all sequences together.
# TYPE tallystick_sequence_cached_values gauge
tallystick_sequence_cached_values 12
# HELP tallystick_sequence_lease_misses_total Leases that had to wait for the store.
# TYPE tallystick_sequence_lease_misses_total counter
tallystick_sequence_lease_misses_total 4
# HELP tallystick_sequence_leases_granted_total Leases granted to clients.
# TYPE tallystick_sequence_leases_granted_total counter
tallystick_sequence_leases_granted_total 2
# HELP tallystick_sequence_leases_refused_total Leases refused, by error code.
# TYPE tallystick_sequence_leases_refused_total counter
tallystick_sequence_leases_refused_total{code="RESOURCE_EXHAUSTED"} 3
# HELP tallystick_sequence_refills_failed_total Tries to take a block from the store that failed.
# TYPE tallystick_sequence_refills_failed_total counter
tallystick_sequence_refills_failed_total 8
# HELP tallystick_sequence_refills_total Blocks taken from the store.
# TYPE tallystick_sequence_refills_total counter
tallystick_sequence_refills_total 7
# HELP tallystick_sequence_store_requests_total Requests to the store, by kind and outcome.
# TYPE tallystick_sequence_store_requests_total counter
tallystick_sequence_store_requests_total{kind="advance",outcome="conflict"} 10
# HELP tallystick_sequence_values_burned_total Values that will never be used, by cause.
# TYPE tallystick_sequence_values_burned_total counter
tallystick_sequence_values_burned_total{cause="alter"} 9
tallystick_sequence_values_burned_total{cause="return_refused"} 0
# HELP tallystick_sequence_values_given_back_total Values given back to the store when the server stopped.
# TYPE tallystick_sequence_values_given_back_total counter
tallystick_sequence_values_given_back_total 6
# HELP tallystick_sequence_values_granted_total Values granted to clients.
# TYPE tallystick_sequence_values_granted_total counter
tallystick_sequence_values_granted_total 1
# HELP tallystick_sequence_values_returned_total Values that clients gave back and that can be granted again.
# TYPE tallystick_sequence_values_returned_total counter
tallystick_sequence_values_returned_total 5
`

func TestEveryCountShows(t *testing.T) {
	c := seqprom.New(func() sequence.ServiceStats { return full })
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

func TestItRegisters(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(seqprom.New(func() sequence.ServiceStats { return sequence.ServiceStats{} })); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
