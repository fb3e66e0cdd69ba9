package migrate

import "context"

// An Unmended is a difference that a repair could not mend.
type Unmended struct {
	Key    Key    `json:"key"`
	Reason string `json:"reason"`
}

// repair brings one item to what the source has. It returns why it did not, ""
// if it did: a row that the sink can never hold stays as it is, and so does
// what has changed since it was looked at.
func (m *Migration) repair(ctx context.Context, l likeness, row *Row, stored Stored) (why string, err error) {
	w := m.sink.Writer()
	r, err := m.writing(ctx, func() (Result, error) {
		if l == extra {
			return w.Bury(ctx, stored)
		}
		return store(ctx, w, *row)
	})
	if err != nil {
		return "", err
	}
	return unmended(r), nil
}

// unmended returns why a write has not mended what it was for.
func unmended(r Result) string {
	switch r.Outcome {
	case Written, AlreadyOurs:
		return ""
	case Refused:
		return r.Reason
	case AlreadyNewer:
		return "the sink has a newer item or a tombstone in its place"
	}
	return "it is not known whether the write has arrived"
}

// store writes one row, over another of the same version too.
func store(ctx context.Context, w Writer, r Row) (Result, error) {
	results, err := w.Write(ctx, []Row{r})
	switch {
	case err != nil:
		return Result{}, err
	case results[0].Outcome == Unknown:
		return Result{}, ErrTransient
	case results[0].Outcome == Differs:
		return w.Replace(ctx, r)
	}
	return results[0], nil
}
