package couponsql

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Database is one that can be closed. Package shardsql has them.
type Database interface {
	shard.Database
	Close() error
}

// A Source names a database and says how to open it: the path of a file or a
// DSN.
type Source struct{ Name, At string }

// Folder returns the sources of an embedded platform in a folder that is there:
// control.db and n files shard-0.db and so on. An n of 0 is 8.
func Folder(dir string, n int) (control Source, shards []Source) {
	if n == 0 {
		n = 8
	}
	for i := range n {
		name := fmt.Sprintf("shard-%d", i)
		shards = append(shards, Source{name, filepath.Join(dir, name+".db")})
	}
	return Source{"control", filepath.Join(dir, "control.db")}, shards
}

// Options of [Open].
type Options struct {
	Control Source
	Shards  []Source // 1 to 32; the shard map has their names, so those never change

	// Open opens a source, like shardsql.OpenMySQL or shardsql.OpenSQLite.
	Open func(ctx context.Context, at string) (Database, error)
	// EnsureFence is shardsql.EnsureFence.
	EnsureFence func(ctx context.Context, db shard.Database, s shard.Shard, epoch uint64) error
	// Fenced is shardsql.Fenced.
	Fenced func(ctx context.Context, db shard.Database, s shard.Shard) (bool, error)
	// Late is told of each shard's database that cannot be reached, and why, and
	// with nil when it is there. Open goes on without it, unless there is no map yet:
	// its shards are unavailable, and it is tried again until Close. Several
	// goroutines may call it. Default: Open fails.
	Late func(name string, err error)
	// Cluster are the options of the cluster. A Reload that is nil reads the map
	// of the control database.
	Cluster shard.Options
}

// A Platform is all the databases of coupons, open and up to date.
type Platform struct {
	Cluster *shard.Cluster
	Store   *Store
	Control *Control

	opened []Database
	late   late
}

// Open opens all databases, brings their tables up to date and reads the shard
// map. The first time it makes the map: the shards in equal runs over the
// databases, in their order. Databases that are added later hold nothing until a
// shard moves to them.
//
// The first map is published after the fences of its shards are made. So a
// database without the fence of a shard that the map says is there is another
// one, or an empty one in its place, and Open fails: with a shard in two
// databases a coupon would be redeemed in each. Likewise it fails where there is no
// map and a database has shards: the control database is another one. If it dies
// half-way the first time, it goes on where it was when it is called again.
func Open(ctx context.Context, o Options) (*Platform, error) {
	p := &Platform{}
	if err := p.open(ctx, o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Platform) open(ctx context.Context, o Options) error {
	control, err := p.add(ctx, o, o.Control)
	if err != nil {
		return err
	}
	if err := UpgradeControl(ctx, control); err != nil {
		return err
	}
	p.Control = NewControl(control)
	m, err := p.Control.Map(ctx)
	first := errors.Is(err, coupon.ErrNoRow)
	if err != nil && !first {
		return err
	}
	if first {
		o.Late = nil // the first map is for databases that are there
	}
	databases, names := map[string]shard.Database{}, []string(nil)
	for _, s := range o.Shards {
		if databases[s.Name] != nil {
			return fmt.Errorf("couponsql: two databases are named %q: give each a name of its own", s.Name)
		}
		if databases[s.Name], err = p.addShards(ctx, o, s); err != nil {
			return err
		}
		names = append(names, s.Name)
	}
	if first {
		if m, err = p.Control.firstMap(ctx, o, databases, names); err != nil {
			return err
		}
	}
	if o.Cluster.Reload == nil {
		o.Cluster.Reload = p.Control.Map
	}
	if p.Cluster, err = shard.New(m, databases, o.Cluster); err != nil {
		return err
	}
	p.Store = NewStore(p.Cluster)
	there := slices.DeleteFunc(m.Databases(), func(name string) bool { return isLate(databases[name]) })
	if err := prepare(ctx, o, m, databases, there); err != nil {
		return err
	}
	p.late.start(p.Cluster, o, databases)
	return nil
}

// prepare brings the tables of some databases up to date, if they are those that
// the map means.
func prepare(ctx context.Context, o Options, m shard.Map, databases map[string]shard.Database, names []string) error {
	for _, name := range names {
		for _, s := range m.On(name) {
			there, err := o.Fenced(ctx, databases[name], s)
			if err == nil && !there {
				err = fmt.Errorf("couponsql: database %s has never had shard %d, which the map says is there: "+
					"it is another database or an empty one in its place; correct where %s is, or restore it", name, s, name)
			}
			if err != nil {
				return err
			}
		}
	}
	return upgradeShards(ctx, m, databases, names)
}

// openTimeout bounds the opening of one database.
const openTimeout = 10 * time.Second

// add opens a database that Close closes.
func (p *Platform) add(ctx context.Context, o Options, s Source) (shard.Database, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	db, err := o.Open(ctx, s.At)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", s.Name, err)
	}
	p.opened = append(p.opened, db)
	return db, nil
}

// addShards opens a database of shards, now or, where that may be, later.
func (p *Platform) addShards(ctx context.Context, o Options, s Source) (shard.Database, error) {
	db, err := p.add(ctx, o, s)
	if o.Late != nil && errors.Is(err, shard.ErrUnavailable) {
		o.Late(s.Name, err)
		return &lateDatabase{source: s}, nil
	}
	return db, err
}

// Close closes all databases. Calls under way fail. Closed again it does nothing;
// it is not safe for concurrent use.
func (p *Platform) Close() error {
	err := p.late.close()
	for _, db := range p.opened {
		err = errors.Join(err, db.Close())
	}
	p.opened = nil
	return err
}
