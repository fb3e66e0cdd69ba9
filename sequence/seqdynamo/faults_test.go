package seqdynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
)

// A write is one write of the protocol.
type write struct {
	name string
	do   func(ctx context.Context, s sequence.Store, r sequence.Record) error
	done func(ctx context.Context, s sequence.Store, r sequence.Record) bool // tells by a consistent read
}

func moved(ctx context.Context, s sequence.Store, r sequence.Record) bool {
	now, err := s.Load(ctx, r.Definition.Name)
	return err == nil && now.Nonce != r.Nonce
}

var writes = []write{
	{"advance", func(ctx context.Context, s sequence.Store, r sequence.Record) error {
		_, err := s.Advance(ctx, advance(r))
		return err
	}, moved},
	{"swap", func(ctx context.Context, s sequence.Store, r sequence.Record) error {
		_, err := s.Swap(ctx, r.Nonce, swapped(r))
		return err
	}, moved},
	{"create", func(ctx context.Context, s sequence.Store, r sequence.Record) error {
		r.Definition.Name += "-new"
		return s.Create(ctx, []sequence.Record{r})[0]
	}, func(ctx context.Context, s sequence.Store, r sequence.Record) bool {
		_, err := s.Load(ctx, r.Definition.Name+"-new")
		return err == nil
	}},
	{"bump", func(ctx context.Context, s sequence.Store, r sequence.Record) error { return s.Bump(ctx) },
		func(ctx context.Context, s sequence.Store, r sequence.Record) bool {
			g, err := s.Generation(ctx)
			return err == nil && g > 0
		}},
}

var faults = []struct {
	name   string
	action realtest.Action
	want   sequence.Code // of a write; a read is always unavailable
	done   bool
	retry  bool // says when to ask again
}{
	{"request lost", realtest.LoseRequest, sequence.CodeUnknown, false, false},
	{"reply lost", realtest.LoseReply, sequence.CodeUnknown, true, false},
	{"no answer", realtest.Hang, sequence.CodeUnknown, false, false},
	{"server error", realtest.ServerError, sequence.CodeUnknown, false, false},
	{"server error after the write", realtest.ServerErrorAfterWrite, sequence.CodeUnknown, true, false},
	{"service unavailable", realtest.Unavailable, sequence.CodeUnknown, false, false},
	{"provisioned table throttles", realtest.ThrottleProvisioned, sequence.CodeUnavailable, false, true},
	{"on-demand table throttles", realtest.ThrottleOnDemand, sequence.CodeUnavailable, false, true},
	{"account throttles", realtest.ThrottleAccount, sequence.CodeUnavailable, false, true},
}

// impatient opens a table through a proxy, with a short time-out.
func impatient(t *testing.T) (*seqdynamo.Store, *realtest.DynamoProxy, string) {
	t.Helper()
	proxy, table := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)), newTable()
	open(t, proxy.URL, table)
	o := options(proxy.URL, table)
	o.Timeout = 500 * time.Millisecond
	store, err := seqdynamo.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return store, proxy, table
}

func TestFaultsOfWritesAreToldApart(t *testing.T) {
	for _, f := range faults {
		for _, w := range writes {
			t.Run(f.name+"/"+w.name, func(t *testing.T) {
				store, proxy, table := impatient(t)
				r := create(t, store, "orders")
				proxy.ResetCounts()
				proxy.Inject(realtest.Always(realtest.Fault{Action: f.action}))
				err := w.do(t.Context(), store, r)
				if got := sequence.CodeOf(err); got != f.want {
					t.Errorf("error = %v (%s), want code %s", err, got, f.want)
				}
				if e, _ := errors.AsType[*sequence.Error](err); e == nil || e.RetryAfter > 0 != f.retry {
					t.Errorf("error = %+v, want a time to retry after: %t", e, f.retry)
				}
				if n := proxy.Count("", table); n != 1 {
					t.Errorf("%d requests, want 1: nobody here repeats a write", n)
				}
				proxy.Inject(nil)
				if done := w.done(t.Context(), store, r); done != f.done {
					t.Errorf("done = %t, want %t", done, f.done)
				}
			})
		}
	}
}

func TestReadsAreTriedThreeTimes(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			store, proxy, table := impatient(t)
			create(t, store, "orders")
			proxy.ResetCounts()
			proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
				if r.Number < 3 {
					return realtest.Fault{Action: f.action}
				}
				return realtest.Fault{}
			})
			if _, err := store.Load(t.Context(), "orders"); err != nil {
				t.Errorf("load, answered at the third attempt: %v", err)
			}
			proxy.Inject(realtest.Always(realtest.Fault{Action: f.action}))
			proxy.ResetCounts()
			if _, _, _, err := store.List(t.Context(), "", "", 10); !errors.Is(err, sequence.ErrUnavailable) {
				t.Errorf("list, never answered: %v, want ErrUnavailable", err)
			}
			if n := proxy.Count("", table); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
}

func TestRefusedConnectionIsNotAnUnknownOutcome(t *testing.T) {
	store, proxy, _ := impatient(t)
	r := create(t, store, "orders")
	proxy.Cut()
	store.Load(t.Context(), "orders") // finds the connections dead that were open
	for _, w := range writes {
		if err := w.do(t.Context(), store, r); !errors.Is(err, sequence.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", w.name, err)
		}
	}
	if _, err := store.Generation(t.Context()); !errors.Is(err, sequence.ErrUnavailable) {
		t.Errorf("generation: %v, want ErrUnavailable", err)
	}
	proxy.Restore()
	for _, w := range writes[:1] {
		if err := w.do(t.Context(), store, r); err != nil {
			t.Errorf("%s, after it came back: %v", w.name, err)
		}
	}
}

func TestCallersDeadlineLeavesAWriteUnknown(t *testing.T) {
	store, proxy, _ := impatient(t)
	r := create(t, store, "orders")
	proxy.Inject(realtest.Always(realtest.Fault{Action: realtest.Hang}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := store.Advance(ctx, advance(r))
	if !errors.Is(err, sequence.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error = %v, want ErrUnknownOutcome and DeadlineExceeded", err)
	}
	if _, err := store.Load(ctx, "orders"); !errors.Is(err, sequence.ErrUnavailable) {
		t.Fatalf("load: %v, want ErrUnavailable", err)
	}
}

func TestEachCallIsOneRequest(t *testing.T) {
	proxy, table := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)), newTable()
	store := open(t, proxy.URL, table)
	r := create(t, store, "orders")
	stale := r
	stale.Epoch, stale.Nonce = 9, "stale"
	for _, c := range []struct {
		name     string
		do       func() error
		want     error
		requests int
	}{
		{"load", func() error { _, err := store.Load(t.Context(), "orders"); return err }, nil, 1},
		{"load of none", func() error { _, err := store.Load(t.Context(), "none"); return err }, sequence.ErrNotFound, 1},
		{"advance", func() error { return writes[0].do(t.Context(), store, r) }, nil, 1},
		{"advance in conflict", func() error { return writes[0].do(t.Context(), store, stale) }, sequence.ErrConflict, 1},
		{"swap in conflict", func() error { return writes[1].do(t.Context(), store, stale) }, sequence.ErrConflict, 1},
		{"create", func() error { return writes[2].do(t.Context(), store, r) }, nil, 1},
		{"create of what exists", func() error { return writes[2].do(t.Context(), store, swapped(r)) }, sequence.ErrExists, 1},
		{"generation", func() error { _, err := store.Generation(t.Context()); return err }, nil, 1},
		{"bump", func() error { return store.Bump(t.Context()) }, nil, 1},
		{"list", func() error { _, _, _, err := store.List(t.Context(), "o", "", 10); return err }, nil, 1},
	} {
		proxy.ResetCounts()
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if n := proxy.Count("", table); n != c.requests {
			t.Errorf("%s: %d requests, want %d", c.name, n, c.requests)
		}
	}
}

// Something between here and DynamoDB may repeat a request of its own accord.
// The second of two then fails its condition on what the first one wrote: the
// nonce of the record that comes back tells.
func TestWriteRepeatedOnTheWayMeetsItsOwnRecord(t *testing.T) {
	for _, omit := range []bool{false, true} {
		t.Run(fmt.Sprintf("old item left out: %t", omit), func(t *testing.T) {
			proxy, table := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)), newTable()
			proxy.OmitOldItems(omit)
			store := open(t, proxy.URL, table)
			repeated := open(t, repeater(t, proxy.URL), table)
			r := create(t, store, "orders")
			if err := repeated.Create(t.Context(), []sequence.Record{record(t, "new")})[0]; !errors.Is(err, sequence.ErrExists) {
				t.Fatalf("create: %v, want ErrExists", err)
			}

			exact := advance(r)
			exact.Low, exact.High = r.Next, r.Next
			after, err := repeated.Advance(t.Context(), exact)
			if !errors.Is(err, sequence.ErrConflict) || after.Next != r.Next+100 || after.Nonce != exact.Nonce {
				t.Fatalf("advance = %+v, %v", after, err)
			}
			next := swapped(after)
			after, err = repeated.Swap(t.Context(), after.Nonce, next)
			if !errors.Is(err, sequence.ErrConflict) || after.Next != next.Next || after.Nonce != next.Nonce {
				t.Fatalf("swap = %+v, %v", after, err)
			}
			// An advance with room for two moves twice: the first block is
			// burned, the second is ours.
			loose := advance(next)
			if after, err = repeated.Advance(t.Context(), loose); err != nil || after.Next != next.Next+200 {
				t.Fatalf("advance = %+v, %v", after, err)
			}
			if now, err := store.Load(t.Context(), "orders"); err != nil || now.Next != after.Next {
				t.Fatalf("load = %+v, %v, want next %d", now, err, after.Next)
			}
		})
	}
}

// repeater sends every request to url twice and returns the second answer.
func repeater(t *testing.T, url string) string {
	send := func(r *http.Request, body []byte) (*http.Response, error) {
		again := r.Clone(r.Context())
		again.RequestURI, again.Body = "", io.NopCloser(bytes.NewReader(body))
		again.URL.Scheme, again.URL.Host = "http", url[len("http://"):]
		return http.DefaultTransport.RoundTrip(again)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if first, err := send(r, body); err == nil {
			first.Body.Close()
		}
		second, err := send(r, body)
		if err != nil {
			t.Error(err)
			return
		}
		defer second.Body.Close()
		maps.Copy(w.Header(), second.Header)
		w.WriteHeader(second.StatusCode)
		io.Copy(w, second.Body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestCreateLeavesOutWhatIsThrottled(t *testing.T) {
	proxy, table := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)), newTable()
	o := options(proxy.URL, table)
	o.Timeout = 20 * time.Second // nothing here hangs, and sixteen requests at a time may be slow on a busy machine
	open(t, proxy.URL, table)
	store, err := seqdynamo.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	proxy.ResetCounts()
	proxy.Inject(func(r realtest.DynamoRequest) realtest.Fault {
		if r.Number%10 == 0 {
			return realtest.Fault{Action: realtest.ThrottleOnDemand}
		}
		return realtest.Fault{}
	})
	batch := make([]sequence.Record, 100)
	for i := range batch {
		batch[i] = record(t, fmt.Sprintf("s%d", i))
	}
	throttled := 0
	for i, err := range store.Create(t.Context(), batch) {
		_, load := store.Load(t.Context(), batch[i].Definition.Name)
		switch {
		case errors.Is(err, sequence.ErrUnavailable) && errors.Is(load, sequence.ErrNotFound):
			throttled++
		case err != nil || load != nil:
			t.Errorf("create %d: %v, load: %v", i, err, load)
		}
	}
	if n := proxy.Count("PutItem", table); throttled != 10 || n != 100 {
		t.Fatalf("%d of 100 throttled in %d requests, want 10 in 100", throttled, n)
	}
}

func TestCreateGivesUpOnATableThatIsAway(t *testing.T) {
	store, proxy, table := impatient(t)
	proxy.Inject(realtest.Always(realtest.Fault{Action: realtest.LoseRequest}))
	batch := make([]sequence.Record, 2000)
	for i := range batch {
		batch[i] = record(t, fmt.Sprintf("s%d", i))
	}
	proxy.ResetCounts()
	errs := store.Create(t.Context(), batch)
	if n := proxy.Count("PutItem", table); n < 64 || n > 64+16 {
		t.Fatalf("%d requests, want about 64", n)
	}
	if !errors.Is(errs[1999], sequence.ErrUnavailable) {
		t.Fatalf("the last: %v, want ErrUnavailable", errs[1999])
	}
}

// Where the item does not come with the failure and cannot be read either, it
// may be our own.
func TestConflictThatCannotBeReadIsUnknown(t *testing.T) {
	store, proxy, _ := impatient(t)
	r := create(t, store, "orders")
	proxy.OmitOldItems(true)
	proxy.Inject(func(q realtest.DynamoRequest) realtest.Fault {
		if q.Operation == "GetItem" {
			return realtest.Fault{Action: realtest.ServerError}
		}
		return realtest.Fault{}
	})
	r.Epoch, r.Nonce = 9, "stale"
	for _, w := range writes[:2] {
		if err := w.do(t.Context(), store, r); !errors.Is(err, sequence.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want ErrUnknownOutcome", w.name, err)
		}
	}
}
