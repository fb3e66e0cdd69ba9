package shardtest

import (
	"errors"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

func testOpenRows(t *testing.T, s Subject) {
	c := prepare(t, s)
	c.insert(t, 2, 0)
	all := shard.SQL("SELECT n FROM thing_#")
	for i := range 20 { // more than there are connections
		c.Read(t.Context(), seven, func(r *shard.Reader) error {
			rows, err := r.Query(all)
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			return nil
		})
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			if _, err := tx.Exec(add, 1, 1); err != nil {
				return err
			}
			rows, err := tx.Query(all)
			if err != nil {
				return err
			}
			rows.Next()
			if i%2 == 1 {
				return errors.New("rolled back")
			}
			return nil
		})
		if (err != nil) != (i%2 == 1) {
			t.Fatal(err)
		}
	}
	c.holds(t, 1, 10)
}

func testGone(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(shard.SQL("UPDATE elsewhere_# SET n = 1"))
		return err
	})
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("writing: %v, want ErrMoved", err)
	}
	err = c.Read(t.Context(), seven, func(r *shard.Reader) error {
		return r.QueryRow(shard.SQL("SELECT n FROM elsewhere_#")).Scan(new(int))
	})
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("reading: %v, want ErrMoved", err)
	}
}

func testControl(t *testing.T, s Subject) {
	c := prepare(t, s)
	ctx := t.Context()
	err := c.Database.Write(ctx, func(conn shard.Conn) error {
		if _, err := conn.ExecContext(ctx, "CREATE TABLE campaign (id BIGINT NOT NULL PRIMARY KEY)"); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "INSERT INTO campaign (id) VALUES (?)", 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var id int
	err = c.Database.Read(ctx, func(conn shard.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT id FROM campaign").Scan(&id)
	})
	if err != nil || id != 5 {
		t.Errorf("%d, %v", id, err)
	}
	err = c.Database.Read(ctx, func(conn shard.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT id FROM campaigns").Scan(&id)
	})
	if err == nil || errors.Is(err, shard.ErrMoved) {
		t.Errorf("a control table that is missing: %v", err)
	}
}
