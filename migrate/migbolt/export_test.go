package migbolt

import (
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/migrate"
)

// OpenUnsynced is Open without fsync, for tests that open many files.
func OpenUnsynced(path string, axis migrate.Axis) (*State, error) { return open(path, axis, true) }

// Contents returns everything in the file.
func (s *State) Contents() map[string]string {
	all := map[string]string{}
	s.store.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			all[string(k)] = string(v)
			return nil
		})
	})
	return all
}

// Replace puts contents in the place of everything in the file.
func (s *State) Replace(contents map[string]string) error {
	return s.store.db.Update(func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(bucket); err != nil {
			return err
		}
		b, err := tx.CreateBucket(bucket)
		for k, v := range contents {
			if err == nil {
				err = b.Put([]byte(k), []byte(v))
			}
		}
		if err != nil {
			return err
		}
		c, err := recount(b)
		return errors.Join(err, tx.Bucket(metaBucket).Put(keyCensus, []byte(c.String())))
	})
}
