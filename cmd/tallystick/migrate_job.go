package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

// A planFile is the plan that a command is about.
type planFile struct {
	c    *cli
	path string
	plan *migrate.Plan // once it was read: standard input is read once
}

// read reads the plan.
func (p *planFile) read() (migrate.Plan, error) {
	if p.plan != nil {
		return *p.plan, nil
	}
	if p.path == "" {
		return migrate.Plan{}, &usageError{err: errors.New("no plan is given"), field: "file", remedy: "give one with -f plan.yaml, or - for standard input"}
	}
	text, err := p.text()
	if err != nil {
		return migrate.Plan{}, fmt.Errorf("plan: %w", err)
	}
	plan, err := migrate.ParsePlan(text, p.c.secrets.lookup)
	if err != nil {
		return plan, err
	}
	p.c.secrets.note(plan.Source.DSN, plan.Sink.Endpoint, plan.State.URL)
	p.plan = &plan
	return plan, nil
}

func (p *planFile) text() ([]byte, error) {
	if p.path == "-" {
		return io.ReadAll(p.c.in)
	}
	return os.ReadFile(p.path)
}

// A job is a migration with as many of its parts as a command needs.
type job struct {
	plan   migrate.Plan
	source migrate.Source
	sink   migrate.Sink
	state  migrate.State
	m      *migrate.Migration
	local  migration

	closers []io.Closer
}

// Close closes the parts in the reverse order.
func (j *job) Close() error {
	var all error
	for i := len(j.closers) - 1; i >= 0; i-- {
		all = errors.Join(all, j.closers[i].Close())
	}
	return all
}

// openParts says which parts a command needs.
type openParts int

const (
	onlyState openParts = iota
	allParts
)

// open reads the plan and opens the parts of the migration. It refuses a state
// that is another's.
func (p *planFile) open(ctx context.Context, parts openParts, log *slog.Logger) (*job, error) {
	plan, err := p.read()
	if err != nil {
		return nil, err
	}
	j := &job{plan: plan}
	if err = j.open(ctx, parts, log); err == nil {
		err = j.m.CheckState(ctx)
	}
	if err != nil {
		return nil, closed(err, j)
	}
	return j, nil
}

// open opens the parts. What is wrong with the plan comes with its line.
func (j *job) open(ctx context.Context, parts openParts, log *slog.Logger) error {
	return placeIn(j.plan, j.openAll(ctx, parts, log))
}

func (j *job) openAll(ctx context.Context, parts openParts, log *slog.Logger) (err error) {
	if j.state, err = openMigrationState(ctx, j.plan); err != nil {
		return err
	}
	j.closers = append(j.closers, j.state)
	if parts == allParts {
		if err := j.openEnds(ctx); err != nil {
			return err
		}
	}
	j.m = migrate.New(j.plan, j.source, j.sink, j.state, migrate.Options{Pod: podName(), Logger: log})
	local := localMigration(j.m, j.plan, j.source, j.state)
	j.local, j.closers = listing{local, j, log}, append(j.closers, local)
	return nil
}

// openEnds opens source and sink.
func (j *job) openEnds(ctx context.Context) error {
	source, err := openMigrationSource(ctx, j.plan)
	if err != nil {
		return err
	}
	j.source, j.closers = source, append(j.closers, source)
	if err := j.plan.CheckColumns(source.Columns()); err != nil {
		return err
	}
	j.sink, err = openMigrationSink(ctx, j.plan, j.plan.KeyKinds(source.Columns()))
	return err
}

// podName names this process to people.
func podName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "pod"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// within calls f with a migration that has parts.
func (p *planFile) within(cmd *cobra.Command, parts openParts, f func(context.Context, *job) error) (err error) {
	j, err := p.open(cmd.Context(), parts, nil)
	if err != nil {
		return interrupted(cmd.Context(), err)
	}
	defer func() { err = closed(err, j) }()
	return interrupted(cmd.Context(), placeIn(j.plan, f(cmd.Context(), j)))
}

// begun reports whether the migration was ever started, or was at least
// registered by a pod.
func (j *job) begun(ctx context.Context) (bool, error) {
	v, err := j.state.View(ctx)
	return v.Plan.Hash != "", err
}

// stopTime bounds what a command does after it was told to stop.
const stopTime = 5 * time.Second

// lastWords returns a context for what is said after ctx has ended.
func lastWords(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stopTime)
}
