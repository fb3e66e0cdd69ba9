// Rollout takes a table through all phases of package rollout, from PostgreSQL
// to DynamoDB, while writers in other processes are killed at random:
//
//	PG_DSN=postgres://... DYNAMODB_ENDPOINT=http://127.0.0.1:8000 go run ./examples/rollout
//
// It drops and makes the table example_events in PostgreSQL, and wants none of
// that name in DynamoDB. It fails if a single row differs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/rollout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "rollout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stdout, stderr io.Writer) error {
	s, err := openSides(ctx)
	if err != nil {
		return err
	}
	defer s.old.pool.Close()
	if name := os.Getenv(writerEnv); name != "" {
		phase, err := rollout.ParsePhase(name)
		if err != nil {
			return err
		}
		return write(ctx, s, phase)
	}
	return (&tour{sides: s, out: stdout, errors: stderr}).walk(ctx)
}

// The sides are both stores.
type sides struct {
	old old
	new new_
}

func openSides(ctx context.Context) (*sides, error) {
	dsn, endpoint := os.Getenv("PG_DSN"), os.Getenv("DYNAMODB_ENDPOINT")
	if dsn == "" || endpoint == "" {
		return nil, errors.New("set PG_DSN and DYNAMODB_ENDPOINT")
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	n, err := openNew(ctx, endpoint)
	return &sides{old{pool}, n}, err
}

// setup makes both tables.
func (s *sides) setup(ctx context.Context) error {
	if _, err := s.old.pool.Exec(ctx, migpg.OutboxDDL+";"+schema); err != nil {
		return err
	}
	plan, err := parsePlan()
	if err != nil {
		return err
	}
	_, err = migdynamo.Open(ctx, plan, migdynamo.Options{})
	return err
}

// store returns a store in a phase.
func (s *sides) store(phase rollout.Phase, told func(rollout.Difference[key])) *rollout.Store[key, string] {
	return rollout.New(s.old, s.new, rollout.Options[key, string]{
		Phase: func(context.Context) rollout.Phase { return phase },
		OnDifference: func(_ context.Context, d rollout.Difference[key]) {
			if told != nil {
				told(d)
			}
		},
	})
}
