package migdynamo_test

import (
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
)

func TestBuryAtPutsATombstoneOverWhatIsOlder(t *testing.T) {
	sink, table := newSink(t, migrate.Guarded)
	for id, c := range map[string]struct {
		there attributes
		want  migrate.Outcome
		is    int64 // the version that is there afterwards
	}{
		"none":       {nil, migrate.Written, 8},
		"older":      {attributes{"_version": n("5"), "data": s("x")}, migrate.Written, 8},
		"same":       {attributes{"_version": n("8"), "data": s("x")}, migrate.Differs, 8},
		"newer":      {attributes{"_version": n("9"), "data": s("x")}, migrate.AlreadyNewer, 9},
		"buried":     {attributes{"_version": n("8"), "_deleted": yes()}, migrate.AlreadyNewer, 8},
		"deeper":     {attributes{"_version": n("9"), "_deleted": yes()}, migrate.AlreadyNewer, 9},
		"no version": {attributes{"data": s("x")}, migrate.Refused, 0},
		"shallower":  {attributes{"_version": n("5"), "_deleted": yes()}, migrate.Written, 8},
	} {
		t.Run(id, func(t *testing.T) {
			if c.there != nil {
				c.there["room_id"], c.there["id"] = s("r"), s(id)
				table.put(t, c.there)
			}
			ref := migrate.Key{"r", id}.String()
			r, err := sink.Writer().BuryAt(t.Context(), ref, 8)
			if err != nil || r.Outcome != c.want {
				t.Fatalf("%+v, %v; want outcome %d", r, err, c.want)
			}
			now, err := sink.Refresh(t.Context(), []migrate.Stored{{Ref: ref}})
			if err != nil || now[0].Tombstone != (c.want == migrate.Written || id == "buried" || id == "deeper") || now[0].Version != c.is {
				t.Errorf("%+v, %v", now, err)
			}
		})
	}
}

func TestABurialAtAVersionWhoseReplyIsLostIsDone(t *testing.T) {
	sink, proxy, _ := behind(t, migrate.Guarded)
	proxy.ResetCounts()
	proxy.Inject(first(1, realtest.Fault{Action: realtest.LoseReply}))
	if r, err := sink.Writer().BuryAt(t.Context(), migrate.Key{"r", "k"}.String(), 8); err != nil || r.Outcome != migrate.Written {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestAnItemOfVersionZeroIsBuried: 0 is a version, and no version is read as 0,
// too.
func TestAnItemOfVersionZeroIsBuried(t *testing.T) {
	for _, mode := range []migrate.Mode{migrate.Guarded, migrate.Absent} {
		t.Run(string(mode), func(t *testing.T) {
			sink, table := newSink(t, mode)
			table.put(t, attributes{"room_id": s("r"), "id": s("zero"), "_version": n("0"), "data": s("x")})
			table.put(t, attributes{"room_id": s("r"), "id": s("none"), "data": s("x")})
			table.put(t, attributes{"room_id": s("r"), "id": s("newer"), "_version": n("1"), "data": s("x")})
			for id, want := range map[string]migrate.Outcome{"zero": migrate.Written, "none": migrate.Written, "newer": migrate.AlreadyNewer, "gone": migrate.AlreadyNewer} {
				ref := migrate.Key{"r", id}.String()
				r, err := sink.Writer().Bury(t.Context(), migrate.Stored{Found: true, Ref: ref})
				if err != nil || r.Outcome != want {
					t.Errorf("%s: %+v, %v; want outcome %d", id, r, err, want)
				}
				now, err := sink.Refresh(t.Context(), []migrate.Stored{{Ref: ref}})
				if err != nil || now[0].Tombstone != (want == migrate.Written) || now[0].Version != 1 && id != "gone" {
					t.Errorf("%s: %+v, %v", id, now, err)
				}
			}
		})
	}
}
