package main

import (
	"testing"

	"github.com/tallystick/tallystick/migrate"
)

// TestAVerdictsWordIsOfTheWorst: what is lost or wrong comes before what may
// only be late, and that before what is set aside.
func TestAVerdictsWordIsOfTheWorst(t *testing.T) {
	keys := []migrate.Key{{"a"}}
	for want, verdicts := range map[string][]migrate.Verdict{
		"clean": {{Clean: true, Compared: 3}, {Clean: true, Mode: "counts", Compared: 3, SourceRows: 3, SinkRows: 3}},
		"different": {
			{Compared: 3, Missing: keys, Unsettled: keys, Quarantined: 1},
			{Compared: 3, Different: keys},
			{Compared: 3, Extra: keys},
			{Mode: "counts", Compared: 3, SourceRows: 3, SinkRows: 2},
			{Mode: "counts", Compared: 3, SourceRows: 3, SinkRows: 2, Quarantined: 1},
			{Mode: "counts", SinkRows: 2},
		},
		"unsettled":        {{Compared: 3, Unsettled: keys, Quarantined: 1}},
		"quarantined":      {{Compared: 3, Quarantined: 1}, {Mode: "counts", Compared: 3, SourceRows: 3, SinkRows: 3, Quarantined: 1}},
		"nothing compared": {{}, {Mode: "counts"}},
	} {
		for _, v := range verdicts {
			if got := verdictWord(v); got != want {
				t.Errorf("%q, want %q, of %+v", got, want, v)
			}
		}
	}
}

// TestAVerdictsFiguresAreOfAllRows: also of those that are not listed.
func TestAVerdictsFiguresAreOfAllRows(t *testing.T) {
	v := migrate.Verdict{Mode: "full", Compared: 20_000, Missing: make([]migrate.Key, 1_000), Extra: make([]migrate.Key, 2),
		Totals: migrate.Totals{Missing: 1_768, Extra: 2}}
	want := "20000 compared, 1768 missing (first 1000 listed), 0 different, 2 extra, 0 unsettled"
	if got := verdictFigures(v); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
