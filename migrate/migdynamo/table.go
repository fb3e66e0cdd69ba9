package migdynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

const (
	tableWait  = time.Minute            // most to wait for a table to become active
	tableDelay = 250 * time.Millisecond // between two looks
)

// openTable reads the table's key, once the table is active. It creates the
// table if the plan says so and it does not exist.
func (s *Sink) openTable(ctx context.Context, p migrate.SinkPlan, kinds map[string]migrate.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, tableWait)
	defer cancel()
	create := p.Create
	for {
		t, err := s.describe(ctx)
		if err == nil && usable(t) {
			s.schema, err = readSchema(t, p)
			return err
		}
		if missing(err) && create {
			create = false
			err = s.createTable(ctx, p, kinds)
		}
		switch {
		case missing(err):
			return &migrate.PlanError{Field: "sink.table", Message: fmt.Sprintf("%q does not exist", p.Table), Remedy: "check its name and region, or say create: true"}
		case err != nil:
			return fmt.Errorf("migdynamo: open table %q: %w", p.Table, err)
		}
		if err := sleep(ctx, tableDelay); err != nil {
			return fmt.Errorf("migdynamo: table %q is not active: %w", p.Table, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func missing(err error) bool { return codeOf(err) == "ResourceNotFoundException" }

func usable(t *types.TableDescription) bool {
	return t.TableStatus == types.TableStatusActive || t.TableStatus == types.TableStatusUpdating
}

func (s *Sink) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := do(ctx, s.newCall(0), (*dynamodb.Client).DescribeTable, &dynamodb.DescribeTableInput{TableName: &s.table})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// createTable makes the table, or finds that somebody else is making it.
func (s *Sink) createTable(ctx context.Context, p migrate.SinkPlan, kinds map[string]migrate.Kind) error {
	in := &dynamodb.CreateTableInput{TableName: &s.table, BillingMode: types.BillingModePayPerRequest}
	for n, name := range keyNames(p) {
		role := types.KeyTypeHash
		if n == 1 {
			role = types.KeyTypeRange
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: keyType(kinds[name])})
	}
	_, err := do(ctx, s.newCall(0), (*dynamodb.Client).CreateTable, in)
	if codeOf(err) == "ResourceInUseException" {
		return nil
	}
	return err
}

func keyNames(p migrate.SinkPlan) []string {
	if p.Key.Sort == "" {
		return []string{p.Key.Partition}
	}
	return []string{p.Key.Partition, p.Key.Sort}
}

func keyType(k migrate.Kind) types.ScalarAttributeType {
	switch k {
	case migrate.Number:
		return types.ScalarAttributeTypeN
	case migrate.Bytes:
		return types.ScalarAttributeTypeB
	}
	return types.ScalarAttributeTypeS
}

// readSchema returns the table's key, which must be the plan's.
func readSchema(t *types.TableDescription, p migrate.SinkPlan) (schema, error) {
	byRole := map[types.KeyType]string{}
	for _, k := range t.KeySchema {
		byRole[k.KeyType] = aws.ToString(k.AttributeName)
	}
	partition, sort := byRole[types.KeyTypeHash], byRole[types.KeyTypeRange]
	if partition != p.Key.Partition || sort != p.Key.Sort {
		return schema{}, &migrate.PlanError{Field: "sink.key", Message: fmt.Sprintf("the key of table %q is %s, not %s", p.Table, keyText(partition, sort), keyText(p.Key.Partition, p.Key.Sort)),
			Remedy: "write the table's key, or name another table"}
	}
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	s := schema{attrs: []keyAttr{{partition, kinds[partition], maxPartition}}}
	if sort != "" {
		s.attrs = append(s.attrs, keyAttr{sort, kinds[sort], maxSort})
	}
	return s, nil
}

func keyText(partition, sort string) string {
	if sort == "" {
		return fmt.Sprintf("{partition: %s}", partition)
	}
	return fmt.Sprintf("{partition: %s, sort: %s}", partition, sort)
}
