package seqrpc_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/sequence"
)

func ptr[T any](v T) *T { return &v }

var (
	fullSpec = sequence.Spec{
		Name: "örders", Start: ptr[int64](-5), Increment: ptr[int64](math.MinInt64), Min: ptr[int64](math.MinInt64),
		Max: ptr[int64](math.MaxInt64), Cycle: ptr(false), BlockSize: ptr[int64](-1), MaxBlock: ptr[int64](1 << 40),
		ServerCacheMax: ptr[int64](0), ClientCacheMin: ptr[int64](1), ClientCacheMax: ptr[int64](2),
		MinThreshold: ptr[int64](3), BufferSeconds: ptr[int64](4), Owner: ptr(""), Labels: map[string]string{"team": "a", "": "b"},
	}
	fullRecord = sequence.Record{
		Definition: sequence.Definition{
			Name: "orders", Start: 1001, Increment: -5, Min: math.MinInt64, Max: math.MaxInt64, Cycle: true,
			BlockSize: 1000, MaxBlock: 1_000_000, ServerCacheMax: 2_000_000, ClientCacheMin: 50, ClientCacheMax: 500,
			MinThreshold: 7, BufferSeconds: 5, Owner: "team a", Labels: map[string]string{"env": "prod"},
		},
		Epoch: math.MaxUint64, Version: math.MaxUint32, State: sequence.StateOpen, Next: math.MinInt64 + 5,
	}
	fullError = &sequence.Error{
		Code: sequence.CodeUnavailable, Field: "name", Message: "the store is away", Remedy: "wait",
		RetryAfter: 250 * time.Millisecond,
	}
)

func TestLeaseCrossesWhole(t *testing.T) {
	svc := &stub{lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{
		{
			Name: "a", Runs: []sequence.Run{{First: math.MinInt64, Step: math.MaxInt64, Count: 2}, {First: 7, Step: -7, Count: 1_000_000}},
			Epoch: math.MaxUint64, Version: 3, LeaseID: "SRV-1",
			Cache: sequence.CachePolicy{Min: 1, Max: 500, MinThreshold: 10, Buffer: 1500 * time.Millisecond},
		},
		{Name: "b", Epoch: 2, Version: 9, Err: fullError},
	}}}
	req := sequence.LeaseRequest{ClientID: "c1", Items: []sequence.LeaseItem{
		{Name: "a", Count: 1_000_000, Floor: &sequence.Floor{Epoch: math.MaxUint64, Last: math.MinInt64}, KnownVersion: 4, RateHint: 12.5},
		{Name: "b", Count: 0},
	}}
	got, err := dial(t, serve(t, svc).URL).Lease(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(req, svc.got); diff != "" {
		t.Errorf("request (-sent +arrived):\n%s", diff)
	}
	if diff := cmp.Diff(svc.lease, got, comparePolicies); diff != "" {
		t.Errorf("response (-sent +arrived):\n%s", diff)
	}
}

// comparePolicies ignores that a refused lease has no policy.
var comparePolicies = cmp.Comparer(func(a, b sequence.CachePolicy) bool { return a == b })

func TestRequestsAndAnswersCrossWhole(t *testing.T) {
	exhausted := fullRecord
	exhausted.Definition.Cycle, exhausted.Exhausted = false, true
	svc := &stub{
		record:  fullRecord,
		created: []sequence.CreateResult{{Record: fullRecord}, {Err: fullError}, {Record: exhausted}},
		list:    sequence.ListResponse{Records: []sequence.Record{fullRecord, exhausted}, NextPageToken: "next"},
	}
	c := dial(t, serve(t, svc).URL)
	ctx := t.Context()
	create := sequence.CreateRequest{Specs: []sequence.Spec{fullSpec, {Name: "bare"}, {Name: "none", Labels: map[string]string{}}}, ReuseValues: true}
	alter := sequence.AlterRequest{Spec: fullSpec, IfVersion: 7, ReuseValues: true}
	list := sequence.ListRequest{Prefix: "o", PageSize: 1000, PageToken: "t"}
	restart := sequence.RestartRequest{Name: "orders", With: ptr[int64](0), ReuseValues: true}
	plain := sequence.RestartRequest{Name: "orders"}
	ret := sequence.ReturnRequest{Name: "a", LeaseID: "SRV-1", From: 3, Count: 4}
	for _, tc := range []struct {
		name string
		sent any
		want any
		call func() (any, error)
	}{
		{"create", create, svc.created, func() (any, error) { return c.Create(ctx, create) }},
		{"alter", alter, svc.record, func() (any, error) { return c.Alter(ctx, alter) }},
		{"get", "orders", svc.record, func() (any, error) { return c.Get(ctx, "orders") }},
		{"list", list, svc.list, func() (any, error) { return c.List(ctx, list) }},
		{"restart", restart, svc.record, func() (any, error) { return c.Restart(ctx, restart) }},
		{"restart at the start", plain, svc.record, func() (any, error) { return c.Restart(ctx, plain) }},
		{"delete", "orders", nil, func() (any, error) { return nil, c.Delete(ctx, "orders") }},
		{"return", ret, nil, func() (any, error) { return nil, c.Return(ctx, ret) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.call()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.sent, svc.got); diff != "" {
				t.Errorf("request (-sent +arrived):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-sent +arrived):\n%s", diff)
			}
		})
	}
}

func TestLapAtItsEndShowsAsTheNext(t *testing.T) {
	r := sequence.Record{
		Definition: sequence.Definition{Name: "s", Start: 1, Increment: 3, Min: 1, Max: 10, Cycle: true},
		Epoch:      1, Version: 1, State: sequence.StateOpen, Next: 10, Exhausted: true,
	}
	got, err := dial(t, serve(t, &stub{record: r}).URL).Get(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got.Next != 1 || got.Exhausted || got.Remaining() != r.Remaining() || got.Epoch != 1 {
		t.Errorf("got next %d, exhausted %t, remaining %d, epoch %d", got.Next, got.Exhausted, got.Remaining(), got.Epoch)
	}
}

func TestErrorsCrossWhole(t *testing.T) {
	for _, code := range []sequence.Code{
		sequence.CodeInvalid, sequence.CodeNotFound, sequence.CodeExists, sequence.CodeExhausted, sequence.CodePrecondition,
		sequence.CodeAborted, sequence.CodeUnavailable, sequence.CodeUnknown, sequence.CodeInternal,
	} {
		t.Run(string(code), func(t *testing.T) {
			sent := &sequence.Error{
				Code: code, Field: "name", Message: "what was wrong", Remedy: "what to do", RetryAfter: time.Second,
				Err: errors.New("the cause"),
			}
			want := &sequence.Error{
				Code: code, Field: "name", Message: "what was wrong: the cause", Remedy: "what to do", RetryAfter: time.Second,
			}
			svc := &stub{err: sent}
			c := dial(t, serve(t, svc).URL)
			_, leased := c.Lease(t.Context(), sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "a", Count: 1}}})
			_, got := c.Get(t.Context(), "a")
			for _, err := range []error{leased, got, c.Delete(t.Context(), "a"), c.Return(t.Context(), sequence.ReturnRequest{})} {
				if diff := cmp.Diff(error(want), err); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if err.Error() != sent.Error() {
					t.Errorf("reads %q, sent was %q", err, sent)
				}
			}
		})
	}
}

func TestErrorsWithoutACodeGetOne(t *testing.T) {
	for _, tc := range []struct {
		sent error
		want sequence.Code
	}{
		{errors.New("boom"), sequence.CodeInternal},
		{sequence.ErrClosed, sequence.CodeUnavailable},
	} {
		_, err := dial(t, serve(t, &stub{err: tc.sent}).URL).Get(t.Context(), "a")
		if got := sequence.CodeOf(err); got != tc.want {
			t.Errorf("%v arrives as %s, want %s", tc.sent, got, tc.want)
		}
	}
}
