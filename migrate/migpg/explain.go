package migpg

import (
	"context"
	stdjson "encoding/json"
)

// A planNode is a step of a query's plan, as EXPLAIN prints it.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Cond     string     `json:"Index Cond"`
	Rows     int64      `json:"Plan Rows"`
	Width    int64      `json:"Plan Width"`
	Plans    []planNode `json:"Plans"`
}

// explain returns how a query would be run.
func (s *Source) explain(ctx context.Context, q query) (planNode, error) {
	var text []byte
	if err := s.pool.QueryRow(ctx, "explain (format json) "+q.sql, q.args...).Scan(&text); err != nil {
		return planNode{}, failed("explain", err)
	}
	var plans []struct{ Plan planNode }
	if err := stdjson.Unmarshal(text, &plans); err != nil || len(plans) == 0 {
		return planNode{}, failed("explain", &rowError{"plan", err})
	}
	return plans[0].Plan, nil
}

// flaw returns what makes a plan slower the larger the table is, "" if nothing
// does.
func (n planNode) flaw() string {
	switch n.Type {
	case "Sort", "Incremental Sort":
		return "sorts"
	case "Seq Scan", "Bitmap Heap Scan", "Parallel Seq Scan":
		return "reads all of " + n.Relation
	case "Index Scan", "Index Only Scan":
		if n.Cond == "" {
			return "reads all of index " + n.Index
		}
	}
	for _, below := range n.Plans {
		if f := below.flaw(); f != "" {
			return f
		}
	}
	return ""
}
