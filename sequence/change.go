package sequence

import "fmt"

// The changes of a record that an administrator makes. Each raises the
// definition's version, so that what servers and clients cached before is
// dropped, never served.

// recreated returns the record of a sequence that takes the place of the
// tombstone r. It continues beyond the values of r: at the first value of d, by
// its own steps from its start, that r has not handed out. With reuse it
// begins at its start.
func (r Record) recreated(d Definition, reuse bool, nonce string) (Record, error) {
	next := r
	next.Definition, next.State, next.Nonce = d, StateOpen, nonce
	next.Next, next.Exhausted = d.Start, false
	next.Epoch++
	next.Version++
	if reuse {
		return next, nil
	}
	if d.Descending() != r.Definition.Descending() {
		return r, reuses("increment", "a deleted sequence %q ran in the other direction", d.Name)
	}
	for r.issued(next.Next) {
		steps := distance(next.Next, r.Next) / magnitude(d.Increment)
		if v, ok := d.skip(next.Next, max(1, steps)); ok {
			next.Next = v
			continue
		}
		return r, reuses("start", "a deleted sequence %q has handed out every value of this one up to %d", d.Name, r.Next)
	}
	return next, nil
}

// altered returns r under what spec says. The counter stays where it is and
// has to lie within the new bounds.
func (r Record) altered(req AlterRequest, nonce string) (Record, error) {
	d, err := req.Spec.Apply(r.Definition)
	if err != nil {
		return r, err
	}
	if req.IfVersion != 0 && req.IfVersion != r.Version {
		return r, &Error{Code: CodeAborted, Field: "if_version", Remedy: "read it again and decide anew",
			Message: fmt.Sprintf("sequence %q has definition version %d, not %d", d.Name, r.Version, req.IfVersion)}
	}
	if r.Next < d.Min || r.Next > d.Max {
		return r, &Error{Code: CodePrecondition, Field: boundField(r.Next, d), Remedy: "choose bounds around it, or restart the sequence within them first",
			Message: fmt.Sprintf("the counter of sequence %q, %d, lies outside [%d, %d]", d.Name, r.Next, d.Min, d.Max)}
	}
	next := r
	next.Definition, next.Nonce = d, nonce
	next.Version++
	if d.Descending() != r.Definition.Descending() {
		if !req.ReuseValues {
			return r, reuses("increment", "sequence %q would run back over values it handed out", d.Name)
		}
		next.Epoch++
		next.Exhausted = false
		return next, nil
	}
	if r.Exhausted { // there may be room again
		if v, ok := d.skip(r.Next, 1); ok {
			next.Next, next.Exhausted = v, false
		}
	}
	return next, nil
}

func boundField(v int64, d Definition) string {
	if v < d.Min {
		return "min"
	}
	return "max"
}

// restarted returns r with its counter at the value req says.
func (r Record) restarted(req RestartRequest, nonce string) (Record, error) {
	d := r.Definition
	with := value(req.With, d.Start)
	if with < d.Min || with > d.Max {
		return r, invalid("with", "choose a value within the bounds", "%d lies outside [%d, %d]", with, d.Min, d.Max)
	}
	next := r
	next.Next, next.Exhausted, next.Nonce = with, false, nonce
	next.Version++
	if r.issued(with) {
		if !req.ReuseValues {
			return r, reuses("with", "sequence %q has handed out %d already", d.Name, with)
		}
		next.Epoch++
	}
	return next, nil
}

// deleted returns the tombstone of r.
func (r Record) deleted(nonce string) Record {
	r.State, r.Nonce = StateDeleted, nonce
	r.Version++
	return r
}

// skipped returns r with its counter moved n values on, laps included: what is
// needed when the store may have lost the newest of its writes. Where nothing
// is left that could be handed out twice it returns r itself.
func (r Record) skipped(n int64, nonce string) Record {
	block, next, err := r.Take(n, nonce)
	if err != nil {
		return r
	}
	if left := n - block.Count; left > 0 && next.Definition.Cycle {
		next = next.skippedLaps(left, nonce)
	}
	next.Version += forgotten
	return next
}

// forgotten is how many versions more than it knows a restored store passes
// over: clients refuse leases of a version before the newest they have seen.
const forgotten = 10_000

// skippedLaps returns r, which is at the end of a lap and cycles, moved n
// values on, 1 or more: each whole lap is an epoch.
func (r Record) skippedLaps(n int64, nonce string) Record {
	last := uint64(n - 1) // counted from 0, as the steps of a lap are, which may be 2^64 values
	steps := r.Definition.stepsFrom(r.Definition.first())
	if last > steps {
		r.Epoch += last / (steps + 1)
		last %= steps + 1
	}
	_, r, _ = r.Take(int64(last)+1, nonce)
	return r
}

// reuses returns the error of a change that would hand values out again.
func reuses(field, format string, args ...any) *Error {
	return &Error{Code: CodePrecondition, Field: field, Message: fmt.Sprintf(format, args...),
		Remedy: "to hand values out again in a new epoch, add --reuse-values; clients may repeat values they cached"}
}
