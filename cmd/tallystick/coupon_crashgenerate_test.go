package main_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

// TestFaultCouponGenerationKilledTenTimes kills the server ten times while it
// generates, each time a bit further, with eight transactions under way.
func TestFaultCouponGenerationKilledTenTimes(t *testing.T) {
	for name, home := range map[string]func(*testing.T) *couponHome{"SQLite": embeddedHome, "MariaDB": mariadbHome} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const total, kills, chunks = 64_000, 10, 128
			h := home(t)
			w := &crashWorld{t: t, home: h}
			s := h.crash(t)
			id := w.campaign(s, total, 1)
			s.stop(t)
			soon := "TALLYSTICK_CRASH_PATIENCE=1500ms"
			for kill := range kills {
				chunk := 1 + kill*(chunks/kills) + rand.IntN(chunks/kills)
				s := h.crash(t, soon, fmt.Sprintf("TALLYSTICK_CRASH_AT=%s:%d", coupon.StepGenerateChunk, chunk))
				if kill == 0 {
					_, _ = s.Generate(t.Context(), id) // it may die before it answers
				}
				s.died(t, fmt.Sprintf("kill %d at chunk %d", kill, chunk))
			}
			h.crash(t, soon)
			c := &crashCase{picture: coupontest.Picture{Campaign: id, Own: true}}
			w.settled([]*crashCase{c})
			w.operations(1)
			found, err := coupontest.Books{Campaign: id}.Audit(t.Context(), h.direct.Store, h.direct.Control)
			if err != nil || len(found) > 0 {
				t.Errorf("%q, %v", found, err)
			}
		})
	}
}
