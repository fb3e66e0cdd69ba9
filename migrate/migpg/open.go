package migpg

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/migrate"
)

var _ interface {
	migrate.Source
	migrate.Settler
	migrate.Outbox
	migrate.Gauge
	migrate.Preflighter
} = (*Source)(nil)

// A Source is a table of PostgreSQL. It is safe for concurrent use. Use [Open].
type Source struct {
	plan   migrate.Plan
	schema *schema
	query  queries
	pool   *pgxpool.Pool

	rowBytes atomic.Int64 // average of the last page; 0: none was read
}

// A querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// session are the settings of every connection. Without the planner's, a small
// slot is read by a bitmap and sorted, and a large table by compiled code,
// because forbidden plans count as expensive.
var session = map[string]string{
	"enable_sort": "off", "enable_incremental_sort": "off", "enable_bitmapscan": "off", "enable_seqscan": "off",
	"enable_hashjoin": "off", "enable_mergejoin": "off", "max_parallel_workers_per_gather": "0", "jit": "off",
	"plan_cache_mode":                     "force_custom_plan",
	"default_transaction_read_only":       "on",
	"row_security":                        "off", // an error instead of hidden rows
	"statement_timeout":                   "60s",
	"lock_timeout":                        "10s",
	"idle_in_transaction_session_timeout": "60s",
	"TimeZone":                            "UTC",
	"DateStyle":                           "ISO, YMD",
	"IntervalStyle":                       "iso_8601",
	"bytea_output":                        "hex",
	"extra_float_digits":                  "1",
	"client_encoding":                     "UTF8",
}

// Open connects to the source of a plan and looks at the table. A table that
// cannot be read is an error that joins [migrate.Finding]s. An empty DSN is what
// the PG* variables of the environment say.
func Open(ctx context.Context, plan migrate.Plan) (*Source, error) {
	config, err := configure(plan)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, failed("open", err)
	}
	schema, err := look(ctx, pool, plan)
	if err != nil {
		pool.Close()
		return nil, failed("open", err)
	}
	return &Source{plan: plan, schema: schema, query: queries{schema, plan.Oldest()}, pool: pool}, nil
}

// look returns the schema, by way of the first connection.
func look(ctx context.Context, pool *pgxpool.Pool, plan migrate.Plan) (*schema, error) {
	if err := pool.Ping(ctx); settingsRefused(err) {
		return nil, migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: "the settings of a session are refused: " + err.Error(),
			Remedy: "PostgreSQL 13 or later is needed, and no pooler between that keeps startup parameters back"}
	} else if err != nil {
		return nil, err
	}
	return load(ctx, pool, plan)
}

// compared are the settings that are read back as they were written; of time-outs
// the server chooses the unit.
var compared = slices.Sorted(func(yield func(string) bool) {
	for name := range session {
		if !strings.HasSuffix(name, "_timeout") && !yield(name) {
			return
		}
	}
})

// keptSettings refuses a connection whose settings are not in force: a pooler
// that ignores them answers all the same, with pages that are sorted, times of
// another zone, and rows left out.
func keptSettings(ctx context.Context, conn *pgx.Conn) error {
	values := make([]string, len(compared))
	for i, name := range compared {
		values[i] = session[name]
	}
	var lost []string
	err := conn.QueryRow(ctx, `select coalesce(array_agg(s.name || ' is ' || current_setting(s.name) order by s.name), '{}')
		from unnest($1::text[], $2::text[]) s(name, value) where current_setting(s.name) <> s.value`, pgx.QueryExecModeExec, compared, values).Scan(&lost)
	if err != nil || len(lost) == 0 {
		return err
	}
	return migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: "the settings of a session are not kept: " + strings.Join(lost[:min(len(lost), 3)], ", "),
		Remedy: "connect to the server itself, or by a pooler that gives a session of its own and passes startup parameters on"}
}

// Close ends the connections, when those in use are given back.
func (s *Source) Close() error {
	s.pool.Close()
	return nil
}

func configure(plan migrate.Plan) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(plan.Source.DSN)
	if err != nil { // which quotes the DSN
		return nil, migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: "cannot be understood",
			Remedy: "write it like postgres://user@host:5432/database, special characters as %XX; the password may be in PGPASSWORD"}
	}
	for name, value := range session {
		config.ConnConfig.RuntimeParams[name] = value
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "tallystick migrate " + plan.Name
	}
	if config.ConnConfig.ConnectTimeout == 0 || config.ConnConfig.ConnectTimeout > time.Minute {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	config.AfterConnect = keptSettings
	config.MaxConns = max(config.MaxConns, int32(plan.Workers)+2)
	return config, nil
}
