package couponsql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/shard"
)

// The schema: for each dialect and for control and a shard the steps, in files
// named by their number. Each statement of a step may be repeated. A step that
// was released never changes.
//
//go:embed schema
var schema embed.FS

// How long one shard's steps may take, and how many shards run theirs at a time.
const (
	stepsTimeout   = 5 * time.Minute
	upgradedAtOnce = 8
	versionsTable  = "CREATE TABLE IF NOT EXISTS shard_schema (shard INT NOT NULL PRIMARY KEY, version INT NOT NULL)"
)

var (
	selectShardVersion  = shard.SQL("SELECT version FROM shard_schema WHERE shard = #")
	replaceShardVersion = shard.SQL("REPLACE INTO shard_schema (shard, version) VALUES (#, ?)")

	countUnreleased = wording{
		mariadb: shard.SQL("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'outbox_#'"),
		sqlite:  shard.SQL("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'outbox_#'"),
	}
)

// upgradeShards brings the tables of the shards in some databases, by the map, up
// to date, each on its own: a shard that was done stays done if another fails.
// The fences have to be there. It may run again, and at the same time in several
// processes. A shard whose schema is newer than this program is refused.
func upgradeShards(ctx context.Context, m shard.Map, databases map[string]shard.Database, names []string) error {
	for _, name := range names {
		err := databases[name].Write(ctx, func(c shard.Conn) error {
			_, err := c.ExecContext(ctx, versionsTable)
			return err
		})
		if err != nil {
			return fmt.Errorf("schema of database %s: %w", name, err)
		}
	}
	cluster, err := shard.New(m, databases, shard.Options{Timeout: stepsTimeout})
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(upgradedAtOnce)
	for _, s := range shard.All() {
		if !slices.Contains(names, m.Shards[s].Database) {
			continue
		}
		work.Go(func() error {
			if err := cluster.Write(ctx, s, upgradeShard); err != nil {
				return fmt.Errorf("schema of shard %d in database %s: %w", s, m.Shards[s].Database, err)
			}
			return nil
		})
	}
	return work.Wait()
}

// upgradeShard runs the steps that a shard lacks. On MariaDB each statement that
// makes a table commits, the fence with it; that is why steps may be repeated.
func upgradeShard(t *shard.Tx) error {
	var unreleased int
	if err := t.QueryRow(countUnreleased.in(t.Dialect())).Scan(&unreleased); err != nil {
		return err
	}
	if unreleased > 0 {
		return fmt.Errorf("couponsql: table outbox_%02d is of a version before the first release, whose coupons this program cannot read: use that version, or empty databases", t.Shard())
	}
	version, err := scanVersion(t.QueryRow(selectShardVersion))
	if err != nil {
		return err
	}
	return runSteps(t.Dialect(), "shard", version, func(number int, statements []string) error {
		for _, text := range statements {
			if _, err := t.Exec(shard.SQL(text)); err != nil {
				return err
			}
		}
		_, err := t.Exec(replaceShardVersion, number)
		return err
	})
}

// UpgradeControl brings the tables of the control database up to date, likewise.
func UpgradeControl(ctx context.Context, db shard.Database) error {
	err := db.Write(ctx, func(conn shard.Conn) error {
		s := session{ctx, conn, db.Dialect()}
		if _, err := s.exec("CREATE TABLE IF NOT EXISTS control_schema (id INT NOT NULL PRIMARY KEY, version INT NOT NULL)"); err != nil {
			return err
		}
		version, err := scanVersion(s.row("SELECT version FROM control_schema WHERE id = 1"))
		if err != nil {
			return err
		}
		return runSteps(s.dialect, "control", version, func(number int, statements []string) error {
			for _, text := range statements {
				if _, err := s.exec(text); err != nil {
					return err
				}
			}
			_, err := s.exec("REPLACE INTO control_schema (id, version) VALUES (1, ?)", number)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("schema of the control database: %w", err)
	}
	return nil
}

// scanVersion returns the version of a schema, 0 where there is none.
func scanVersion(row scanner) (version int, err error) {
	err = row.Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// runSteps runs the steps beyond a version.
func runSteps(d shard.Dialect, of string, version int, run func(number int, statements []string) error) error {
	steps, err := stepsOf(d, of)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("couponsql: the schema has version %d, this program knows %d: use a newer program", version, len(steps))
	}
	for number := version + 1; number <= len(steps); number++ {
		if err := run(number, steps[number-1]); err != nil {
			return fmt.Errorf("step %d: %w", number, err)
		}
	}
	return nil
}

// stepsOf returns the statements of each step.
func stepsOf(d shard.Dialect, of string) ([][]string, error) {
	folder := "schema/" + string(d) + "/" + of
	files, err := schema.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var steps [][]string
	for _, f := range files { // sorted by name, which is the number
		text, err := schema.ReadFile(folder + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		steps = append(steps, statementsOf(string(text)))
	}
	return steps, nil
}

// statementsOf splits a file: a statement ends with a semicolon at the end of a
// line. Lines of comment are left out.
func statementsOf(text string) []string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			kept = append(kept, line)
		}
	}
	var statements []string
	for _, s := range strings.Split(strings.Join(kept, ""), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}
