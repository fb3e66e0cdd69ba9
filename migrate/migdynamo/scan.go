package migdynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tallystick/tallystick/migrate"
)

// Scan implements [migrate.Sink]: segments side by side, each a page of up to
// 1 MB at a time. Where it is resumed from a position, parts that were visited
// just before may come again.
func (s *Sink) Scan(ctx context.Context, position string, visit func([]migrate.Stored, string) error) error {
	marks, err := parseMarks(position, s.segments)
	if err != nil {
		return fmt.Errorf("migdynamo: %w", err)
	}
	p := progress{marks: marks}
	err = each(ctx, len(marks), len(marks), func(ctx context.Context, n int) error { return s.scanSegment(ctx, &p, n, visit) })
	if err != nil {
		return fmt.Errorf("migdynamo: scan %q: %w", s.table, err)
	}
	return nil
}

func (s *Sink) scanSegment(ctx context.Context, p *progress, n int, visit func([]migrate.Stored, string) error) error {
	for m := p.mark(n); !m.Done; {
		in := &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true),
			Segment: aws.Int32(int32(n)), TotalSegments: aws.Int32(int32(len(p.marks)))}
		if m.After != "" {
			key, err := s.schema.parseRef(m.After)
			if err != nil {
				return err
			}
			in.ExclusiveStartKey = key
		}
		out, err := do(ctx, s.newCall(0), (*dynamodb.Client).Scan, in)
		if err != nil {
			return err
		}
		if m, err = s.markAfter(out); err != nil {
			return err
		}
		if err := p.visit(n, m, s.allStored(out.Items), visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) markAfter(out *dynamodb.ScanOutput) (mark, error) {
	if len(out.LastEvaluatedKey) == 0 {
		return mark{Done: true}, nil
	}
	ref, err := s.schema.ref(out.LastEvaluatedKey)
	return mark{After: ref}, err
}

func (s *Sink) allStored(items []item) []migrate.Stored {
	all := make([]migrate.Stored, len(items))
	for n, i := range items {
		all[n] = s.stored(i)
	}
	return all
}

// A mark is how far a segment was visited.
type mark struct {
	After string `json:"after,omitempty"` // ref of the last item; "": none
	Done  bool   `json:"done,omitempty"`
}

// progress is how far all segments were visited.
type progress struct {
	mu    sync.Mutex
	marks []mark
}

func (p *progress) mark(n int) mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks[n]
}

// visit visits a part of segment n, which ends at m. The position it tells has
// of other segments only what was visited.
func (p *progress) visit(n int, m mark, items []migrate.Stored, visit func([]migrate.Stored, string) error) error {
	if err := visit(items, p.position(n, m)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks[n] = m
	return nil
}

// position returns the position with segment n at m.
func (p *progress) position(n int, m mark) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append([]mark(nil), p.marks...)
	all[n] = m
	text, _ := json.Marshal(all) // of texts and booleans: cannot fail
	return string(text)
}

// parseMarks reads a position: as many segments as it has, or fresh ones.
func parseMarks(position string, segments int) ([]mark, error) {
	if position == "" {
		return make([]mark, segments), nil
	}
	var marks []mark
	if err := json.Unmarshal([]byte(position), &marks); err != nil || len(marks) == 0 {
		return nil, fmt.Errorf("%.50q is no position of a scan", position)
	}
	return marks, nil
}
