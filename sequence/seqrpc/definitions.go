package seqrpc

import (
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

func encodeSpec(s sequence.Spec) *sequencev1.Spec {
	return &sequencev1.Spec{
		Name: s.Name, Start: s.Start, Increment: s.Increment, Min: s.Min, Max: s.Max, Cycle: s.Cycle,
		BlockSize: s.BlockSize, MaxBlock: s.MaxBlock, ServerCacheMax: s.ServerCacheMax,
		ClientCacheMin: s.ClientCacheMin, ClientCacheMax: s.ClientCacheMax,
		MinThreshold: s.MinThreshold, BufferSeconds: s.BufferSeconds,
		Owner: s.Owner, Labels: s.Labels, ClearLabels: s.Labels != nil && len(s.Labels) == 0,
	}
}

// DecodeSpec returns the domain's spec of m.
func DecodeSpec(m *sequencev1.Spec) sequence.Spec {
	if m == nil {
		return sequence.Spec{}
	}
	s := sequence.Spec{
		Name: m.Name, Start: m.Start, Increment: m.Increment, Min: m.Min, Max: m.Max, Cycle: m.Cycle,
		BlockSize: m.BlockSize, MaxBlock: m.MaxBlock, ServerCacheMax: m.ServerCacheMax,
		ClientCacheMin: m.ClientCacheMin, ClientCacheMax: m.ClientCacheMax,
		MinThreshold: m.MinThreshold, BufferSeconds: m.BufferSeconds,
		Owner: m.Owner,
	}
	if len(m.Labels) > 0 {
		s.Labels = m.Labels
	} else if m.ClearLabels {
		s.Labels = map[string]string{}
	}
	return s
}

// EncodeRecord returns r as the wire and `seq get -o json` have it. A lap of a
// sequence that cycles, once it is at its end, shows as the next one's
// beginning.
func EncodeRecord(r sequence.Record) *sequencev1.Sequence {
	d := r.Definition
	next, more := r.Upcoming()
	return &sequencev1.Sequence{
		Name: d.Name, Start: d.Start, Increment: d.Increment, Min: d.Min, Max: d.Max, Cycle: d.Cycle,
		BlockSize: count(d.BlockSize), MaxBlock: count(d.MaxBlock), ServerCacheMax: count(d.ServerCacheMax),
		ClientCacheMin: count(d.ClientCacheMin), ClientCacheMax: count(d.ClientCacheMax),
		MinThreshold: count(d.MinThreshold), BufferSeconds: count(d.BufferSeconds),
		Owner: d.Owner, Labels: d.Labels,
		Epoch: r.Epoch, DefinitionVersion: r.Version, State: string(r.State),
		Next: next, Remaining: r.Remaining(), Exhausted: !more,
	}
}

func decodeRecord(m *sequencev1.Sequence) sequence.Record {
	if m == nil {
		return sequence.Record{}
	}
	return sequence.Record{
		Definition: sequence.Definition{
			Name: m.Name, Start: m.Start, Increment: m.Increment, Min: m.Min, Max: m.Max, Cycle: m.Cycle,
			BlockSize: int64(m.BlockSize), MaxBlock: int64(m.MaxBlock), ServerCacheMax: int64(m.ServerCacheMax),
			ClientCacheMin: int64(m.ClientCacheMin), ClientCacheMax: int64(m.ClientCacheMax),
			MinThreshold: int64(m.MinThreshold), BufferSeconds: int64(m.BufferSeconds),
			Owner: m.Owner, Labels: m.Labels,
		},
		Epoch: m.Epoch, Version: m.DefinitionVersion, State: sequence.State(m.State),
		Next: m.Next, Exhausted: m.Exhausted,
	}
}

func encodeCreateRequest(req sequence.CreateRequest) *sequencev1.CreateRequest {
	return &sequencev1.CreateRequest{Specs: each(req.Specs, encodeSpec), ReuseValues: req.ReuseValues}
}

func decodeCreateRequest(m *sequencev1.CreateRequest) sequence.CreateRequest {
	return sequence.CreateRequest{Specs: each(m.GetSpecs(), DecodeSpec), ReuseValues: m.GetReuseValues()}
}

func encodeCreateResponse(results []sequence.CreateResult) *sequencev1.CreateResponse {
	return &sequencev1.CreateResponse{Results: each(results, encodeCreateResult)}
}

func encodeCreateResult(r sequence.CreateResult) *sequencev1.CreateResult {
	if r.Err != nil {
		return &sequencev1.CreateResult{Error: EncodeError(r.Err)}
	}
	return &sequencev1.CreateResult{Sequence: EncodeRecord(r.Record)}
}

func decodeCreateResponse(m *sequencev1.CreateResponse) []sequence.CreateResult {
	return each(m.GetResults(), func(m *sequencev1.CreateResult) sequence.CreateResult {
		return sequence.CreateResult{Record: decodeRecord(m.GetSequence()), Err: decodeError(m.GetError())}
	})
}

func encodeAlter(req sequence.AlterRequest) *sequencev1.AlterRequest {
	return &sequencev1.AlterRequest{Spec: encodeSpec(req.Spec), IfVersion: req.IfVersion, ReuseValues: req.ReuseValues}
}

func decodeAlter(m *sequencev1.AlterRequest) sequence.AlterRequest {
	return sequence.AlterRequest{Spec: DecodeSpec(m.GetSpec()), IfVersion: m.GetIfVersion(), ReuseValues: m.GetReuseValues()}
}

func encodeListRequest(req sequence.ListRequest) *sequencev1.ListRequest {
	return &sequencev1.ListRequest{Prefix: req.Prefix, PageSize: count(int64(req.PageSize)), PageToken: req.PageToken}
}

func decodeListRequest(m *sequencev1.ListRequest) sequence.ListRequest {
	return sequence.ListRequest{Prefix: m.GetPrefix(), PageSize: int(m.GetPageSize()), PageToken: m.GetPageToken()}
}

func encodeListResponse(res sequence.ListResponse) *sequencev1.ListResponse {
	return &sequencev1.ListResponse{Sequences: each(res.Records, EncodeRecord), NextPageToken: res.NextPageToken}
}

func decodeListResponse(m *sequencev1.ListResponse) sequence.ListResponse {
	return sequence.ListResponse{Records: each(m.GetSequences(), decodeRecord), NextPageToken: m.GetNextPageToken()}
}

func encodeRestart(req sequence.RestartRequest) *sequencev1.RestartRequest {
	return &sequencev1.RestartRequest{Name: req.Name, With: req.With, ReuseValues: req.ReuseValues}
}

func decodeRestart(m *sequencev1.RestartRequest) sequence.RestartRequest {
	return sequence.RestartRequest{Name: m.GetName(), With: m.With, ReuseValues: m.GetReuseValues()}
}
