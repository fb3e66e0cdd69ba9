package seqdynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/sequence"
)

const (
	tableWait  = time.Minute            // most to wait for a table to become active
	tableDelay = 500 * time.Millisecond // most between two looks
)

// awaitTable returns the TableId of the table once it is active, "" if the
// server has none. It makes the table if create is set and it does not exist.
func (s *Store) awaitTable(ctx context.Context, create bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tableWait)
	defer cancel()
	for {
		table, err := s.describe(ctx)
		if errors.Is(err, sequence.ErrPrecondition) && create {
			create = false
			if err := s.createTable(ctx); err != nil {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		ready, err := checkTable(*table)
		if err != nil || ready {
			return aws.ToString(table.TableId), err
		}
		if !pause(ctx, tableDelay) {
			return "", &sequence.Error{Code: sequence.CodeUnavailable, Message: fmt.Sprintf("table %q is still %s", s.table, table.TableStatus)}
		}
	}
}

func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := read(ctx, s, (*dynamodb.Client).DescribeTable, &dynamodb.DescribeTableInput{TableName: &s.table})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// createTable makes the table, or finds that somebody else is making it.
func (s *Store) createTable(ctx context.Context) error {
	_, err := write(ctx, s, (*dynamodb.Client).CreateTable, &dynamodb.CreateTableInput{
		TableName:            &s.table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(attrName), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(attrName), KeyType: types.KeyTypeHash}},
	})
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	return err
}

// checkTable reports whether a table can be used now, and fails if it never
// can.
func checkTable(t types.TableDescription) (ready bool, err error) {
	switch {
	case len(t.KeySchema) != 1 || aws.ToString(t.KeySchema[0].AttributeName) != attrName || keyType(t) != types.ScalarAttributeTypeS:
		return false, unsuitable(t, `its key is not "name" alone, a string`)
	case len(t.Replicas) > 0 && t.MultiRegionConsistency != types.MultiRegionConsistencyStrong:
		return false, unsuitable(t, "it is a global table with eventual consistency, where two regions would hand out the same values")
	}
	switch t.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating, "":
		return true, nil
	case types.TableStatusCreating:
		return false, nil
	}
	return false, unsuitable(t, "it is "+string(t.TableStatus))
}

// keyType returns the type of the table's first key attribute.
func keyType(t types.TableDescription) types.ScalarAttributeType {
	for _, a := range t.AttributeDefinitions {
		if aws.ToString(a.AttributeName) == aws.ToString(t.KeySchema[0].AttributeName) {
			return a.AttributeType
		}
	}
	return ""
}

func unsuitable(t types.TableDescription, why string) error {
	return &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("table %q cannot be used: %s", aws.ToString(t.TableName), why),
		Remedy: "name another table"}
}
