package migrate

import "context"

// repair brings one item to what the source has. A row that the sink can never
// hold stays as it is.
func (m *Migration) repair(ctx context.Context, l likeness, row *Row, stored Stored) error {
	w := m.sink.Writer()
	if l == extra {
		_, err := w.Bury(ctx, stored)
		return err
	}
	results, err := w.Write(ctx, []Row{*row})
	switch {
	case err != nil:
		return err
	case results[0].Outcome == Refused:
		m.log.Warn("row not mended", "key", row.Key.String(), "reason", results[0].Reason)
	case results[0].Outcome == Differs:
		_, err = w.Replace(ctx, *row)
	}
	return err
}
