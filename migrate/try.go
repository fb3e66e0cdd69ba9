package migrate

import (
	"context"
	"fmt"
)

// Try copies up to maxRows rows of one slot, or of the first slots in the order
// of the walk where only is nil, and returns what became of them. It records
// nothing: the run that follows copies them again, which the mode makes
// harmless. Rows that cannot be stored are returned with their reasons.
func (m *Migration) Try(ctx context.Context, only *Slot, maxRows int64) (Counts, []Quarantined, error) {
	v, err := m.view(ctx)
	if err != nil {
		return Counts{}, nil, err
	}
	record, err := m.surveyed(ctx, v.Plan)
	if err != nil {
		return Counts{}, nil, err
	}
	r := Range{Hi: m.axis.Bound(record.Slots.Hi)}
	if m.plan.Oldest() {
		r = Range{}
	}
	if only != nil {
		r = m.axis.Range(*only, record.Slots)
	}
	var total Counts
	var refused []Quarantined
	w := m.sink.Writer()
	for after := Key(nil); maxRows == 0 || total.Read < maxRows; {
		limit := m.plan.PageRows
		if maxRows > 0 {
			limit = int(min(int64(limit), maxRows-total.Read))
		}
		page, err := m.source.Page(ctx, r, after, limit, pageBytes)
		if err != nil {
			return total, refused, fmt.Errorf("read a page: %w", err)
		}
		if len(page.Rows) > 0 {
			b := m.newBatch(page.Rows)
			if err := m.deliver(unheld(ctx), w, b); err != nil {
				return total, refused, err
			}
			total, refused = total.Plus(b.counts), append(refused, b.refused...)
			after = page.Rows[len(page.Rows)-1].Key
		}
		if page.End {
			break
		}
	}
	return total, refused, nil
}
