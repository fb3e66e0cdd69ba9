package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
	"github.com/tallystick/tallystick/coupon/couponprom"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/observe"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migbolt"
	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/migrate/migprom"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migrrpc"
	"github.com/tallystick/tallystick/migrate/migtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
	"github.com/tallystick/tallystick/sequence/seqprom"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// This is the only file that names adapters: which stores there are, what
// carries sequences and migrations over the network, what shows their metrics.

// A store is where sequences are kept.
type store interface {
	sequence.Store
	io.Closer
	Adopt(context.Context) error // accepts a store that took the place of another
}

// openStore opens the store that o names. adopt opens it even if it is not the
// one that it was.
func openStore(ctx context.Context, o storeOptions, adopt bool) (store, error) {
	if o.kind == storeBolt {
		return seqbolt.Open(o.file(), seqbolt.Options{})
	}
	s, err := seqdynamo.Open(ctx, seqdynamo.Options{
		Table: o.table, Region: o.region, Endpoint: o.endpoint, Create: o.create, Adopt: adopt,
	})
	if err != nil {
		return nil, o.unopened(err)
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

// changedSequences returns which sequences such a call was about. Of a Create,
// each has its own code.
func changedSequences(request, answer any) []observe.Change {
	switch r := request.(type) {
	case *sequencev1.CreateRequest:
		all := make([]observe.Change, len(r.GetSpecs()))
		a, _ := answer.(*sequencev1.CreateResponse)
		for i, s := range r.GetSpecs() {
			all[i].Name = s.GetName()
			if results := a.GetResults(); i < len(results) {
				all[i].Code = strings.ToLower(results[i].GetError().GetCode())
			}
		}
		return all
	case *sequencev1.AlterRequest:
		return []observe.Change{{Name: r.GetSpec().GetName()}}
	case interface{ GetName() string }:
		return []observe.Change{{Name: r.GetName()}}
	}
	return nil
}

// refuse answers a request with err in the protocol the request speaks.
func refuse(w http.ResponseWriter, r *http.Request, err error) { seqrpc.WriteError(w, r, err) }

// Codes of refusals that only a server far away gives.
const (
	codeUnauthenticated  = seqrpc.CodeUnauthenticated
	codePermissionDenied = seqrpc.CodePermissionDenied

	couponUnauthenticated  = couponrpc.CodeUnauthenticated
	couponPermissionDenied = couponrpc.CodePermissionDenied
	couponRateLimited      = couponrpc.CodeRateLimited
)

// sequenceMetrics returns what s counts.
func sequenceMetrics(s *sequence.Service) prometheus.Collector { return seqprom.New(s.Stats) }

// dialSequences returns the sequence service of the server that r names.
func dialSequences(r remote, token string) (service, error) {
	return seqrpc.Dial(r.server, seqrpc.Options{Token: token, CAFile: r.tlsCA, Timeout: r.timeout, InsecureNoTLS: r.insecureNoTLS})
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

// A migrationSource is where rows are read.
type migrationSource interface {
	migrate.Source
	io.Closer
	Columns() []migrate.Column
}

// openMigrationSource opens the source of a plan.
func openMigrationSource(ctx context.Context, plan migrate.Plan) (migrationSource, error) {
	s, err := migpg.Open(ctx, plan)
	if err != nil { // not s, which would be an interface of a nil pointer
		return nil, err
	}
	return s, nil
}

// openMigrationSink opens the sink of a plan; kinds are those of its key's
// attributes.
func openMigrationSink(ctx context.Context, plan migrate.Plan, kinds map[string]migrate.Kind) (migrate.Sink, error) {
	if plan.Sink.Kind == "discard" {
		return migtest.NewDiscard(), nil
	}
	s, err := migdynamo.Open(ctx, plan, migdynamo.Options{KeyKinds: kinds})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openMigrationState opens the state of a plan.
func openMigrationState(ctx context.Context, plan migrate.Plan) (migrate.State, error) {
	if plan.State.Kind == "file" {
		s, err := migbolt.Open(plan.State.Path, plan.Axis())
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := migredis.Open(ctx, plan, plan.Axis())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// A migration looks at and steers a migration.
type migration = migrrpc.Service

// An outlook is what is known of a migration before it begins.
type outlook = migrrpc.Outlook

// A closableMigration is one of this process.
type closableMigration interface {
	migration
	io.Closer
}

// localMigration returns the migration of this process.
func localMigration(m *migrate.Migration, plan migrate.Plan, source migrate.Source, state migrate.State) closableMigration {
	return migrrpc.NewLocal(m, plan, source, state)
}

// serveMigration returns the handler of the migration service and its path.
func serveMigration(m migration, opts ...connect.HandlerOption) (string, http.Handler) {
	return migrrpc.Handler(m, opts...)
}

// changesMigration reports whether a procedure changes a migration.
func changesMigration(procedure string) bool { return migrrpc.Changes(procedure) }

// migrationMetrics returns what shows m's figures until ctx ends.
func migrationMetrics(ctx context.Context, m migration) prometheus.Collector {
	return migprom.New(ctx, m.Status)
}

// migrationFailure returns err in parts, and false if it is none of a
// migration.
func migrationFailure(err error) (failure, bool) {
	e, ok := migrrpc.Known(err)
	if !ok {
		return failure{}, false
	}
	return failure{Code: sequence.Code(e.Name()), Field: e.Field, Message: e.Message, Remedy: e.Remedy}, true
}

// couponStores are the open databases of coupons.
type couponStores struct {
	Shards  *shard.Cluster
	Store   coupon.Store
	Control coupon.Control
	Workers coupon.Workers
	Outbox  coupon.Outbox
	Close   func() error
}

// openCouponStores opens the databases of coupons and brings their tables up to
// date.
func openCouponStores(ctx context.Context, where couponDatabases, log *slog.Logger) (couponStores, error) {
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: where.Control}, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	for _, s := range where.Shards {
		o.Shards = append(o.Shards, couponsql.Source{Name: s.Name, At: s.DSN})
	}
	o.Open = routedOnly(couponOpener(where, log))
	if !where.embedded {
		o.Late = logLate(log)
	}
	p, err := couponsql.Open(ctx, o)
	if err != nil {
		return couponStores{}, err
	}
	if err := refusesOthers(ctx, p.Cluster); err != nil {
		return couponStores{}, errors.Join(err, p.Close())
	}
	return couponStores{Shards: p.Cluster, Store: p.Store, Control: p.Control, Workers: p.Control, Outbox: couponsql.NewOutbox(p.Cluster), Close: p.Close}, nil
}

// couponFiles returns the databases of embedded coupons, which are files in a
// folder.
func couponFiles(dir string) (control string, shards []couponDatabase) {
	source, sources := couponsql.Folder(dir, 0)
	for _, s := range sources {
		shards = append(shards, couponDatabase{Name: s.Name, DSN: s.At})
	}
	return source.At, shards
}

// couponOpener returns what opens a database of coupons: a file or a server.
func couponOpener(where couponDatabases, log *slog.Logger) func(context.Context, string) (couponsql.Database, error) {
	if where.embedded {
		return func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
		}
	}
	open := func(ctx context.Context, at string) (*shardsql.MySQL, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	breakable := breakableAs(where, log, open)
	return func(ctx context.Context, at string) (couponsql.Database, error) { return breakable(ctx, at) }
}

// A couponQueue carries events of coupons.
type couponQueue = *couponnats.Queue

// openCouponQueue opens the queue of events.
func openCouponQueue(ctx context.Context, e couponEvents, log *slog.Logger) (couponQueue, error) {
	o := couponnats.Options{URL: e.URL, Credentials: e.Credentials, CA: e.CA, Replicas: e.Replicas, Readers: []string{walletReader}, Logger: log}
	if e.URL == "" {
		o.Dir = e.dir
	}
	return couponnats.Open(ctx, o)
}

// couponMetrics returns what shows how far events are.
func couponMetrics(p *platform) prometheus.Collector {
	return couponprom.New(p.relay.Stats, p.queue.Stats)
}

// serveCoupons returns the handler of coupons, for the paths couponPaths.
func serveCoupons(p *platform, log *slog.Logger, opts ...connect.HandlerOption) (http.Handler, error) {
	return couponrpc.New(p.Service, couponrpc.Options{Parse: p.codes.Parse, Actor: tokenOf, Logger: log, Handler: opts})
}

// couponPaths are below which coupons are served.
var couponPaths = couponrpc.Paths

// refuseCoupons answers a request for coupons with a refusal, in the protocol
// the request speaks.
func refuseCoupons(w http.ResponseWriter, r *http.Request, refusal *coupon.Refusal) {
	couponrpc.Refuse(w, r, refusal)
}

// couponScope returns the scope that a procedure needs beside admin.
func couponScope(procedure string) access.Scope { return access.Scope(couponrpc.Scope(procedure)) }

// couponRefusal returns a refusal as an interceptor gives it.
func couponRefusal(r *coupon.Refusal) error { return couponrpc.Encode(r) }

// coupons is what the commands need of a server.
type coupons = *couponrpc.Client

// A couponRef names a coupon as people do.
type couponRef = couponrpc.Ref

// dialCoupons returns the coupons of the server that r names.
func dialCoupons(r remote, token string) (coupons, error) {
	server, _, _ := strings.Cut(r.server, ",")
	return couponrpc.Dial(server, couponrpc.ClientOptions{Token: token, CAFile: r.tlsCA, Timeout: r.timeout, InsecureNoTLS: r.insecureNoTLS})
}

// couponJSON returns what a call came to as the wire prints it.
func couponJSON(v any) ([]byte, error) { return couponrpc.MarshalJSON(v) }
