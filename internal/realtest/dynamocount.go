package realtest

import "sync"

// counts holds how many requests came, by operation and table.
type counts struct {
	mu sync.Mutex
	by map[operation]int
}

// An operation is what a request does to which table; either may be "", which
// is any.
type operation struct{ name, table string }

// add counts r, once for each combination that [counts.of] may be asked for,
// and returns how many there were of its operation and first table.
func (c *counts) add(r DynamoRequest) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[operation]int{}
	}
	c.by[operation{}]++
	c.by[operation{name: r.Operation}]++
	for _, table := range r.Tables {
		c.by[operation{table: table}]++
		c.by[operation{r.Operation, table}]++
	}
	return c.by[operation{r.Operation, r.Table()}]
}

func (c *counts) of(name, table string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[operation{name, table}]
}

func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.by)
}
