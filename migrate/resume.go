package migrate

import (
	"context"
	"time"
)

// A Resumption is where a verification goes on that was begun before.
type Resumption struct {
	Compared int64     // rows compared before
	Rows     int64     // estimate of all rows; at least Compared
	Since    time.Time // when it was begun
}

// Percent returns how much of the rows was compared before.
func (r Resumption) Percent() int64 { return 100 * r.Compared / max(1, r.Rows) }

// begin begins anew, or goes on from the mark if there is one that holds.
func (v *verification) begin(ctx context.Context) error {
	fresh := Mark{Plan: v.record.Hash, Generation: v.generation, Aside: asideOf(v.aside), Began: v.began}
	v.marks = &marker{m: v.m, mark: fresh, began: v.began, since: time.Now()}
	if v.o.Only != nil {
		return nil
	}
	last, _, err := v.m.state.Verdict(ctx)
	if err != nil {
		return err
	}
	v.marks.verifier = v.verifier
	was, found, err := v.m.state.TakeMark(ctx, v.verifier)
	switch {
	case err != nil:
		return err
	case found && !v.o.Restart && was.continues(fresh, last):
		v.goOn(was)
		return nil
	}
	return v.marks.save(ctx, true)
}

// goOn takes over what was compared before.
func (v *verification) goOn(m Mark) {
	v.marks.mark = m
	v.began, v.compared, v.found.Resumed = m.Began, m.Compared, m.Compared
	for _, s := range m.Suspects {
		v.suspects = append(v.suspects, suspect{key: s.Key, stored: Stored{Key: s.Key, Ref: s.Ref}, scanned: s.Scanned})
	}
	if v.o.Resumed != nil {
		v.o.Resumed(Resumption{Compared: m.Compared, Rows: max(v.record.Rows, m.Compared), Since: m.Began})
	}
}
