package migrate

// An outcome is what came of comparing one page.
type outcome struct {
	last     Key   // of the page
	compared int64 // rows
	suspects []suspect
}

// A frontier orders the outcomes of pages that are compared concurrently: up to
// it there is no gap.
type frontier struct {
	next  int // number of the first page that is not joined
	ahead map[int]outcome
}

// join adds the outcome of page n and returns those that now follow upon what
// was returned before, in their order.
func (f *frontier) join(n int, o outcome) (joined []outcome) {
	if f.ahead == nil {
		f.ahead = map[int]outcome{}
	}
	f.ahead[n] = o
	for {
		o, ok := f.ahead[f.next]
		if !ok {
			return joined
		}
		delete(f.ahead, f.next)
		f.next++
		joined = append(joined, o)
	}
}
