package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// copySlot copies the rows of a claimed slot, page by page, from where it was
// saved.
//
// If the process dies after a page was written and before it was saved, those
// rows are written again, which the mode makes harmless; after the save,
// nothing of it is repeated; before Finish, one empty page is read again.
func (m *Migration) copySlot(h *hold, c Claim, k walk, w Writer) error {
	r := m.axis.Range(c.Slot, k.all)
	p := c.Progress
	for {
		page, err := m.readPage(h, cut(r, p), p.Last)
		if err != nil {
			return err
		}
		if p, err = m.writePage(h, c, w, p, page.Rows); err != nil {
			return err
		}
		if page.End {
			return m.try(h, func() error { return m.state.Finish(h, c, p, Span{c.Slot.Index, c.Slot.Index}) })
		}
		wanted, err := m.save(h, c, p)
		if err != nil {
			return err
		}
		if wanted {
			if p, err = m.divide(h, c, r, p); err != nil {
				return err
			}
		}
	}
}

// save records progress; a call that went wrong may be repeated.
func (m *Migration) save(h *hold, c Claim, p Progress) (wanted bool, err error) {
	var sent time.Time
	err = m.try(h, func() (err error) {
		sent = time.Now()
		wanted, err = m.state.Save(h, c, p)
		return err
	})
	if err == nil {
		h.prolong(sent, c.TTL)
		h.advanced()
	}
	return wanted, err
}

// cut returns r less what was split off.
func cut(r Range, p Progress) Range {
	if p.Lo != nil {
		r.Lo = p.Lo
	}
	return r
}

func (m *Migration) readPage(h *hold, r Range, after Key) (page Page, err error) {
	err = m.try(h, func() (err error) {
		page, err = m.source.Page(h, r, after, m.plan.PageRows, pageBytes)
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("read a page: %w", err)
	}
	return page, m.pace(h, len(page.Rows))
}

// writePage writes rows and returns the progress with them.
func (m *Migration) writePage(h *hold, c Claim, w Writer, p Progress, rows []Row) (Progress, error) {
	if len(rows) == 0 {
		return p, nil
	}
	b := m.newBatch(rows)
	if err := m.deliver(h, w, b); err != nil {
		return p, err
	}
	if len(b.refused) > 0 {
		if err := m.quarantine(h, c, b); err != nil {
			return p, err
		}
	}
	p.Counts = p.Counts.Plus(b.counts)
	p.Digest = p.Digest.Plus(b.digest)
	p.Last = rows[len(rows)-1].Key
	return p, nil
}

// deliver writes a batch until each row has its final outcome. It gives up when
// nothing was acknowledged as often in a row as the plan has delays, and once
// more.
func (m *Migration) deliver(h *hold, w Writer, b *batch) error {
	for failures := 0; len(b.left) > 0; {
		left := len(b.left)
		err := m.sendPart(h, w, b)
		switch {
		case err != nil && !errors.Is(err, ErrTransient):
			return fmt.Errorf("write a page: %w", err)
		case len(b.left) < left:
			h.advanced()
			failures = 0
		case failures == len(m.plan.Retry.Delays):
			return fmt.Errorf("write a page: %d rows are not acknowledged: %w", left, err)
		default:
			failures++
		}
		if err != nil && failures > 0 {
			if err := sleep(h, time.Duration(m.plan.Retry.Delays[failures-1])); err != nil {
				return err
			}
		}
	}
	return m.settleDifferences(h, w, b)
}

// sendPart writes as much of a batch as there is time for before h counts as
// stalled. Where the sink is slow, that is not all of it.
func (m *Migration) sendPart(h *hold, w Writer, b *batch) error {
	ctx, cancel := h.part(time.Duration(m.plan.State.StallTimeout) / 2)
	defer cancel()
	err := b.send(ctx, w)
	if err != nil && ctx.Err() != nil && h.Err() == nil {
		err = ErrTransient
	}
	return err
}

// A batch is a page on its way into the sink.
type batch struct {
	left    []Row // not acknowledged yet
	differs []Row // the sink has the same version with other content
	refused []Quarantined
	counts  Counts
	digest  Digest
}

// newBatch maps rows and sets aside those that can never be stored.
func (m *Migration) newBatch(rows []Row) *batch {
	b := &batch{left: make([]Row, 0, len(rows))}
	for _, r := range rows {
		b.counts.Read++
		b.counts.Bytes += int64(r.Data())
		mapped, err := m.mapping(r)
		var expected Stored
		if err == nil {
			expected, err = m.sink.Expect(mapped)
		}
		if err != nil {
			b.refuse(r.Key, err.Error())
			continue
		}
		b.digest = b.digest.Plus(expected.Digest)
		b.left = append(b.left, mapped)
	}
	return b
}

func (b *batch) refuse(k Key, reason string) {
	b.counts.Quarantined++
	b.refused = append(b.refused, Quarantined{Key: k, Reason: reason})
}

// send writes what is left and sorts it by what became of it.
func (b *batch) send(ctx context.Context, w Writer) error {
	results, err := w.Write(ctx, b.left)
	var left []Row
	for i, r := range b.left {
		outcome := Result{}
		if i < len(results) {
			outcome = results[i]
		}
		switch outcome.Outcome {
		case Unknown:
			left = append(left, r)
		case Differs:
			b.differs = append(b.differs, r)
		default:
			b.count(r, outcome)
		}
	}
	b.left = left
	if err == nil && len(left) > 0 {
		err = ErrTransient
	}
	return err
}

// count counts an outcome that is final.
func (b *batch) count(r Row, res Result) {
	switch res.Outcome {
	case Written:
		b.counts.Written++
	case AlreadyNewer:
		b.counts.AlreadyNewer++
	case AlreadyOurs:
		b.counts.AlreadyOurs++
	case Refused:
		b.refuse(r.Key, res.Reason)
	}
}

// settleDifferences deals with rows of which the sink has the same version
// with other content: each is read again under a lock, so that no update is
// under way, and written on condition of that version.
func (m *Migration) settleDifferences(h *hold, w Writer, b *batch) error {
	for _, r := range b.differs {
		res, err := m.overwriteSame(h, w, r.Key)
		if err != nil {
			return fmt.Errorf("settle row %s: %w", r.Key, err)
		}
		b.count(r, res)
		h.advanced()
	}
	b.differs = nil
	return nil
}

// overwriteSame writes the source's present row of k where the sink has the
// same version of it, or an older one.
func (m *Migration) overwriteSame(ctx context.Context, w Writer, k Key) (Result, error) {
	rows, err := m.source.Get(ctx, []Key{k}, true)
	if err != nil {
		return Result{}, err
	}
	if len(rows) == 0 { // deleted meanwhile; the double-writer leaves a tombstone
		return Result{Outcome: AlreadyNewer}, nil
	}
	row, err := m.mapping(rows[0])
	if err != nil {
		return Result{Outcome: Refused, Reason: err.Error()}, nil
	}
	results, err := w.Write(ctx, []Row{row})
	if err != nil {
		return Result{}, err
	}
	if results[0].Outcome != Differs {
		return results[0], nil
	}
	return w.Replace(ctx, row)
}

// quarantine records rows that can never be stored.
func (m *Migration) quarantine(h *hold, c Claim, b *batch) error {
	for i := range b.refused {
		b.refused[i].Slot, b.refused[i].At = m.axis.Name(c.Slot), time.Now().UTC()
		m.log.Warn("row in quarantine", "key", b.refused[i].Key.String(), "reason", b.refused[i].Reason)
	}
	return m.try(h, func() error { return m.state.Quarantine(h, c, b.refused) })
}

// divide gives the far part of a slot to an idle worker, if it is worth it: the
// owner cuts it at a key beyond everything it has read. Slots that are walked
// oldest first are not shared: what is left of one lies above, where a part has
// no name.
func (m *Migration) divide(h *hold, c Claim, r Range, p Progress) (Progress, error) {
	if m.plan.Oldest() {
		return p, nil
	}
	at, ok, err := m.source.Split(h, cut(r, p), p.Last)
	if err != nil || !ok {
		if errors.Is(err, ErrTransient) {
			err = nil // it is wanted again
		}
		return p, err
	}
	rest, begin := Slot{Index: c.Slot.Index, Below: at}, Progress{Lo: p.Lo}
	p.Lo = at
	if err := m.try(h, func() error { return m.state.Split(h, c, p, rest, begin) }); err != nil {
		return p, err
	}
	m.log.Info("slot split", "slot", m.axis.Name(c.Slot), "rest", m.axis.Name(rest))
	return p, nil
}
