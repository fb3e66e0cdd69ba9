package main

import (
	"context"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/internal/datadir"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
	"github.com/tallystick/tallystick/sequence/seqprom"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// This is the only file that names adapters: which stores there are, what
// carries sequences over the network, what shows their metrics.

// A store is where sequences are kept.
type store interface {
	sequence.Store
	io.Closer
	Adopt(context.Context) error // accepts a store that took the place of another
}

// openStore opens the store that o names. adopt opens it even if it is not the
// one that it was.
func openStore(ctx context.Context, o storeOptions, dir *datadir.Dir, adopt bool) (store, error) {
	if o.kind == storeBolt {
		return seqbolt.Open(dir.File("sequence.db"), seqbolt.Options{})
	}
	s, err := seqdynamo.Open(ctx, seqdynamo.Options{
		Table: o.table, Region: o.region, Endpoint: o.endpoint, Create: o.create, Adopt: adopt,
	})
	if err != nil {
		return nil, err
	}
	return dynamoTable{s}, nil
}

// A dynamoTable is a store that holds nothing to close.
type dynamoTable struct{ *seqdynamo.Store }

func (dynamoTable) Close() error { return nil }

// serveSequences returns the handler of the sequence service and its path.
func serveSequences(s *sequence.Service, opts ...connect.HandlerOption) (string, http.Handler) {
	return seqrpc.Handler(s, opts...)
}

// leaseIsEnough reports whether a token of scope lease may make this request.
func leaseIsEnough(r *http.Request) bool { return seqrpc.LeaseOnly(r.URL.Path) }

// changesSequences reports whether a procedure creates, changes or deletes
// sequences.
func changesSequences(procedure string) bool {
	switch procedure {
	case sequencev1.SequenceServiceCreateProcedure, sequencev1.SequenceServiceAlterProcedure,
		sequencev1.SequenceServiceDeleteProcedure, sequencev1.SequenceServiceRestartProcedure:
		return true
	}
	return false
}

// refuse answers a request with err in the protocol the request speaks.
func refuse(w http.ResponseWriter, r *http.Request, err error) { seqrpc.WriteError(w, r, err) }

// Codes of refusals that only a server far away gives.
const (
	codeUnauthenticated  = seqrpc.CodeUnauthenticated
	codePermissionDenied = seqrpc.CodePermissionDenied
)

// sequenceMetrics returns what s counts.
func sequenceMetrics(s *sequence.Service) prometheus.Collector { return seqprom.New(s.Stats) }

// dialSequences returns the sequence service of the server that r names.
func dialSequences(r remote, token string) (service, error) {
	return seqrpc.Dial(r.server, seqrpc.Options{Token: token, CAFile: r.tlsCA, Timeout: r.timeout})
}

// recordJSON returns a sequence as the wire prints it.
func recordJSON(r sequence.Record) ([]byte, error) { return seqrpc.MarshalJSON(seqrpc.EncodeRecord(r)) }

// parseSpec reads a definition as the wire takes it.
func parseSpec(b []byte) (sequence.Spec, error) {
	m := new(sequencev1.Spec)
	if err := seqrpc.UnmarshalJSON(b, m); err != nil {
		return sequence.Spec{}, err
	}
	return seqrpc.DecodeSpec(m), nil
}
