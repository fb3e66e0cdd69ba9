package couponsql

import (
	"context"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const (
	selectMapVersion = "SELECT COALESCE(MAX(version), 0) FROM shard_map"
	selectMap        = `SELECT version, shard, database_name, epoch FROM shard_map
		WHERE version = (SELECT MAX(version) FROM shard_map)`
	insertPlace = "INSERT INTO shard_map (version, shard, database_name, epoch) VALUES (?, ?, ?, ?)"
)

// Map returns the newest shard map, or [coupon.ErrNoRow].
func (c *Control) Map(ctx context.Context) (m shard.Map, err error) {
	err = c.read(ctx, func(s session) (err error) {
		m, err = s.shardMap()
		return err
	})
	if err != nil {
		return m, fmt.Errorf("read the shard map: %w", err)
	}
	return m, m.Validate()
}

func (s session) shardMap() (m shard.Map, err error) {
	places, err := listOf(s, func(row scanner) (at placed, err error) {
		err = row.Scan(&m.Version, &at.shard, &at.Database, &at.Epoch)
		return at, err
	}, selectMap)
	for _, p := range places {
		m.Shards[p.shard%shard.Count] = p.Place
	}
	if err == nil && len(places) == 0 {
		err = coupon.ErrNoRow
	}
	return m, err
}

type placed struct {
	shard shard.Shard
	shard.Place
}

// SaveMap adds a map if the newest one has the version before, and reports
// whether. Older ones stay: they say where everything was.
func (c *Control) SaveMap(ctx context.Context, m shard.Map) (saved bool, err error) {
	if err := m.Validate(); err != nil {
		return false, err
	}
	err = c.write(ctx, func(s session) error {
		var newest uint64
		if err := s.row(selectMapVersion).Scan(&newest); err != nil {
			return err
		}
		if saved = newest == m.Version-1; !saved {
			return nil
		}
		for at, p := range m.Shards {
			if _, err := s.exec(insertPlace, m.Version, at, p.Database, p.Epoch); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, shard.ErrDuplicate) { // another process was faster
		return false, nil
	}
	return saved && err == nil, err
}

// firstMap makes the first map, the shards in equal runs over the databases, after
// their fences. It returns another process's if that was faster.
func (c *Control) firstMap(ctx context.Context, o Options, databases map[string]shard.Database, names []string) (shard.Map, error) {
	begun, err := anyBegun(ctx, databases, names)
	if err != nil {
		return shard.Map{}, err
	}
	if begun != "" { // there was a map before that: another process's, or one that is lost
		m, err := c.Map(ctx)
		if errors.Is(err, coupon.ErrNoRow) {
			err = fmt.Errorf("couponsql: database %s has shards, and the control database has no map of them: it is another database "+
				"or an empty one in its place; correct where it is, or restore it", begun)
		}
		return m, err
	}
	m, err := shard.Spread(names...)
	if err != nil {
		return m, err
	}
	for _, s := range shard.All() {
		place := m.Shards[s]
		if err := o.EnsureFence(ctx, databases[place.Database], s, place.Epoch); err != nil {
			return m, err
		}
	}
	if saved, err := c.SaveMap(ctx, m); err != nil || saved {
		return m, err
	}
	return c.Map(ctx)
}

// selectBegun counts the table that is the first one of a database after the map
// that says what is there was published.
var selectBegun = map[shard.Dialect]string{
	shard.SQLite:  "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'shard_schema'",
	shard.MariaDB: "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'shard_schema'",
}

// anyBegun returns the name of a database that is part of a map, "" if there is
// none.
func anyBegun(ctx context.Context, databases map[string]shard.Database, names []string) (string, error) {
	for _, name := range names {
		var n int
		db := databases[name]
		err := db.Read(ctx, func(c shard.Conn) error {
			return c.QueryRowContext(ctx, selectBegun[db.Dialect()]).Scan(&n)
		})
		if err != nil {
			return "", fmt.Errorf("look for tables of database %s: %w", name, err)
		}
		if n > 0 {
			return name, nil
		}
	}
	return "", nil
}
