package migredis_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// history returns one of pods that contend for a few slots.
func history(t *testing.T, prepare func(*migredis.State)) []porcupine.Operation {
	t.Helper()
	url, prefix := realtest.RedisPrefix(t)
	r := record(0, 4)
	first := open(t, plan(url, prefix))
	start(t, first, r)
	pods := make([]migrate.State, 8)
	for i := range pods {
		pod := open(t, plan(url, prefix))
		prepare(pod)
		if err := pod.Open(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		pods[i] = pod
	}
	return migtest.ClaimHistory(t, r.Slots, 50, pods...)
}

func TestClaimsAreLinearizable(t *testing.T) {
	for range 5 {
		if got := migtest.CheckClaims(history(t, func(*migredis.State) {})); got != porcupine.Ok {
			t.Fatalf("the history is %s", got)
		}
	}
}

// TestCheckerFindsPlantedFaults: a pod that was stopped beyond its claim saves
// and nothing looks at its epoch; a claim outlives its time.
func TestCheckerFindsPlantedFaults(t *testing.T) {
	for name, plant := range map[string][2]string{
		"save without its epoch":   {"if not holds() then return fail('NOTHELD') end\nif entry(a.pass, a.slot).lo", "if (entry(a.pass, a.slot) or {}).lo"},
		"claim without a deadline": {"'PX', a.ttl)\nreturn", "'PX', 1000000)\nreturn"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				h := history(t, func(s *migredis.State) { s.Plant(plant[0], plant[1]) })
				if migtest.CheckClaims(h) == porcupine.Illegal {
					return
				}
			}
			t.Fatal("the fault was not found in 50 histories")
		})
	}
}
