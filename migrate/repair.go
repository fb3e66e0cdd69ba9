package migrate

import "context"

// repair brings one item to what the source has.
func (m *Migration) repair(ctx context.Context, l likeness, s suspect) error {
	w := m.sink.Writer()
	if l == extra {
		_, err := w.Bury(ctx, s.stored)
		return err
	}
	results, err := w.Write(ctx, []Row{*s.row})
	if err == nil && results[0].Outcome == Differs {
		_, err = w.Replace(ctx, *s.row)
	}
	return err
}
