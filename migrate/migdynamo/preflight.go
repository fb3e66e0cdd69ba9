package migdynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// Preflight returns what to know about the table before the first write.
func (s *Sink) Preflight(ctx context.Context) ([]migrate.Finding, error) {
	t, err := s.describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("migdynamo: look at table %q: %w", s.table, err)
	}
	found := s.findings(t)
	if !s.guards.determined {
		found = append(found, migrate.Finding{Severity: migrate.Note, Field: "sink.key",
			Message: "the table's key does not determine the source's: rows of the source that share an item are refused, but for the first",
			Remedy:  "make the source's key part of the table's, if there are any"})
	}
	return found, nil
}

// findings returns what a table's description says.
func (s *Sink) findings(t *types.TableDescription) []migrate.Finding {
	var found []migrate.Finding
	if !usable(t) {
		found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "sink.table",
			Message: fmt.Sprintf("table %q is %s", s.table, t.TableStatus), Remedy: "wait until it is active"})
	}
	if len(t.Replicas) > 0 && t.MultiRegionConsistency != types.MultiRegionConsistencyStrong && s.mode != migrate.Overwrite {
		found = append(found, migrate.Finding{Severity: migrate.Warning, Field: "sink.table",
			Message: "the table is replicated between regions with eventual consistency: the last writer wins, and conditions hold in one region only",
			Remedy:  "write from one region until the migration is verified"})
	}
	if n := len(t.GlobalSecondaryIndexes); n > 0 {
		found = append(found, migrate.Finding{Severity: migrate.Warning, Field: "sink.table",
			Message: fmt.Sprintf("the table has %d global indexes: each write costs units in each of them, which write_units_per_second does not count, and one that is throttled holds up the table", n),
			Remedy:  "create them after the copy, if they are not needed before"})
	}
	if len(t.LocalSecondaryIndexes) > 0 {
		found = append(found, migrate.Finding{Severity: migrate.Warning, Field: "sink.table",
			Message: "the table has local indexes: a partition can hold 10 GB", Remedy: "rows beyond are quarantined; look at the largest partitions first"})
	}
	if t.StreamSpecification != nil && aws.ToBool(t.StreamSpecification.StreamEnabled) {
		found = append(found, migrate.Finding{Severity: migrate.Warning, Field: "sink.table",
			Message: "the table has a stream: whatever reads it sees every row that is copied", Remedy: "make sure that its readers can take it, or enable it after the copy"})
	}
	return append(found, s.capacity(t)...)
}

// capacity compares the limit of the plan with what a provisioned table has.
func (s *Sink) capacity(t *types.TableDescription) []migrate.Finding {
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest || t.ProvisionedThroughput == nil {
		return nil
	}
	has := aws.ToInt64(t.ProvisionedThroughput.WriteCapacityUnits)
	limit := s.limiter.perSecond
	switch {
	case has == 0:
		return nil
	case limit == 0:
		return []migrate.Finding{{Severity: migrate.Warning, Field: "limits.write_units_per_second",
			Message: fmt.Sprintf("is not set, and the table is provisioned with %d write units a second: the copy will be throttled, and the application with it", has),
			Remedy:  "set it to what the application leaves, or switch the table to on-demand"}}
	case limit > float64(has):
		return []migrate.Finding{{Severity: migrate.Warning, Field: "limits.write_units_per_second",
			Message: fmt.Sprintf("is %g, but the table is provisioned with %d", limit, has), Remedy: "lower it, or provision more"}}
	}
	return nil
}
