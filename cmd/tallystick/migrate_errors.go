package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/sequence"
)

// A usageless is a failure with a remedy that is not the command line's.
type usageless struct{ message, remedy string }

func (e *usageless) Error() string { return e.message }

// A placed is an error about a line of the plan.
type placed struct {
	error
	line int
}

func (e *placed) Unwrap() error { return e.error }

// placeIn returns err with the line of the plan that it is about.
func placeIn(plan migrate.Plan, err error) error {
	if e, ok := errors.AsType[*migrate.PlanError](err); ok {
		e.Line = cmp.Or(e.Line, plan.Line(e.Field))
		return err
	}
	if f, ok := errors.AsType[migrate.Finding](err); ok && f.Field != "" {
		return &placed{err, plan.Line(f.Field)}
	}
	return err
}

// describeMigration returns an error of a migration in parts, and false if err
// is none.
func describeMigration(err error) (failure, bool) {
	if e, ok := errors.AsType[*usageless](err); ok {
		return failure{Code: sequence.CodePrecondition, Message: e.message, Remedy: e.remedy}, true
	}
	f, ok := migrationFailure(err)
	if p, at := errors.AsType[*placed](err); ok && at {
		f.Message = fmt.Sprintf("plan, line %d: %s: %s", p.line, f.Field, f.Message)
	}
	if ok && errors.Is(err, migrate.ErrStateLost) {
		f.Remedy = "run `tallystick migrate reset`, then start again: what was written stays"
	}
	if e, other := errors.AsType[*migrate.OtherPlanError](err); ok && other {
		f.Remedy = e.Remedy()
	}
	return f, ok
}

// plain returns what err says, without the domain's name before it.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "migrate: ") }
