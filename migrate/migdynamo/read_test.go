package migdynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

// values are what a column may hold.
var values = rapid.Custom(func(t *rapid.T) migrate.Value { return anyValue(t, 0) })

func anyValue(t *rapid.T, depth int) migrate.Value {
	kinds := []migrate.Kind{migrate.Null, migrate.Bool, migrate.Number, migrate.Text, migrate.Bytes, migrate.JSON, migrate.List}
	v := migrate.Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch v.Kind {
	case migrate.Bool:
		v.Text = fmt.Sprint(rapid.Bool().Draw(t, "bool"))
	case migrate.Number:
		v.Text = rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{1,19})?(e-?[0-9]{1,2})?`).Draw(t, "number")
	case migrate.Text:
		v.Text = rapid.String().Draw(t, "text")
	case migrate.Bytes:
		v.Text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case migrate.JSON:
		v.Text = rapid.SampledFrom([]string{`{"a": [9007199254740993, 1.50, "\u0000", {"": null}], "é": "\ud83d\ude00"}`, `[]`, `{}`, `"<&>\u2028"`, `-0`, ` null `, `1e-130`}).Draw(t, "json")
	case migrate.List:
		for range rapid.IntRange(0, 3-depth).Draw(t, "length") {
			v.List = append(v.List, anyValue(t, depth+1))
		}
	}
	return v
}

// What is read back is what was to be expected, whatever the values: through
// the SDK's JSON, the server, and back.
func TestWhatIsReadIsWhatWasExpected(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			plan := newPlan(realtest.DynaliteURL(t), mode)
			plan.Source.Key = []string{"serial"}
			sink, serial := open(t, plan, migdynamo.Options{}), 0
			rapid.Check(t, func(rt *rapid.T) {
				serial++
				r := row(fmt.Sprint("k", serial), rapid.Int64().Draw(rt, "version"))
				for i := range rapid.IntRange(0, 5).Draw(rt, "columns") {
					r.Fields = append(r.Fields, migrate.Field{Name: fmt.Sprint("c", i), Value: values.Draw(rt, "value"), Map: rapid.Bool().Draw(rt, "map")})
				}
				want, err := sink.Expect(r)
				if err != nil {
					rt.Fatal(err)
				}
				allWritten(t, write(t, sink, r))
				got, err := sink.Read(t.Context(), []migrate.Row{r})
				if diff := cmp.Diff([]migrate.Stored{want}, got); diff != "" || err != nil {
					rt.Fatalf("%+v: %v %s", r, err, diff)
				}
			})
		})
	}
}

func TestReadHasAResultForEachRowInOrder(t *testing.T) {
	n := 0
	plan := newPlan(realtest.PartialBatches(t, realtest.DynaliteURL(t), func(r realtest.DynamoRequest) int {
		if n++; r.Operation == "BatchGetItem" {
			return n % 2 * 40 // keys come back unprocessed, at times all of them
		}
		return -1
	}), migrate.Guarded)
	sink := open(t, plan, migdynamo.Options{})
	all := rows(250)
	write(t, sink, all[:200]...)
	asked := append([]migrate.Row{row("", 1), all[3]}, all...)
	got, err := sink.Read(t.Context(), asked)
	if err != nil || len(got) != len(asked) {
		t.Fatalf("%d results, %v", len(got), err)
	}
	for i, s := range got {
		found := i > 0 && (i == 1 || i < 202)
		if s.Found != found || found && !s.Key.Equal(asked[i].Key) {
			t.Errorf("row %d: %+v", i, s)
		}
	}
	again, err := sink.Refresh(t.Context(), got)
	if diff := cmp.Diff(got, again); diff != "" || err != nil {
		t.Errorf("refreshed: %v %s", err, diff)
	}
}

var errStop = errors.New("stop")

// A scan that is broken off again and again, and goes on from the last
// position, sees every item.
func TestScanIsResumed(t *testing.T) {
	proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	sink := open(t, newPlan(proxy.URL, migrate.Overwrite), migdynamo.Options{Segments: 2})
	big := strings.Repeat("x", 100_000) // ten to a page
	var all []migrate.Row
	for i := range 50 {
		all = append(all, row(fmt.Sprintf("k%03d", i), 1, data(text(big))))
		all[i].Fields[0].Value.Text = fmt.Sprint("room", i%20)
	}
	write(t, sink, all...)
	proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
		return realtest.Fault{Action: []realtest.Action{realtest.LoseReply, realtest.Forward, realtest.Forward, realtest.Forward, realtest.Forward}[r.Number%5]}
	})
	seen, position, rounds := map[string]int{}, "", 0
	for err := errStop; err != nil; rounds++ {
		if rounds == 100 {
			t.Fatal("the scan does not end")
		}
		var mu sync.Mutex
		parts := 0
		err = sink.Scan(t.Context(), position, func(items []migrate.Stored, p string) error {
			mu.Lock()
			defer mu.Unlock()
			if parts++; parts > 2 {
				return errStop
			}
			for _, i := range items {
				seen[i.Ref]++
			}
			position = p
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
	if len(seen) != len(all) || rounds < 2 {
		t.Fatalf("%d of %d items seen in %d rounds", len(seen), len(all), rounds)
	}
	if err := sink.Scan(t.Context(), "nonsense", nil); err == nil {
		t.Error("nonsense is taken for a position")
	}
}

func TestScanTellsTombstonesVersionsAndKeys(t *testing.T) {
	sink, table := newSink(t, migrate.Guarded)
	live := row("live", 7, data(text("x")))
	write(t, sink, live)
	table.put(t, attributes{"room_id": s("r"), "id": s("gone"), "_version": n("8"), "_deleted": yes()})
	table.put(t, attributes{"room_id": s("r"), "id": s("foreign"), "anything": n("1")})
	got := map[string]migrate.Stored{}
	var mu sync.Mutex
	err := sink.Scan(t.Context(), "", func(items []migrate.Stored, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		for _, i := range items {
			got[i.Ref] = i
		}
		return nil
	})
	want, _ := sink.Expect(live)
	if err != nil || len(got) != 3 || !cmp.Equal(got["r~live"], want) || !got["r~gone"].Tombstone || got["r~gone"].Version != 8 || got["r~foreign"].Version != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	for ref, i := range got {
		if !i.Found || "r~"+i.Key.String() != ref {
			t.Errorf("%s: %+v", ref, i)
		}
	}
}

func TestDeleteRemovesTombstonesOfThatVersionOnly(t *testing.T) {
	for _, lost := range []string{"lost", "gone", "live", "newer"} {
		t.Run("no reply about "+lost, func(t *testing.T) {
			sink, proxy, table := behind(t, migrate.Guarded)
			write(t, sink, row("live", 5))
			for id, version := range map[string]string{"gone": "5", "lost": "5", "newer": "6"} {
				table.put(t, attributes{"room_id": s("r"), "id": s(id), "_version": n(version), "_deleted": yes()})
			}
			var once atomic.Bool
			proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
				if bytes.Contains(r.Body, []byte(`"`+lost+`"`)) && !once.Swap(true) {
					return realtest.Fault{Action: realtest.LoseReply}
				}
				return realtest.Fault{}
			})
			n, err := sink.Delete(t.Context(), []migrate.Stored{{Ref: "r~lost", Version: 5}, {Ref: "r~gone", Version: 5}, {Ref: "r~live", Version: 5}, {Ref: "r~newer", Version: 5}})
			if err != nil || n != 2 || table.count(t) != 2 || !once.Load() {
				t.Fatalf("%d deleted, %d left, %v", n, table.count(t), err)
			}
		})
	}
}
