package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/tallystick/tallystick/shard"
)

// A queue is statements of a transaction that wait for the next one, or for the
// COMMIT: the server gets them as one text, which is one round trip. It executes
// them in their order and stops at the first that fails, so that a COMMIT at the
// end never follows a failure.
type queue struct {
	text strings.Builder
	args []driver.NamedValue
	n    int
}

// What a queue holds at most. Whoever queues more waits for an answer in between.
const (
	queueTexts = 16
	queueBytes = 64 << 10 // of texts, without arguments
)

func (q *queue) full() bool { return q.n >= queueTexts || q.text.Len() >= queueBytes }

func (q *queue) add(text string, args []driver.NamedValue) {
	if q.n > 0 {
		q.text.WriteString("; ")
	}
	q.text.WriteString(text)
	for _, a := range args {
		a.Ordinal = len(q.args) + 1
		q.args = append(q.args, a)
	}
	q.n++
}

// with empties the queue and returns what it held and the text as one. together
// reports whether it held anything.
func (q *queue) with(text string, args []driver.NamedValue) (joined string, all []driver.NamedValue, together bool) {
	if q.n == 0 {
		return text, args, false
	}
	q.add(text, args)
	joined, all = q.text.String(), q.args
	q.drop()
	return joined, all, true
}

func (q *queue) drop() { *q = queue{} }

// errSkipped: the driver would prepare the text, which it can only for one
// statement.
var errSkipped = errors.New("shardsql: the arguments of these statements cannot be sent together")

// matched fails if the statement before it matched no row: the largest number there
// is and one more. A subquery with two rows would take the server 25 us, this 7.
const matched = "SET @matched = 9223372036854775807 + (ROW_COUNT() = 0)"

// wait queues a statement if its caller does not need the answer.
func (c *conn) wait(ctx context.Context, text string, args []driver.NamedValue) bool {
	if !c.guard.together || !c.inTx || c.queue.full() {
		return false
	}
	w := shard.WaitOf(ctx)
	if w == shard.ForAnswer {
		return false
	}
	c.queue.add(text, args)
	if w == shard.ForMatch {
		c.queue.add(matched, nil)
	}
	return true
}

// failed reads the error of a text that took queued statements with it. Nobody
// knows which of them failed, so the transaction is over.
func (c *conn) failed(err error) error {
	if err == driver.ErrSkip {
		err = errSkipped
	}
	if err = c.told(err); err != nil && c.over == nil {
		c.over = err
	}
	return err
}
