package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// tryFlags say what to copy for a try.
type tryFlags struct {
	only    string
	maxRows int64
}

// asked reports whether a try is asked for.
func (f tryFlags) asked() bool { return f.only != "" || f.maxRows != 0 }

func (f tryFlags) check(start bool) error {
	switch {
	case f.maxRows < 0:
		return &usageError{err: fmt.Errorf("--max-rows %d is out of range", f.maxRows), field: "max_rows", remedy: "use 1 or more"}
	case f.asked() && start:
		return &usageError{err: errors.New("--start begins the whole, --only and --max-rows try a part"), field: "start", remedy: "give one or the other"}
	}
	return nil
}

// slot returns the only slot to try, nil for any.
func (f tryFlags) slot(plan migrate.Plan) (*migrate.Slot, error) {
	if f.only == "" {
		return nil, nil
	}
	return slotNamed(plan, f.only)
}

// slotNamed returns the slot that --only names.
func slotNamed(plan migrate.Plan, name string) (*migrate.Slot, error) {
	slot, err := plan.Axis().ParseName(name)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--only %s", plain(err)), field: "only", remedy: "`tallystick migrate report` lists the slots"}
	}
	return &slot, nil
}

// try copies some rows and says what became of them.
func (c *cli) try(ctx context.Context, j *job, f tryFlags) error {
	slot, err := f.slot(j.plan)
	if err != nil {
		return err
	}
	findings, err := j.m.Preflight(ctx)
	if err != nil {
		return err
	}
	if err := migrate.FirstRefusal(findings); err != nil {
		return err
	}
	counts, refused, err := j.m.Try(ctx, slot, f.maxRows)
	if err != nil {
		return err
	}
	if err := c.printTry(j.plan, counts, refused); err != nil || len(refused) == 0 {
		return err
	}
	return errDiffer
}

func (c *cli) printTry(plan migrate.Plan, n migrate.Counts, refused []migrate.Quarantined) error {
	rows := make([]quarantineView, len(refused))
	for i, q := range refused {
		rows[i] = viewQuarantined(q)
	}
	if c.output == jsonForm {
		return c.printJSON(map[string]any{"name": plan.Name, "rows": n, "refused": rows})
	}
	for _, r := range rows {
		fmt.Fprintf(c.out, "refused %s: %s\n", r.Key, r.Reason)
	}
	_, err := fmt.Fprintf(c.out, "%s: tried %d rows: %d written, %d already newer, %d already ours, %d refused; nothing of it is recorded\n",
		plan.Name, n.Read, n.Written, n.AlreadyNewer, n.AlreadyOurs, len(refused))
	return err
}
