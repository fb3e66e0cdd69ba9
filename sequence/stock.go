package sequence

import "slices"

// maxLeftOver is how many runs a stock keeps beside its newest: parts of
// blocks that some client's floor skipped, and returned ends of leases.
const maxLeftOver = 4

// A stock is what a server holds of one sequence and has not granted: disjoint
// runs in the order to grant them, neighbours joined. Not safe for concurrent
// use.
type stock struct {
	pieces []piece
	count  int64 // values in all pieces
}

// A piece is a run of one epoch.
type piece struct {
	Run
	epoch uint64
}

// add puts a run into the stock. It returns how many values it dropped so as
// to keep no more runs than it may: those of the oldest.
func (s *stock) add(run Run, epoch uint64) (burned int64) {
	if run.Count == 0 {
		return 0
	}
	at, _ := slices.BinarySearchFunc(s.pieces, piece{run, epoch}, piece.compare)
	s.pieces = slices.Insert(s.pieces, at, piece{run, epoch})
	s.count += run.Count
	s.join(at)
	s.join(at - 1)
	return s.trim()
}

// compare orders pieces as they are to be granted.
func (p piece) compare(q piece) int {
	switch {
	case p.epoch != q.epoch:
		return order(p.epoch < q.epoch)
	case p.First == q.First:
		return 0
	}
	return order((p.First < q.First) == (p.Step > 0))
}

func order(before bool) int {
	if before {
		return -1
	}
	return 1
}

// join makes one piece of those at i and i+1, if the second continues the
// first.
func (s *stock) join(i int) {
	if i < 0 || i+1 >= len(s.pieces) {
		return
	}
	a, b := s.pieces[i], s.pieces[i+1]
	if a.epoch == b.epoch && a.joins(b.Run) {
		s.pieces[i].Count += b.Count
		s.pieces = slices.Delete(s.pieces, i+1, i+2)
	}
}

// take removes up to n values of one epoch that lie beyond floor and returns
// them in order; none if there are none. Values of an epoch before that of the
// floor do not lie beyond it, those of a later one do. A floor that falls into
// a run leaves what is not beyond it for others, which may drop the oldest run:
// burned counts its values.
func (s *stock) take(n int64, floor *Floor) (runs []Run, epoch uint64, burned int64) {
	for i := 0; i < len(s.pieces) && n > 0; {
		p := s.pieces[i]
		if runs != nil && p.epoch != epoch {
			break
		}
		skipped := int64(0)
		switch {
		case floor == nil:
		case p.epoch < floor.Epoch:
			skipped = p.Count
		case p.epoch == floor.Epoch:
			skipped = p.upTo(floor.Last)
		}
		if skipped == p.Count {
			i++
			continue
		}
		before, open := p.split(skipped)
		granted, after := open.split(min(n, open.Count))
		runs, epoch = appendRun(runs, granted), p.epoch
		n -= granted.Count
		s.count -= granted.Count
		i = s.replace(i, before, after)
	}
	return runs, epoch, s.trim()
}

// replace puts what is left of piece i in its place and returns the index
// after it.
func (s *stock) replace(i int, left ...Run) int {
	epoch := s.pieces[i].epoch
	s.pieces = slices.Delete(s.pieces, i, i+1)
	for _, r := range left {
		if r.Count > 0 {
			s.pieces = slices.Insert(s.pieces, i, piece{r, epoch})
			i++
		}
	}
	return i
}

// trim drops the oldest runs beyond the limit and counts their values.
func (s *stock) trim() (burned int64) {
	for len(s.pieces) > 1+maxLeftOver {
		burned += s.pieces[0].Count
		s.count -= s.pieces[0].Count
		s.pieces = slices.Delete(s.pieces, 0, 1)
	}
	return burned
}

// drop empties the stock and counts what it held.
func (s *stock) drop() int64 {
	n := s.count
	s.pieces, s.count = nil, 0
	return n
}

// tail removes and returns the run that ends where r's counter stands: the one
// that can be given back by moving the counter to its first value.
func (s *stock) tail(r Record) Run {
	for i, p := range s.pieces {
		last := p.Last()
		if p.epoch != r.Epoch || p.Step != r.Definition.Increment {
			continue
		}
		if r.Exhausted && last == r.Next || !r.Exhausted && follows(last, p.Step, r.Next) {
			s.pieces = slices.Delete(s.pieces, i, i+1)
			s.count -= p.Count
			return p.Run
		}
	}
	return Run{}
}

// appendRun appends r, as part of the last run where it continues that.
func appendRun(runs []Run, r Run) []Run {
	if n := len(runs); n > 0 && runs[n-1].joins(r) {
		runs[n-1].Count += r.Count
		return runs
	}
	return append(runs, r)
}

// suffix returns the values of runs from position from on.
func suffix(runs []Run, from int64) []Run {
	for i, r := range runs {
		if from < r.Count {
			_, tail := r.split(from)
			return append([]Run{tail}, runs[i+1:]...)
		}
		from -= r.Count
	}
	return nil
}
