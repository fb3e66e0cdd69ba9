package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tallystick/tallystick/migrate"
)

// Rows in quarantine are kept in the state, for all pods. The plan's file lists
// them as they are when a pod ends with the migration, and after each replay,
// in the folder of the process that does it.

// quarantinePage is how many rows in quarantine are read at once.
const quarantinePage = 500

func (j *job) eachQuarantined(ctx context.Context, f func(migrate.Quarantined) error) error {
	for after, end := "", false; !end; {
		page, err := j.state.Quarantined(ctx, after, quarantinePage)
		if end = len(page) < quarantinePage; err != nil || len(page) == 0 {
			return err
		}
		for _, q := range page {
			if err := f(q); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Key.String()
	}
	return nil
}

// quarantined counts the rows in quarantine.
func (j *job) quarantined(ctx context.Context) (int, error) {
	n := 0
	err := j.eachQuarantined(ctx, func(migrate.Quarantined) error { n++; return nil })
	return n, err
}

// listQuarantined writes the plan's file anew, unless nothing is in quarantine
// and no file tells otherwise. It returns how many rows are.
func (j *job) listQuarantined(ctx context.Context) (n int, err error) {
	n, err = j.quarantined(ctx)
	if err != nil {
		return 0, err
	}
	path := j.plan.Quarantine.Path
	if _, none := os.Stat(path); n == 0 && errors.Is(none, os.ErrNotExist) {
		return 0, nil
	}
	return n, replaceFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return j.eachQuarantined(ctx, func(q migrate.Quarantined) error { return e.Encode(viewQuarantined(q)) })
	})
}

// replaceFile writes a file in one step. Its error does not name the file.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			err = e.Err
		}
		if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".quarantine-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it was renamed
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// stale returns why the plan's file does not tell how it is, nil if it does.
func stale(plan migrate.Plan, unlisted error) error {
	if unlisted == nil {
		return nil
	}
	return failed("name a file that can be written in quarantine.path", "%s does not list what is in quarantine now: %v", plan.Quarantine.Path, unlisted)
}

// errNotListed: the plan's file was not written.
var errNotListed = errors.New("not listed")

// quarantineFailure says of a finished migration how many rows are in
// quarantine, and where they are listed: unlisted is why they are in no file.
func quarantineFailure(plan migrate.Plan, n int, unlisted error) failure {
	f := failure{Code: "DIFFERENCES", Message: fmt.Sprintf("%s: finished, rows in quarantine: %d", plan.Name, n)}
	if unlisted == nil {
		f.Message += ", listed in " + plan.Quarantine.Path
		f.Remedy = "correct the source, then `tallystick migrate replay`"
		return f
	}
	if !errors.Is(unlisted, errNotListed) {
		f.Message += ", which could not be listed: " + unlisted.Error()
	}
	f.Remedy = "`tallystick migrate report --quarantine` lists them; correct the source, then `tallystick migrate replay`"
	return f
}

// quarantineExit ends a command with exit code 3 and says why.
func (c *cli) quarantineExit(f failure) error {
	c.printFailure(f)
	return errDiffer
}

// A listing is a migration whose replays, whoever asks for them, keep the
// plan's file right.
type listing struct {
	migration
	j   *job
	log *slog.Logger // nil: silent
}

// Replay tries the rows in quarantine again and lists what is left.
func (l listing) Replay(ctx context.Context) (settled, left int, err error) {
	settled, left, err = l.migration.Replay(ctx)
	n, unlisted := l.j.listQuarantined(ctx)
	switch {
	case l.log == nil:
	case unlisted != nil:
		l.log.Warn("rows in quarantine not listed", "file", l.j.plan.Quarantine.Path, "error", unlisted)
	default:
		l.log.Info("replayed", "settled", settled, "left", n, "file", l.j.plan.Quarantine.Path)
	}
	if err == nil && l.log == nil { // a command, which has nowhere else to say so
		err = stale(l.j.plan, unlisted)
	}
	return settled, left, err
}
