package main

import (
	"errors"
	"strings"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/sequence"
)

// A usageless is a failure with a remedy that is not the command line's.
type usageless struct{ message, remedy string }

func (e *usageless) Error() string { return e.message }

// describeMigration returns an error of a migration in parts, and false if err
// is none.
func describeMigration(err error) (failure, bool) {
	if e, ok := errors.AsType[*usageless](err); ok {
		return failure{Code: sequence.CodePrecondition, Message: e.message, Remedy: e.remedy}, true
	}
	f, ok := migrationFailure(err)
	if ok && errors.Is(err, migrate.ErrStateLost) {
		f.Remedy = "run `tallystick migrate reset`, then start again: what was written stays"
	}
	if ok && errors.Is(err, migrate.ErrOtherPlan) && f.Remedy == "" {
		f.Remedy = "use the plan that it was started with, or another name and state"
	}
	return f, ok
}

// plain returns what err says, without the domain's name before it.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "migrate: ") }
