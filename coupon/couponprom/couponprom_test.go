package couponprom_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponprom"
)

const want = `
# HELP tallystick_coupon_dead_letters_total Messages set aside as dead letters.
# TYPE tallystick_coupon_dead_letters_total counter
tallystick_coupon_dead_letters_total{reader="wallet"} 8
# HELP tallystick_coupon_messages_handled_total Messages handled.
# TYPE tallystick_coupon_messages_handled_total counter
tallystick_coupon_messages_handled_total{reader="wallet"} 6
# HELP tallystick_coupon_messages_published_total Messages published and removed from the outbox.
# TYPE tallystick_coupon_messages_published_total counter
tallystick_coupon_messages_published_total{shard="17"} 3
# HELP tallystick_coupon_messages_retried_total Failures after which a message comes again.
# TYPE tallystick_coupon_messages_retried_total counter
tallystick_coupon_messages_retried_total{reader="wallet"} 7
# HELP tallystick_coupon_messages_waiting Messages that no process of the reader had been given when the last one came to this one.
# TYPE tallystick_coupon_messages_waiting gauge
tallystick_coupon_messages_waiting{reader="wallet"} 9
# HELP tallystick_coupon_outbox_age_seconds Age of the oldest event that a shard has not published; 0 if there is none.
# TYPE tallystick_coupon_outbox_age_seconds gauge
tallystick_coupon_outbox_age_seconds{shard="17"} 2.5
# HELP tallystick_coupon_outbox_rows Messages that a shard has not published, counted up to 10000.
# TYPE tallystick_coupon_outbox_rows gauge
tallystick_coupon_outbox_rows{shard="17"} 1
# HELP tallystick_coupon_relay_failures_total Turns of the relay that ended with an error.
# TYPE tallystick_coupon_relay_failures_total counter
tallystick_coupon_relay_failures_total{shard="17"} 4
# HELP tallystick_coupon_relay_leased 1 if this process had the lease of the shard's relay when it last published.
# TYPE tallystick_coupon_relay_leased gauge
tallystick_coupon_relay_leased{shard="17"} 1
# HELP tallystick_coupon_relay_leases_lost_total Turns of the relay after which another process had the lease.
# TYPE tallystick_coupon_relay_leases_lost_total counter
tallystick_coupon_relay_leases_lost_total{shard="17"} 5
`

func TestEveryCountShows(t *testing.T) {
	c := couponprom.New(
		func() []coupon.RelayStats {
			return []coupon.RelayStats{{Shard: 17, Waiting: 1, Age: 2500 * time.Millisecond, Leased: true, Published: 3, Failed: 4, Lost: 5}}
		},
		func() []coupon.ReaderStats {
			return []coupon.ReaderStats{{Reader: "wallet", Handled: 6, Retried: 7, Dead: 8, Waiting: 9}}
		})
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// TestOperatorsAreToldWhatToDo: each name is in the page that is read at night.
func TestOperatorsAreToldWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(tallystick_coupon_\w+)(\{\w+)=`).FindAllStringSubmatch(want, -1) {
		if !strings.Contains(string(page), "`"+m[1]+m[2]+"}`") {
			t.Errorf("docs/operations.md does not tell of %s%s}", m[1], m[2])
		}
	}
}

func TestItRegistersWithNothingToShow(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(couponprom.New(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Gather(); err != nil || len(all) > 0 {
		t.Error(all, err)
	}
}
