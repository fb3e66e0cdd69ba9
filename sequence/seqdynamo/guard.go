package seqdynamo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tallystick/tallystick/sequence"
)

const (
	identityInterval = 5 * time.Minute // how often the TableId is looked at
	never            = time.Duration(math.MaxInt64)
)

// A guard knows which table was opened, and refuses everything once it is
// another one.
type guard struct {
	table string // its name

	mu       sync.Mutex
	id       string    // of the table that was opened, as its content says
	adopting bool      // the TableId may be another
	checked  time.Time // when it was last compared
	suspect  bool      // the table was missing: it may come back as another
	refused  *sequence.Error
}

// open begins to guard a table whose content says id.
func (g *guard) open(id string, adopting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id, g.adopting, g.checked, g.suspect = id, adopting, time.Now(), false
}

func (g *guard) identity() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id
}

// missing notes that the table does not exist.
func (g *guard) missing() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspect = true
}

// refuse makes every call from now on fail with err, which it returns.
func (g *guard) refuse(err *sequence.Error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = err
	return err
}

// due reports whether the TableId must be compared because that was done
// longer ago than interval or the table was missing since. It fails once the
// table is refused.
func (g *guard) due(interval time.Duration) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused != nil {
		return false, g.refused
	}
	return g.suspect || time.Since(g.checked) > interval, nil
}

// compare compares a TableId, "" where the server has none, with what the
// content says.
func (g *guard) compare(tableID string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tableID != "" && tableID != g.id && !g.adopting {
		g.refused = anotherTable(g.table)
		return g.refused
	}
	g.checked, g.suspect = time.Now(), false
	return nil
}

// content compares what the content says now with what it said.
func (g *guard) content(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id != g.id {
		g.refused = adoptedTable(g.table)
		return g.refused
	}
	return nil
}

// sound returns an error if the table is not the one that was opened. It asks
// the server if that was done longer ago than interval, and whenever the table
// was missing in between.
func (s *Store) sound(ctx context.Context, interval time.Duration) error {
	due, err := s.guard.due(interval)
	if err != nil || !due {
		return err
	}
	table, err := s.describe(ctx)
	if err != nil {
		return err
	}
	return s.guard.compare(aws.ToString(table.TableId))
}

func anotherTable(table string) *sequence.Error {
	return &sequence.Error{Code: sequence.CodePrecondition,
		Message: fmt.Sprintf("table %q is not the one its content was written in: it was restored, copied or made again, and counters may have moved back", table),
		Remedy:  "run `tallystick seq adopt --skip N`, N being more than was handed out of any sequence since then"}
}

func adoptedTable(table string) *sequence.Error {
	return &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("table %q was replaced or adopted since it was opened", table),
		Remedy: "restart the server"}
}
