package board

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// How a claim ended.
const (
	byFinish  = "finished "
	byRelease = "released "
)

// endedKept is how many epochs the end of a claim is remembered for, so that a
// call whose reply was lost can be repeated.
const endedKept = 1024

// Finish implements [migrate.Board]. It can be repeated.
func (s *State) Finish(ctx context.Context, c migrate.Claim, p migrate.Progress, empty migrate.Span) error {
	if err := s.open(); err != nil {
		return wrap("finish", err)
	}
	return s.update(ctx, "finish "+s.axis.Name(c.Slot), func(b *board) error {
		if b.ended(c, byFinish) {
			return nil
		}
		e, err := b.holding(c)
		if err != nil {
			return err
		}
		if p.Lo != nil && !p.Lo.Equal(e.Progress.Lo) {
			return behind("its end")
		}
		if err := e.advance(p); err != nil {
			return err
		}
		return b.finish(s.axis, c, e, empty)
	})
}

// finish records e as finished.
func (b *board) finish(axis migrate.Axis, c migrate.Claim, e *entry, empty migrate.Span) error {
	all, err := b.entries()
	if err != nil {
		return err
	}
	empty = Intersect(empty, b.span(c.Pass))
	beside := b.finishEmpty(c, all, empty)
	b.header.Counts = b.header.Counts.Plus(e.Progress.Counts)
	b.header.Lines++
	line := migrate.LedgerLine{Number: b.header.Lines, Pass: c.Pass, Slot: axis.Name(c.Slot), Empty: beside, Counts: e.Progress.Counts,
		Digest: e.Progress.Digest.String(), Worker: e.Holder.Worker, Epoch: c.Epoch, Plan: b.plan.Hash, At: b.now.UTC()}
	if err := b.put(ledgerKey(line.Number), line); err != nil {
		return err
	}
	b.end(c, byFinish)
	return b.close(e, all)
}

// finishEmpty finishes the indexes of span that nobody works on, and returns
// how many there are beside c's own.
func (b *board) finishEmpty(c migrate.Claim, all []*entry, span migrate.Span) (n int64) {
	taken := map[int64]bool{c.Slot.Index: true}
	for _, e := range all {
		switch {
		case e.Pass != c.Pass || e.Slot.Index < span.Lo || e.Slot.Index >= span.Hi:
		case e.empty(b.now):
			b.tx.Delete(e.key()) // its worker died before it had done anything
		default:
			taken[e.Slot.Index] = true
		}
	}
	for _, part := range Without(span, taken) {
		b.add(c.Pass, part)
		n += max(0, part.Hi-part.Lo)
	}
	return n
}

func (b *board) add(p migrate.Pass, x migrate.Span) {
	if b.header.Finished == nil {
		b.header.Finished = map[migrate.Pass]Spans{}
	}
	b.header.Finished[p] = b.header.Finished[p].Add(x)
}

// close marks e as done. Its index is finished once all its pieces are.
func (b *board) close(e *entry, all []*entry) error {
	var pieces []string
	for _, o := range all {
		if o.Pass != e.Pass || o.Slot.Index != e.Slot.Index {
			continue
		}
		if o.key() != e.key() && o.Split && !o.Done {
			e.Split, e.Done, e.Holder = true, true, holder{}
			return b.put(e.key(), e)
		}
		pieces = append(pieces, o.key())
	}
	for _, key := range pieces {
		b.tx.Delete(key)
	}
	b.add(e.Pass, migrate.Span{Lo: e.Slot.Index, Hi: e.Slot.Index + 1})
	return nil
}

// Release implements [migrate.Board]. It can be repeated.
func (s *State) Release(ctx context.Context, c migrate.Claim) error {
	if err := s.open(); err != nil {
		return wrap("release", err)
	}
	return s.update(ctx, "release "+s.axis.Name(c.Slot), func(b *board) error {
		if b.ended(c, byRelease) {
			return nil
		}
		e, err := b.holding(c)
		if err != nil {
			return err
		}
		b.end(c, byRelease)
		e.Holder = holder{}
		if e.empty(b.now) {
			b.tx.Delete(e.key())
			return nil
		}
		return b.put(e.key(), e)
	})
}

// ended reports whether c ended already, by how.
func (b *board) ended(c migrate.Claim, how string) bool {
	return string(b.tx.Get(endedKey(c.Epoch))) == how+c.Token
}

// end remembers how c ended and forgets ends of long ago.
func (b *board) end(c migrate.Claim, how string) {
	b.tx.Put(endedKey(c.Epoch), []byte(how+c.Token))
	var old []string
	b.tx.Each(endedKeys, endedKeys, func(key string, _ []byte) bool {
		if b.header.Epoch < endedKept || key >= endedKey(b.header.Epoch-endedKept) {
			return false
		}
		old = append(old, key)
		return true
	})
	for _, key := range old {
		b.tx.Delete(key)
	}
}

func endedKey(epoch uint64) string  { return fmt.Sprintf("%s%016x", endedKeys, epoch) }
func ledgerKey(number int64) string { return fmt.Sprintf("%s%016x", ledgerKeys, number) }
