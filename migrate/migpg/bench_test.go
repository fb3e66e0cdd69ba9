package migpg_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

const benchRows = 20_000

// BenchmarkTable reads a table in pages, as one worker does, and with COPY,
// which is all that a server can give.
func BenchmarkTable(b *testing.B) {
	for _, size := range []int{200, 2000} {
		db, err := pgx.Connect(b.Context(), realtest.PostgresDSN(b))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := db.PgConn().Exec(b.Context(), fmt.Sprintf(`create table t (id text primary key, room uuid, data json, version bigint not null);
			insert into t select '01' || to_char(n, 'FM000000') || '000000000000000000', gen_random_uuid(), ('{"n": ' || n || ', "body": "' || repeat('x', %d) || '"}')::json, n
			from generate_series(1, %d) n; analyze t`, size, benchRows)).ReadAll(); err != nil {
			b.Fatal(err)
		}
		plan := planOf(db, "t", "id")
		plan.Slots.By = migrate.ByULID
		s, err := migpg.Open(b.Context(), plan)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("pages/%d", size), func(b *testing.B) { benchmarkPages(b, s, db) })
		b.Run(fmt.Sprintf("copy/%d", size), func(b *testing.B) { benchmarkCopy(b, db) })
		s.Close()
		db.Close(b.Context())
	}
}

func benchmarkPages(b *testing.B, s *migpg.Source, db *pgx.Conn) {
	b.SetBytes(copied(b, db))
	b.ReportAllocs()
	for b.Loop() {
		var after migrate.Key
		for {
			p, err := s.Page(b.Context(), migrate.Range{}, after, 1000, 16<<20)
			if err != nil {
				b.Fatal(err)
			}
			if p.End {
				break
			}
			after = p.Rows[len(p.Rows)-1].Key
		}
	}
	b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func benchmarkCopy(b *testing.B, db *pgx.Conn) {
	b.SetBytes(copied(b, db))
	for b.Loop() {
		copied(b, db)
	}
	b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// copied returns how many bytes COPY sends.
func copied(b *testing.B, db *pgx.Conn) int64 {
	var n counter
	if _, err := db.PgConn().CopyTo(b.Context(), io.Writer(&n), "copy t to stdout"); err != nil {
		b.Fatal(err)
	}
	return int64(n)
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
