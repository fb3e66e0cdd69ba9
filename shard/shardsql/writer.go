package shardsql

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A writer is the one goroutine that writes a file.
type writer struct {
	db    *sql.DB // of one connection
	max   int     // transactions a commit carries
	turns chan *turn
	stop  chan struct{}
	ended chan struct{}
}

// groupTime is how long a group takes in more. It ends the group that slow
// functions would keep open; those that have had their turn wait for the commit.
const groupTime = 10 * time.Millisecond

func newWriter(db *sql.DB, max int) *writer {
	w := &writer{db: db, max: max, turns: make(chan *turn), stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *writer) close() error {
	close(w.stop)
	<-w.ended
	return w.db.Close()
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.stop:
			return
		case first := <-w.turns:
			w.group(first)
		}
	}
}

// do runs fn in a transaction.
func (w *writer) do(ctx context.Context, fn func(shard.Conn) error) error {
	t := newTurn(ctx)
	select {
	case w.turns <- t:
	case <-w.ended:
		return fmt.Errorf("%w: it is closed", shard.ErrUnavailable)
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
	tx, err := t.await()
	if err != nil {
		return err
	}
	if err := t.run(tx, fn); err != nil {
		return t.refused(err)
	}
	return t.outcome()
}

// group runs the first and those that wait in one transaction and tells each how
// it ended.
func (w *writer) group(first *turn) {
	if first.ctx.Err() != nil {
		first.out <- unavailable(context.Cause(first.ctx))
		return
	}
	tx, err := w.db.BeginTx(context.Background(), nil)
	if err != nil {
		first.out <- err
		return
	}
	defer tx.Rollback()
	var in []*turn
	begin := time.Now()
	for t := first; t != nil && err == nil; t = w.next(len(in), begin) {
		var stays bool
		if stays, err = member(tx, t, len(in) > 0); stays {
			in = append(in, t)
		}
	}
	if err == nil && len(in) > 0 {
		err = tx.Commit()
	}
	for _, t := range in {
		t.out <- err
	}
}

// next returns a further turn for the group, if one waits and there is room.
func (w *writer) next(in int, begin time.Time) *turn {
	if in >= w.max || time.Since(begin) > groupTime {
		return nil
	}
	select {
	case t := <-w.turns:
		return t
	default:
		return nil
	}
}

// member gives t the floor within a savepoint. It returns whether t waits for the
// commit; an error is the end of the whole transaction. A function that failed
// waits too where others have written before it: it has seen that, and its caller
// must not know of what may never be.
func member(tx *sql.Tx, t *turn, others bool) (stays bool, err error) {
	if !t.taken.CompareAndSwap(false, true) {
		return false, nil // it went away
	}
	if _, err := tx.Exec("SAVEPOINT turn"); err != nil {
		t.out <- err
		return false, err
	}
	t.floor <- tx
	stays = true
	if err := <-t.done; err != nil {
		if _, err := tx.Exec("ROLLBACK TO turn"); err != nil {
			return true, err
		}
		stays = others
	}
	if _, err := tx.Exec("RELEASE turn"); err != nil {
		return true, err
	}
	if !stays {
		t.out <- nil
	}
	return stays, nil
}
