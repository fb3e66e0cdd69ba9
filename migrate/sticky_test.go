package migrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// TestABadVerdictIsNotForgottenByOneBegunBefore: a row is lost that a full
// verification has compared already, and samples find that. Neither that
// verification, running on or gone on with, nor what it saved makes up for it.
func TestABadVerdictIsNotForgottenByOneBegunBefore(t *testing.T) {
	for name, killed := range map[string]bool{"killed": true, "running on": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := slowWorld(t)
				lost := w.source.All()[3_999].Key // the newest, compared first
				if killed {
					w.killedVerify(time.Minute, migrate.VerifyOptions{Mode: "full"})
				} else {
					w.pods.Go(func() { w.verify(migrate.VerifyOptions{Mode: "full"}) })
					time.Sleep(time.Minute)
				}
				w.sink.Drop(lost)
				if v := w.verify(migrate.VerifyOptions{Mode: "samples"}); v.Clean {
					t.Fatal("the samples do not find it")
				}
				w.pods.Wait()
				if v := w.report().Verdict; v.Clean {
					t.Errorf("the verdict became %+v", v)
				}
				v, read := w.again(migrate.VerifyOptions{Mode: "full"})
				if v.Clean || len(v.Missing) != 1 || !v.Missing[0].Equal(lost) || read != 4_000 {
					t.Errorf("verdict %+v", v)
				}
				w.sink.Put(w.source.All()[3_999])
				if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean || !w.report().Verdict.Clean {
					t.Errorf("once it is mended: verdict %+v", v)
				}
			})
		})
	}
}
