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

// flaw returns what makes the plan of a bounded range slower the larger the
// table is, "" if nothing does.
func (n planNode) flaw() string {
	return n.find(func(n planNode) string {
		if n.walks() && n.Cond == "" {
			return "reads all of index " + n.Index
		}
		return n.ownDetour()
	})
}

// detour returns what keeps a plan from following an index.
func (n planNode) detour() string { return n.find(planNode.ownDetour) }

func (n planNode) ownDetour() string {
	switch n.Type {
	case "Sort", "Incremental Sort":
		return "sorts"
	case "Seq Scan", "Bitmap Heap Scan":
		return "reads all of " + n.Relation
	}
	return ""
}

func (n planNode) walks() bool { return n.Type == "Index Scan" || n.Type == "Index Only Scan" }

// find returns the first text that f has for n or a step below it.
func (n planNode) find(f func(planNode) string) string {
	if text := f(n); text != "" {
		return text
	}
	for _, below := range n.Plans {
		if text := below.find(f); text != "" {
			return text
		}
	}
	return ""
}
