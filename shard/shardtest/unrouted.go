package shardtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// unrouted names shard 7's table in ways that no router may overlook.
var unrouted = []string{
	"SELECT n FROM thing_07",
	"SELECT n FROM THING_07",
	"SELECT n FROM `thing_07`",
	"SELECT n FROM\nthing_07\nWHERE n = 1",
	"SELECT n FROM thing_07 AS t",
	"SELECT n FROM (thing_07)",
	"SELECT (SELECT max(n) FROM thing_07)",
	"SELECT 1 FROM shard_fence f JOIN thing_07 USING (epoch)",
	"SELECT n FROM thing_07/* */",
	"SELECT n FROM thing_07, thing_08",
}

// ways are how a statement comes to a database.
var ways = map[string]func(context.Context, shard.Conn, string) error{
	"exec": func(ctx context.Context, c shard.Conn, text string) error {
		_, err := c.ExecContext(ctx, text)
		return err
	},
	"query": func(ctx context.Context, c shard.Conn, text string) error {
		rows, err := c.QueryContext(ctx, text)
		if err != nil {
			return err
		}
		return rows.Close()
	},
	"query row": func(ctx context.Context, c shard.Conn, text string) error {
		return c.QueryRowContext(ctx, text).Err()
	},
}

func testUnrouted(t *testing.T, s Subject) {
	c := prepare(t, s)
	ctx := t.Context()
	for _, text := range unrouted {
		for name, way := range ways {
			err := c.Database.Read(ctx, func(conn shard.Conn) error { return way(ctx, conn, text) })
			if !errors.Is(err, shard.ErrUnrouted) {
				t.Errorf("read, %s: %s: %v", name, text, err)
			}
			err = c.Database.Write(ctx, func(conn shard.Conn) error { return way(ctx, conn, text) })
			if !errors.Is(err, shard.ErrUnrouted) {
				t.Errorf("write, %s: %s: %v", name, text, err)
			}
		}
	}
}

func testWrongShard(t *testing.T, s Subject) {
	c := prepare(t, s)
	for _, text := range []string{
		"INSERT INTO thing_08 (id, n) SELECT id, n FROM thing_#",
		"INSERT INTO thing_# (id, n) SELECT id, n FROM thing_08",
		"UPDATE thing_08 SET n = 1 -- thing_#",
		"UPDATE thing_99 SET n = 1 -- thing_#",
	} {
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			_, err := tx.Exec(shard.SQL(text))
			return err
		})
		if !errors.Is(err, shard.ErrUnrouted) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, key := range []shard.Shard{seven, eight} { // each its own
		err := c.Read(t.Context(), key, func(r *shard.Reader) error {
			rows, err := r.Query(shard.SQL(fmt.Sprintf("SELECT n FROM thing_# WHERE id = %d", key)))
			if err != nil {
				return err
			}
			return rows.Close()
		})
		if err != nil {
			t.Error(err)
		}
	}
}
