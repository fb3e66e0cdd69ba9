package seqrpc

import (
	"math"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// count fits n into the wire's counts. What does not fit is out of every
// limit anyway, and the nearest value that does is refused the same.
func count(n int64) uint32 {
	return uint32(max(0, min(n, math.MaxUint32)))
}

// each returns f of every element, nil for none.
func each[A, B any](in []A, f func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	out := make([]B, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

func encodeLeaseRequest(req sequence.LeaseRequest) *sequencev1.LeaseRequest {
	return &sequencev1.LeaseRequest{ClientId: req.ClientID, Items: each(req.Items, encodeItem)}
}

func decodeLeaseRequest(m *sequencev1.LeaseRequest) sequence.LeaseRequest {
	return sequence.LeaseRequest{ClientID: m.GetClientId(), Items: each(m.GetItems(), decodeItem)}
}

func encodeItem(it sequence.LeaseItem) *sequencev1.LeaseItem {
	m := &sequencev1.LeaseItem{
		Name: it.Name, Count: count(it.Count), KnownVersion: it.KnownVersion, RateHint: it.RateHint,
	}
	if it.Floor != nil {
		m.Floor = &sequencev1.Floor{Epoch: it.Floor.Epoch, Last: it.Floor.Last}
	}
	return m
}

func decodeItem(m *sequencev1.LeaseItem) sequence.LeaseItem {
	it := sequence.LeaseItem{
		Name: m.GetName(), Count: int64(m.GetCount()), KnownVersion: m.GetKnownVersion(), RateHint: m.GetRateHint(),
	}
	if f := m.GetFloor(); f != nil {
		it.Floor = &sequence.Floor{Epoch: f.GetEpoch(), Last: f.GetLast()}
	}
	return it
}

// encodeLeaseResponse returns res as the answer to req. It adds how many values
// a cache should hold at the rate that req tells, for clients that do not work
// it out themselves as ours does.
func encodeLeaseResponse(req sequence.LeaseRequest, res sequence.LeaseResponse) *sequencev1.LeaseResponse {
	m := &sequencev1.LeaseResponse{Results: each(res.Results, encodeResult)}
	for i, r := range res.Results {
		if r.Err == nil && i < len(req.Items) {
			m.Results[i].SuggestedCache = count(r.Cache.Capacity(req.Items[i].RateHint))
		}
	}
	return m
}

func encodeResult(r sequence.LeaseResult) *sequencev1.LeaseResult {
	if r.Err != nil {
		return &sequencev1.LeaseResult{Name: r.Name, Epoch: r.Epoch, DefinitionVersion: r.Version, Error: EncodeError(r.Err)}
	}
	return &sequencev1.LeaseResult{
		Name: r.Name, Runs: each(r.Runs, encodeRun), Epoch: r.Epoch, DefinitionVersion: r.Version, LeaseId: r.LeaseID,
		Cache: encodePolicy(r.Cache),
	}
}

func decodeResult(m *sequencev1.LeaseResult) sequence.LeaseResult {
	return sequence.LeaseResult{
		Name: m.GetName(), Runs: each(m.GetRuns(), decodeRun), Epoch: m.GetEpoch(), Version: m.GetDefinitionVersion(),
		LeaseID: m.GetLeaseId(), Cache: decodePolicy(m.GetCache()), Err: decodeError(m.GetError()),
	}
}

func encodeRun(r sequence.Run) *sequencev1.Run {
	return &sequencev1.Run{First: r.First, Step: r.Step, Count: count(r.Count)}
}

func decodeRun(m *sequencev1.Run) sequence.Run {
	return sequence.Run{First: m.GetFirst(), Step: m.GetStep(), Count: int64(m.GetCount())}
}

func encodePolicy(p sequence.CachePolicy) *sequencev1.CachePolicy {
	return &sequencev1.CachePolicy{
		Min: count(p.Min), Max: count(p.Max), MinThreshold: count(p.MinThreshold), Buffer: durationpb.New(p.Buffer),
	}
}

func decodePolicy(p *sequencev1.CachePolicy) sequence.CachePolicy {
	return sequence.CachePolicy{
		Min: int64(p.GetMin()), Max: int64(p.GetMax()),
		MinThreshold: int64(p.GetMinThreshold()), Buffer: p.GetBuffer().AsDuration(),
	}
}

func encodeReturn(req sequence.ReturnRequest) *sequencev1.ReturnRequest {
	return &sequencev1.ReturnRequest{
		Name: req.Name, LeaseId: req.LeaseID, FromPosition: count(req.From), Count: count(req.Count),
	}
}

func decodeReturn(m *sequencev1.ReturnRequest) sequence.ReturnRequest {
	return sequence.ReturnRequest{
		Name: m.GetName(), LeaseID: m.GetLeaseId(), From: int64(m.GetFromPosition()), Count: int64(m.GetCount()),
	}
}
