// Package couponprom shows how events of coupons move on as Prometheus metrics.
//
//	registry.MustRegister(couponprom.New(relay.Stats, queue.Stats))
//
// What to alarm on: tallystick_coupon_outbox_age_seconds, which is how old the
// oldest event is that a shard has not published; and every growth of
// tallystick_coupon_dead_letters_total. All counters are of one process and begin
// at 0 with it. Lag is what this process saw when it last looked, at most a few
// seconds ago, whichever process publishes: take the maximum over processes.
package couponprom

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/coupon"
)

// New returns a collector of what a relay and the readers of its queue tell, each
// asked once per scrape. Either may be nil: it shows nothing then.
func New(relay func() []coupon.RelayStats, readers func() []coupon.ReaderStats) prometheus.Collector {
	return collector{relay, readers}
}

type collector struct {
	relay   func() []coupon.RelayStats
	readers func() []coupon.ReaderStats
}

// A metric has a series for each S, which may be a shard or a reader.
type metric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(S) float64
}

func of[S any](label string, kind prometheus.ValueType, name, help string, value func(S) float64) metric[S] {
	return metric[S]{prometheus.NewDesc("tallystick_coupon_"+name, help, []string{label}, nil), kind, value}
}

var shardMetrics = []metric[coupon.RelayStats]{
	of("shard", prometheus.GaugeValue, "outbox_rows", "Messages that a shard has not published, counted up to 10000.",
		func(s coupon.RelayStats) float64 { return float64(s.Waiting) }),
	of("shard", prometheus.GaugeValue, "outbox_age_seconds", "Age of the oldest event that a shard has not published; 0 if there is none.",
		func(s coupon.RelayStats) float64 { return s.Age.Seconds() }),
	of("shard", prometheus.GaugeValue, "relay_leased", "1 if this process had the lease of the shard's relay when it last published.",
		func(s coupon.RelayStats) float64 {
			if s.Leased {
				return 1
			}
			return 0
		}),
	of("shard", prometheus.CounterValue, "messages_published_total", "Messages published and removed from the outbox.",
		func(s coupon.RelayStats) float64 { return float64(s.Published) }),
	of("shard", prometheus.CounterValue, "relay_failures_total", "Turns of the relay that ended with an error.",
		func(s coupon.RelayStats) float64 { return float64(s.Failed) }),
	of("shard", prometheus.CounterValue, "relay_leases_lost_total", "Turns of the relay after which another process had the lease.",
		func(s coupon.RelayStats) float64 { return float64(s.Lost) }),
}

var readerMetrics = []metric[coupon.ReaderStats]{
	of("reader", prometheus.GaugeValue, "messages_waiting", "Messages that no process of the reader had been given when the last one came to this one.",
		func(s coupon.ReaderStats) float64 { return float64(s.Waiting) }),
	of("reader", prometheus.CounterValue, "messages_handled_total", "Messages handled.",
		func(s coupon.ReaderStats) float64 { return float64(s.Handled) }),
	of("reader", prometheus.CounterValue, "messages_retried_total", "Failures after which a message comes again.",
		func(s coupon.ReaderStats) float64 { return float64(s.Retried) }),
	of("reader", prometheus.CounterValue, "dead_letters_total", "Messages set aside as dead letters.",
		func(s coupon.ReaderStats) float64 { return float64(s.Dead) }),
}

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range shardMetrics {
		ch <- m.desc
	}
	for _, m := range readerMetrics {
		ch <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	if c.relay != nil {
		for _, s := range c.relay() {
			show(ch, shardMetrics, s, strconv.Itoa(int(s.Shard)))
		}
	}
	if c.readers != nil {
		for _, s := range c.readers() {
			show(ch, readerMetrics, s, s.Reader)
		}
	}
}

func show[S any](ch chan<- prometheus.Metric, metrics []metric[S], s S, label string) {
	for _, m := range metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s), label)
	}
}
