package migdynamo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

var modes = []migrate.Mode{migrate.Guarded, migrate.Absent, migrate.Overwrite}

// behind returns a sink behind a proxy.
func behind(t *testing.T, mode migrate.Mode) (*migdynamo.Sink, *realtest.DynamoProxy, table) {
	t.Helper()
	return impatient(t, mode, 0)
}

// impatient returns a sink behind a proxy, with a time-out.
func impatient(t *testing.T, mode migrate.Mode, timeout time.Duration) (*migdynamo.Sink, *realtest.DynamoProxy, table) {
	t.Helper()
	proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	plan := newPlan(proxy.URL, mode)
	sink := open(t, plan, migdynamo.Options{Timeout: timeout})
	plan.Sink.Endpoint = realtest.DynaliteURL(t)
	return sink, proxy, tableOf(plan)
}

// first returns a rule that does f to the first requests that write.
func first(requests int, f realtest.Fault) func(realtest.DynamoRequest) realtest.Fault {
	return func(r realtest.DynamoRequest) realtest.Fault {
		if r.Writes() && r.Number <= requests {
			return f
		}
		return realtest.Fault{}
	}
}

// Whatever happens to requests twice, the rows are written and counted as
// written, also those whose reply was lost.
func TestPassingFaultsAreRetried(t *testing.T) {
	for name, action := range map[string]realtest.Action{
		"request lost": realtest.LoseRequest, "reply lost": realtest.LoseReply, "no answer": realtest.Hang,
		"server error": realtest.ServerError, "server error after the write": realtest.ServerErrorAfterWrite, "unavailable": realtest.Unavailable,
		"throttled, provisioned": realtest.ThrottleProvisioned, "throttled, on demand": realtest.ThrottleOnDemand, "throttled, account": realtest.ThrottleAccount,
	} {
		for _, mode := range modes {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				t.Parallel()
				timeout := time.Duration(0)
				if action == realtest.Hang {
					timeout = 2 * time.Second
				}
				sink, proxy, table := impatient(t, mode, timeout)
				proxy.Inject(first(2, realtest.Fault{Action: action}))
				allWritten(t, write(t, sink, rows(30)...))
				if got := table.count(t); got != 30 {
					t.Errorf("%d items, want 30", got)
				}
			})
		}
	}
}

func TestFaultsThatStayAreTransientAndLeaveRowsUnknown(t *testing.T) {
	for name, action := range map[string]realtest.Action{"server error": realtest.ServerError, "throttled": realtest.ThrottleOnDemand, "request lost": realtest.LoseRequest} {
		for _, mode := range modes {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				t.Parallel()
				sink, proxy, _ := behind(t, mode)
				proxy.Inject(realtest.Always(realtest.Fault{Action: action}))
				results, err := sink.Writer().Write(t.Context(), append([]migrate.Row{row("", 1)}, rows(30)...))
				if !errors.Is(err, migrate.ErrTransient) {
					t.Fatalf("error %v, want one that is transient", err)
				}
				if results[0].Outcome != migrate.Refused {
					t.Errorf("a row that can never be stored is %+v", results[0])
				}
				for i, r := range results[1:] {
					if r.Outcome != migrate.Unknown {
						t.Errorf("row %d is %+v", i, r)
					}
				}
			})
		}
	}
}

func TestWhatCannotWorkIsNotRetried(t *testing.T) {
	sink, proxy, table := behind(t, migrate.Guarded)
	table.drop(t)
	before := proxy.Count("PutItem", table.name)
	_, err := sink.Writer().Write(t.Context(), rows(1))
	if err == nil || errors.Is(err, migrate.ErrTransient) || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		t.Fatalf("error %v", err)
	}
	if n := proxy.Count("PutItem", table.name) - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			sink, proxy, table := behind(t, mode)
			ctx, cancel := context.WithCancel(t.Context())
			proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
				if r.Writes() {
					cancel()
				}
				return realtest.Fault{}
			})
			results, err := sink.Writer().Write(ctx, rows(1000))
			if !errors.Is(err, context.Canceled) || errors.Is(err, migrate.ErrTransient) {
				t.Fatalf("error %v", err)
			}
			if n := proxy.Count("", table.name); n > 8+1+4 { // those in flight, and those of Open
				t.Errorf("%d requests", n)
			}
			written := 0
			for _, r := range results {
				if r.Outcome == migrate.Written {
					written++
				}
			}
			if there := table.count(t); written > there {
				t.Errorf("%d rows are said to be written, and %d are there", written, there)
			}
			if _, err := sink.Writer().Write(ctx, rows(1)); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestBatchesLeftHalfDoneAreFinished(t *testing.T) {
	for name, c := range map[string]struct {
		take func(realtest.DynamoRequest) int
		err  error
	}{
		"three at a time":     {func(realtest.DynamoRequest) int { return 3 }, nil},
		"nothing for a while": {nothingFor(4), nil},
		"nothing ever":        {func(realtest.DynamoRequest) int { return 0 }, migrate.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			plan := newPlan(realtest.PartialBatches(t, realtest.DynaliteURL(t), c.take), migrate.Overwrite)
			sink, table := open(t, plan, migdynamo.Options{}), tableOf(plan)
			results, err := sink.Writer().Write(t.Context(), rows(60))
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				if n := table.count(t); n != 0 || results[0].Outcome != migrate.Unknown {
					t.Fatalf("%d items, %+v", n, results[0])
				}
				return
			}
			allWritten(t, results)
			stored, err := sink.Read(t.Context(), rows(60))
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range stored {
				if want, _ := sink.Expect(rows(60)[i]); !s.Found || s.Digest != want.Digest {
					t.Errorf("row %d: %+v, want %+v", i, s, want)
				}
			}
		})
	}
}

func nothingFor(requests int) func(realtest.DynamoRequest) int {
	n := 0
	return func(realtest.DynamoRequest) int {
		if n++; n <= requests {
			return 0
		}
		return -1
	}
}

// Servers that do not return the item that a put met are asked for it.
func TestAPutThatLosesIsReadBack(t *testing.T) {
	sink, proxy, table := behind(t, migrate.Guarded)
	proxy.OmitOldItems(true)
	table.put(t, attributes{"room_id": s("r"), "id": s("same"), "data": s("x"), "_version": n("5")})
	table.put(t, attributes{"room_id": s("r"), "id": s("gone"), "_version": n("6"), "_deleted": yes()})
	results := write(t, sink, row("same", 5, data(text("x"))), row("gone", 5, data(text("x"))))
	if results[0].Outcome != migrate.AlreadyOurs || results[1].Outcome != migrate.AlreadyNewer {
		t.Fatalf("%+v", results)
	}
	if got := proxy.Count("GetItem", table.name); got != 2 {
		t.Errorf("%d reads, want 2", got)
	}
}

// A row that only DynamoDB knows to be bad is found among its batch.
func TestABatchThatIsRefusedIsCutDownToTheRow(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			plan := newPlan(realtest.DynaliteURL(t), mode)
			table := tableOf(plan)
			table.create(t)
			sink, all := open(t, plan, migdynamo.Options{}), rows(25)
			all[13].Fields = append(all[13].Fields, migrate.Field{Name: "flag", Value: migrate.Value{Kind: migrate.Number, Text: "1"}})
			results := write(t, sink, all...)
			for i, r := range results {
				want := migrate.Written
				if i == 13 {
					want = migrate.Refused
				}
				if r.Outcome != want {
					t.Errorf("row %d: %+v", i, r)
				}
			}
			if !strings.Contains(results[13].Reason, "ValidationException") || table.count(t) != 24 {
				t.Errorf("reason %q, %d items", results[13].Reason, table.count(t))
			}
		})
	}
}
