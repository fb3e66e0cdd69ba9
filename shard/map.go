package shard

import (
	"errors"
	"fmt"
	"slices"
)

// A Map says where each shard is. A map with a greater version takes the place
// of one with a smaller.
type Map struct {
	Version uint64
	Shards  [Count]Place
}

// A Place is where a shard is. The epoch grows with each move.
type Place struct {
	Database string
	Epoch    uint64
}

// Spread returns a first map: the shards in equal runs over the databases, which
// keeps neighbours together. Their number has to be 1 to 32.
func Spread(databases ...string) (Map, error) {
	if len(databases) == 0 || len(databases) > Count {
		return Map{}, fmt.Errorf("shard: %d databases for %d shards: name 1 to %[2]d", len(databases), Count)
	}
	m := Map{Version: 1}
	for s := range m.Shards {
		m.Shards[s] = Place{Database: databases[s*len(databases)/Count], Epoch: 1}
	}
	return m, nil
}

// Validate reports what is wrong with the map.
func (m Map) Validate() error {
	if m.Version == 0 {
		return errors.New("shard: a map needs a version of at least 1")
	}
	for s, p := range m.Shards {
		if p.Database == "" || p.Epoch == 0 {
			return fmt.Errorf("shard: shard %d has no database or no epoch", s)
		}
	}
	return nil
}

// Databases returns the names of all databases, sorted.
func (m Map) Databases() []string {
	var names []string
	for _, p := range m.Shards {
		names = append(names, p.Database)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// On returns the shards that are in a database, rising.
func (m Map) On(database string) []Shard {
	var on []Shard
	for s, p := range m.Shards {
		if p.Database == database {
			on = append(on, Shard(s))
		}
	}
	return on
}
