package migrate_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// TestKeysThatDoNotTellTheirSlotAreCopied, and those around them: the samples
// before the start did not come by them.
func TestKeysThatDoNotTellTheirSlotAreCopied(t *testing.T) {
	for _, order := range []string{"newest-first", "oldest-first"} {
		for name, spoil := range map[string]func(string) string{
			"no ULID":          func(id string) string { return id[:10] + "ZZZZZZZZZZZZZZZU" },
			"too short":        func(id string) string { return id[:12] },
			"in the time":      func(id string) string { return id[:6] + "U" + id[7:] },
			"in small letters": func(id string) string { return id[:5] + strings.ToLower("A") + id[6:] },
		} {
			t.Run(order+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, func(p *migrate.Plan) { p.Slots.Order = order })
					for h := range 40 {
						w.fill(h, 10)
					}
					w.source.Put(row(migrate.Key{spoil(w.key(15)[0])}, 1, "x"))
					w.begin()
					if !w.finish(time.Hour) {
						t.Errorf("%d of 401 rows, report %+v", w.sink.Len(), w.report())
					}
					w.same()
					for _, mode := range []string{"samples", "full"} {
						if v := w.verify(migrate.VerifyOptions{Mode: mode}); !v.Clean {
							t.Errorf("verdict %+v", v)
						}
					}
				})
			})
		}
	}
}
