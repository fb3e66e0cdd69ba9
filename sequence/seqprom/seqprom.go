// Package seqprom shows what a sequence.Service does as Prometheus metrics.
//
//	registry.MustRegister(seqprom.New(service.Stats))
//
// No metric has a label per sequence, so a server with 10,000 sequences shows
// as many series as one with ten. All counters are of one server process and
// begin at 0 with it. Values missing from a sequence equal, over all servers
// that ever ran, what tallystick_sequence_values_burned_total counts and what
// crashes burned, which nobody can count.
package seqprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/sequence"
)

const prefix = "tallystick_sequence_"

// New returns a collector of what stats returns. stats is called once per
// scrape; see [sequence.Service.Stats].
func New(stats func() sequence.ServiceStats) prometheus.Collector {
	return collector{stats}
}

type collector struct{ stats func() sequence.ServiceStats }

// A metric is one without labels.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(sequence.ServiceStats) float64
}

func counter(name, help string, value func(sequence.ServiceStats) int64) metric {
	return metric{desc(name, help), prometheus.CounterValue, func(s sequence.ServiceStats) float64 { return float64(value(s)) }}
}

func gauge(name, help string, value func(sequence.ServiceStats) int64) metric {
	m := counter(name, help, value)
	m.kind = prometheus.GaugeValue
	return m
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var metrics = []metric{
	counter("values_granted_total", "Values granted to clients.",
		func(s sequence.ServiceStats) int64 { return s.Granted }),
	counter("leases_granted_total", "Leases granted to clients.",
		func(s sequence.ServiceStats) int64 { return s.Leases }),
	counter("lease_misses_total", "Leases that had to wait for the store.",
		func(s sequence.ServiceStats) int64 { return s.Misses }),
	counter("values_returned_total", "Values that clients gave back and that can be granted again.",
		func(s sequence.ServiceStats) int64 { return s.Returned }),
	counter("values_given_back_total", "Values given back to the store when the server stopped.",
		func(s sequence.ServiceStats) int64 { return s.GivenBack }),
	counter("refills_total", "Blocks taken from the store.",
		func(s sequence.ServiceStats) int64 { return s.Refills }),
	counter("refills_failed_total", "Tries to take a block from the store that failed.",
		func(s sequence.ServiceStats) int64 { return s.RefillsFailed }),
	gauge("cached_sequences", "Sequences in the server's cache.",
		func(s sequence.ServiceStats) int64 { return int64(s.Sequences) }),
	gauge("cached_values", "Values in the server's cache, all sequences together.",
		func(s sequence.ServiceStats) int64 { return s.Cached }),
}

var (
	refused = desc("leases_refused_total", "Leases refused, by error code.", "code")
	burned  = desc("values_burned_total", "Values that will never be used, by cause.", "cause")
	store   = desc("store_requests_total", "Requests to the store, by kind and outcome.", "kind", "outcome")
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range metrics {
		ch <- m.desc
	}
	ch <- refused
	ch <- burned
	ch <- store
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for _, m := range metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s))
	}
	for code, n := range s.Refused {
		ch <- total(refused, n, string(code))
	}
	for cause, n := range s.Burned {
		ch <- total(burned, n, string(cause))
	}
	for r, n := range s.StoreRequests {
		ch <- total(store, n, string(r.Op), string(r.Outcome))
	}
}

func total(d *prometheus.Desc, n int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}
