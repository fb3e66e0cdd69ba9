package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migbolt"
	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/migrate/migpg"
)

const planText = `
name: example
source: {kind: postgres, dsn: "${PG_DSN}", table: example_events, key: [id, room_id]}
sink: {kind: dynamodb, table: example_events, endpoint: "${DYNAMODB_ENDPOINT}", create: true,
       key: {partition: room_id, sort: id}}
slots: {by: ulid, width: 1h, lag: 1s, sweep: 1h}
write: {mode: guarded, version: version}
state: {kind: file, keeper_interval: 200ms}
workers: 2
page_rows: 100
`

func parsePlan() (migrate.Plan, error) { return migrate.ParsePlan([]byte(planText), os.LookupEnv) }

// copier returns the migration, and what closes it.
func copier(ctx context.Context, folder string) (*migrate.Migration, func(), error) {
	plan, err := parsePlan()
	if err != nil {
		return nil, nil, err
	}
	from, err := migpg.Open(ctx, plan)
	if err != nil {
		return nil, nil, err
	}
	to, err := migdynamo.Open(ctx, plan, migdynamo.Options{})
	if err != nil {
		from.Close()
		return nil, nil, err
	}
	state, err := migbolt.Open(filepath.Join(folder, "example.state"), plan.Axis())
	if err != nil {
		from.Close()
		return nil, nil, err
	}
	closeAll := func() { state.Close(); from.Close() }
	return migrate.New(plan, from, to, state, migrate.Options{}), closeAll, nil
}

// migrateAll copies every row, while writers go on.
func migrateAll(ctx context.Context, m *migrate.Migration) (migrate.Report, error) {
	if _, err := m.Start(ctx); err != nil {
		return migrate.Report{}, err
	}
	if err := m.Run(ctx); err != nil {
		return migrate.Report{}, err
	}
	return m.Report(ctx)
}

// verify compares everything, and fails on a difference.
func verify(ctx context.Context, m *migrate.Migration) (int64, error) {
	v, err := m.Verify(ctx, migrate.VerifyOptions{Mode: "full"})
	if err != nil {
		return 0, err
	}
	if !v.Clean {
		return 0, fmt.Errorf("not clean: missing %v, different %v, extra %v, unsettled %v", v.Missing, v.Different, v.Extra, v.Unsettled)
	}
	return v.Compared, nil
}
