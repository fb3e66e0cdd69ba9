package couponsql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// testAnotherDatabase: a platform does not begin anew in a database that is not
// the one its map means. A coupon could be redeemed in both.
func testAnotherDatabase(t *testing.T, k kind, o couponsql.Options) {
	empty := k.empty("elsewhere")
	for name, mistake := range map[string]func([]couponsql.Source){
		"an empty one": func(at []couponsql.Source) { at[3].At = empty.At },
		"two swapped":  func(at []couponsql.Source) { at[3].At, at[5].At = at[5].At, at[3].At },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := o
			wrong.Shards = slices.Clone(o.Shards)
			mistake(wrong.Shards)
			p, err := couponsql.Open(t.Context(), wrong)
			if err == nil {
				p.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "db3 has never had shard") {
				t.Errorf("%v, want an error about db3", err)
			}
		})
	}
	db, err := k.open(t.Context(), empty.At)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range shard.All() {
		if there, err := shardsql.Fenced(t.Context(), db, s); there || err != nil {
			t.Errorf("shard %d was begun there: %v", s, err)
		}
	}
	open(t, o).Close()
}

// testAnotherControl: shards are not shared out anew because the control database
// is another one. Some may have moved, and campaigns would be numbered anew over
// their stock.
func testAnotherControl(t *testing.T, k kind, o couponsql.Options) {
	wrong := o
	wrong.Control = k.empty("elsewherecontrol")
	for range 2 { // the first try leaves nothing behind that the second takes for a map
		p, err := couponsql.Open(t.Context(), wrong)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "control database has no map") {
			t.Errorf("%v, want an error about the control database", err)
		}
	}
	open(t, o).Close()
}
