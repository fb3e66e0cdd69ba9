package migpg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// keyTypes are the types of key columns, two for each axis.
var keyTypes = map[migrate.By][2]string{
	migrate.ByULID:      {"text", "char(26)"},
	migrate.ByUUIDv7:    {"uuid", "varchar(36)"},
	migrate.ByTimestamp: {"timestamptz", "timestamptz"},
	migrate.ByInteger:   {"bigint", "bigint"},
}

func TestSource(t *testing.T) {
	migtest.TestSource(t, func(t *testing.T, table migtest.SourceTable) (migrate.Source, func(...migrate.Row)) {
		db := connect(t, realtest.PostgresDSN(t))
		name, key := `odd."Näme`, []string{"k", "tie"}[:table.Parts]
		columns := "k " + keyTypes[table.Axis.By][table.Parts-1]
		if table.Parts == 2 {
			columns += ", tie text"
		}
		run(t, db, `create schema odd; create table odd."""Näme" (`+columns+", version bigint not null, body text, primary key ("+strings.Join(key, ",")+"))")
		plan := planOf(db, name, key...)
		plan.Slots.By, plan.PageRows = table.Axis.By, 20
		if table.Axis.Lower {
			plan.Slots.Case = "lower"
		}
		if table.Oldest {
			plan.Slots.Order = "oldest-first"
		}
		return open(t, plan), func(rows ...migrate.Row) { insert(t, db, `odd."""Näme"`, rows) }
	})
}

// insert writes rows whose values are texts and numbers.
func insert(t *testing.T, db *pgx.Conn, table string, rows []migrate.Row) {
	t.Helper()
	batch := &pgx.Batch{}
	for _, row := range rows {
		var params []string
		var values []any
		for i, f := range row.Fields {
			params, values = append(params, fmt.Sprintf("$%d", i+1)), append(values, f.Value.Text)
		}
		batch.Queue("insert into "+table+" values ("+strings.Join(params, ", ")+")", values...)
	}
	if err := db.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
}

// planOf returns a plan for a table of the database that db is connected to.
func planOf(db *pgx.Conn, table string, key ...string) migrate.Plan {
	return migrate.Plan{
		Name:     "test",
		Source:   migrate.SourcePlan{Kind: "postgres", DSN: db.Config().ConnString(), Table: table, Key: key},
		Slots:    migrate.SlotPlan{By: migrate.ByInteger, Width: migrate.Width{Keys: 1000}, Order: "newest-first"},
		Write:    migrate.WritePlan{Mode: migrate.Guarded, Version: "version"},
		PageRows: 1000,
	}
}

func open(t *testing.T, plan migrate.Plan) *migpg.Source {
	t.Helper()
	s, err := migpg.Open(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		db.Close(ctx)
	})
	return db
}

// run runs statements that are separated by semicolons.
func run(t *testing.T, db *pgx.Conn, sql string) {
	t.Helper()
	if _, err := db.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
