package migdynamo_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

// What is computed here is what the server counts: the largest item is taken,
// and one of a byte more is refused by both.
func TestSizeIsTheServers(t *testing.T) {
	tree := migrate.Field{Name: "tree", Map: true, Value: migrate.Value{Kind: migrate.JSON,
		Text: `{"numbers": [0, 1, -1, 10, 12, 123, 1234, 0.1, 0.01, 12.5, 1e20, -1.5e-7, 99, 100, 1001], "t": true, "z": null, "deep": [[{}, []], {"a": {"b": "c"}}]}`}}
	sized := func(n int) migrate.Row { return row("k", 1, tree, data(text(strings.Repeat("x", n)))) }
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			sink, table := newSink(t, mode)
			largest := 400 << 10
			for ; ; largest-- { // what is not the text
				if _, err := sink.Expect(sized(largest)); err == nil {
					break
				}
			}
			allWritten(t, write(t, sink, sized(largest)))
			if r := write(t, sink, sized(largest+1))[0]; r.Outcome != migrate.Refused || !strings.Contains(r.Reason, `409601 bytes, at most 409600; attribute "data"`) {
				t.Fatalf("%+v", r)
			}
			i := table.get(t, sized(0))
			i["data"] = s(strings.Repeat("x", largest+1))
			if _, err := table.raw.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table.name, Item: i}); err == nil {
				t.Error("the server takes more than we do")
			}
		})
	}
}

func TestTwoRowsOfOneItemAreReported(t *testing.T) {
	for column, mode := range keysAndModes() {
		t.Run(column+", "+string(mode), func(t *testing.T) {
			plan := newPlan(realtest.DynaliteURL(t), mode)
			plan.Source.Key = []string{column}
			sink := open(t, plan, migdynamo.Options{})
			named := func(serial string, version int64) migrate.Row {
				r := row("same", version, data(text(serial)))
				r.Key = migrate.Key{serial}
				return r
			}
			results := write(t, sink, named("1", 5), named("2", 6), named("1", 7))
			if r := results[1]; results[0].Outcome != migrate.Written || r.Outcome != migrate.Refused || r.Reason != "item r~same is also that of row 1" {
				t.Fatalf("in one call: %+v", results)
			}
			stored, err := sink.Read(t.Context(), []migrate.Row{named("2", 6)})
			if err != nil || !stored[0].Key.Equal(migrate.Key{"1"}) {
				t.Fatalf("%+v is there, %v", stored, err)
			}
			if mode == migrate.Overwrite {
				return // which looks at nothing
			}
			for _, version := range []int64{6, 7, 8} {
				if r := write(t, sink, named("2", version))[0]; r.Outcome != migrate.Refused || !strings.Contains(r.Reason, "also that of row 1") {
					t.Errorf("version %d in another call: %+v", version, r)
				}
			}
		})
	}
}

// keysAndModes goes through the modes with a column that is not stored at all,
// and with one that is part of the table's key, but changed by a mapping.
func keysAndModes() iter.Seq2[string, migrate.Mode] {
	return func(yield func(string, migrate.Mode) bool) {
		for _, mode := range modes {
			if !yield("serial", mode) || !yield("id", mode) {
				return
			}
		}
	}
}

func TestOneRowTwiceInABatchIsWrittenInItsOrder(t *testing.T) {
	sink, table := newSink(t, migrate.Overwrite)
	var all []migrate.Row
	for i := range 5 {
		all = append(all, row("k", int64(i), data(text(fmt.Sprint(i)))), row(fmt.Sprint("other ", i), 1))
	}
	allWritten(t, write(t, sink, all...))
	if got := table.get(t, all[0])["data"]; !cmp.Equal(got, s("4"), cmp.AllowUnexported(types.AttributeValueMemberS{})) {
		t.Errorf("%+v is there, want the last", got)
	}
}

// Two writers race with versions of the same rows, replies get lost, and a
// reader watches: no version ever goes back, and the largest is there at last.
func TestNoOlderVersionEverWins(t *testing.T) {
	sink, proxy, table := behind(t, migrate.Guarded)
	proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
		return realtest.Fault{Action: []realtest.Action{realtest.Forward, realtest.Forward, realtest.Forward, realtest.LoseReply}[r.Number%4]}
	})
	const keys, top = 5, 40
	at := func(k int, v int64) migrate.Row { return row(fmt.Sprint("k", k), v, data(text(fmt.Sprint("v", v)))) }
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			random, writer := rand.New(rand.NewPCG(uint64(w), 1)), sink.Writer()
			for range 60 {
				var all []migrate.Row
				for k := range keys {
					all = append(all, at(k, random.Int64N(top)))
				}
				results := persistently(t, writer, all)
				for i, r := range results {
					if r.Outcome == migrate.Differs || r.Outcome == migrate.Refused {
						t.Errorf("%v: %+v", all[i], r)
					}
				}
			}
			for k := range keys {
				persistently(t, writer, []migrate.Row{at(k, top)})
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	watch(t, table, at, keys, done)
	stored, err := sink.Read(t.Context(), []migrate.Row{at(0, 0), at(1, 0), at(2, 0), at(3, 0), at(4, 0)})
	for _, s := range stored {
		if err != nil || s.Version != top {
			t.Errorf("%+v is there at last, %v", s, err)
		}
	}
}

// persistently writes until that goes well: chance may lose every reply to one
// put.
func persistently(t *testing.T, w migrate.Writer, rows []migrate.Row) []migrate.Result {
	for {
		results, err := w.Write(t.Context(), rows)
		if err == nil {
			return results
		}
		if !errors.Is(err, migrate.ErrTransient) {
			t.Error(err)
			return nil
		}
	}
}

// watch reads without the sink until done, and fails the test when a version
// is smaller than one seen before, or is not that of its content.
func watch(t *testing.T, table table, at func(int, int64) migrate.Row, keys int, done chan struct{}) {
	seen := make([]int64, keys)
	for {
		for k := range keys {
			i := table.get(t, at(k, 0))
			if i == nil {
				continue
			}
			var v int64
			fmt.Sscan(i["_version"].(*types.AttributeValueMemberN).Value, &v)
			if v < seen[k] || i["data"].(*types.AttributeValueMemberS).Value != fmt.Sprint("v", v) {
				t.Errorf("after version %d there is %v", seen[k], i)
			}
			seen[k] = v
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestReplaceOnlyTheVersionThatWasSeen(t *testing.T) {
	sink, table := newSink(t, migrate.Guarded)
	for id, version := range map[string]string{"same": "5", "older": "4", "newer": "6"} {
		table.put(t, attributes{"room_id": s("r"), "id": s(id), "data": s("x"), "_version": n(version)})
	}
	table.put(t, attributes{"room_id": s("r"), "id": s("gone"), "_version": n("5"), "_deleted": yes()})
	for id, want := range map[string]migrate.Outcome{"same": migrate.Written, "older": migrate.Written, "none": migrate.Written, "newer": migrate.AlreadyNewer, "gone": migrate.AlreadyNewer} {
		r, err := sink.Writer().Replace(t.Context(), row(id, 5, data(text("y"))))
		if err != nil || r.Outcome != want {
			t.Errorf("%s: %+v, %v; want outcome %d", id, r, err, want)
		}
	}
}

func TestBuryOnlyWhatWasSeen(t *testing.T) {
	for _, mode := range []migrate.Mode{migrate.Guarded, migrate.Overwrite} {
		t.Run(string(mode), func(t *testing.T) {
			sink, table := newSink(t, mode)
			r := row("k", 5, data(text("x")))
			allWritten(t, write(t, sink, r))
			stored, err := sink.Read(t.Context(), []migrate.Row{r})
			if err != nil {
				t.Fatal(err)
			}
			other := stored[0]
			other.Version++
			for _, c := range []struct {
				item migrate.Stored
				want migrate.Outcome
			}{{other, migrate.AlreadyNewer}, {stored[0], migrate.Written}, {stored[0], migrate.AlreadyNewer}} {
				if got, err := sink.Writer().Bury(t.Context(), c.item); err != nil || got.Outcome != c.want {
					t.Fatalf("%+v: %+v, %v", c.item, got, err)
				}
			}
			want := attributes{"room_id": s("r"), "id": s("k"), "_version": n(fmt.Sprint(stored[0].Version + 1)), "_deleted": yes()}
			if diff := cmp.Diff(want, table.get(t, r), cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBOOL{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABurialWhoseReplyIsLostIsDone(t *testing.T) {
	sink, proxy, _ := behind(t, migrate.Guarded)
	allWritten(t, write(t, sink, row("k", 5)))
	stored, err := sink.Read(t.Context(), []migrate.Row{row("k", 5)})
	if err != nil {
		t.Fatal(err)
	}
	proxy.ResetCounts()
	proxy.Inject(first(1, realtest.Fault{Action: realtest.LoseReply}))
	if r, err := sink.Writer().Bury(t.Context(), stored[0]); err != nil || r.Outcome != migrate.Written {
		t.Fatalf("%+v, %v", r, err)
	}
}
