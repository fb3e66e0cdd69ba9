package shardsql

import (
	"context"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/shard"
)

// words are what the dialects say differently.
type words struct{ createFence, hasFence, fence, now string }

var dialects = map[shard.Dialect]words{
	shard.MariaDB: {
		createFence: `CREATE TABLE IF NOT EXISTS shard_fence (
			shard INT NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, since BIGINT NOT NULL) ENGINE = InnoDB`,
		hasFence: `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'shard_fence'`,
		fence:    mysqlFence,
		now:      mysqlNow,
	},
	shard.SQLite: {
		createFence: `CREATE TABLE IF NOT EXISTS shard_fence (
			shard INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, since INTEGER NOT NULL)`,
		hasFence: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'shard_fence'`,
		fence:    sqliteFence,
		now:      sqliteNow,
	},
}

// The servers' clocks in ms since 1970.
const (
	mysqlNow  = `CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)`
	sqliteNow = `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`
)

// The fence. LOCK IN SHARE MODE is understood by MariaDB, which has no FOR
// SHARE, and by MySQL. SQLite has one writer, who holds the lock of the file. To
// count ms takes MariaDB half as long again as all the rest; the driver reads a time.
const (
	mysqlFence  = `SELECT epoch, UTC_TIMESTAMP(3) FROM shard_fence WHERE shard = ? LOCK IN SHARE MODE`
	sqliteFence = `SELECT epoch, ` + sqliteNow + ` FROM shard_fence WHERE shard = ?`
)

// Fence returns the statement that each write begins with.
func (*MySQL) Fence() string { return mysqlFence }

// Fence returns the statement that each write begins with.
func (*SQLite) Fence() string { return sqliteFence }

// EnsureFence makes the table shard_fence in a database and a shard's row in it,
// with the epoch, unless they are there. A row that is there stays as it is.
func EnsureFence(ctx context.Context, db shard.Database, s shard.Shard, epoch uint64) error {
	w := dialects[db.Dialect()]
	err := db.Write(ctx, func(c shard.Conn) error {
		if _, err := c.ExecContext(ctx, w.createFence); err != nil {
			return err
		}
		return insertFence(ctx, c, w, s, epoch)
	})
	if err != nil {
		return fmt.Errorf("make the fence of shard %d: %w", s, err)
	}
	return nil
}

// Fenced reports whether a database has the fence of a shard: whether it was made
// there, ever.
func Fenced(ctx context.Context, db shard.Database, s shard.Shard) (there bool, err error) {
	var n int
	err = db.Read(ctx, func(c shard.Conn) error {
		if err := c.QueryRowContext(ctx, dialects[db.Dialect()].hasFence).Scan(&n); err != nil || n == 0 {
			return err
		}
		return c.QueryRowContext(ctx, `SELECT COUNT(*) FROM shard_fence WHERE shard = ?`, s).Scan(&n)
	})
	if err != nil {
		return false, fmt.Errorf("look for the fence of shard %d: %w", s, err)
	}
	return n > 0, nil
}

func insertFence(ctx context.Context, c shard.Conn, w words, s shard.Shard, epoch uint64) error {
	_, err := c.ExecContext(ctx, `INSERT INTO shard_fence (shard, epoch, since) VALUES (?, ?, `+w.now+`)`, s, epoch)
	if errors.Is(err, shard.ErrDuplicate) {
		return nil
	}
	return err
}

// RaiseFence raises the epoch of a shard in a database, which makes its row if
// there is none. When it returns nil, no write with a smaller epoch is under way
// there or can ever commit: it waited for those that were. It is idempotent and
// never lowers. After [shard.ErrBusy], when a write was still open after 1 s, try
// again; meanwhile writes of that shard wait too.
func RaiseFence(ctx context.Context, db shard.Database, s shard.Shard, epoch uint64) error {
	w := dialects[db.Dialect()]
	err := db.Write(ctx, func(c shard.Conn) error {
		if err := insertFence(ctx, c, w, s, epoch); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, `UPDATE shard_fence SET epoch = ?, since = `+w.now+` WHERE shard = ? AND epoch < ?`, epoch, s, epoch)
		return err
	})
	if err != nil {
		return fmt.Errorf("raise the fence of shard %d: %w", s, err)
	}
	return nil
}
