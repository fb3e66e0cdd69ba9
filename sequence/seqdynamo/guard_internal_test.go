package seqdynamo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/sequence"
)

func TestIdentityIsDueEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard{table: "t"}
		g.open("id", false)
		due := func(interval time.Duration) bool {
			t.Helper()
			due, err := g.due(interval)
			if err != nil {
				t.Fatal(err)
			}
			return due
		}
		<-time.After(5 * time.Minute)
		if due(identityInterval) {
			t.Fatal("due after 5 minutes, want after more")
		}
		<-time.After(time.Second)
		if !due(identityInterval) || due(never) {
			t.Fatal("not due after 5 minutes, or due for a write")
		}
		if err := g.compare("id"); err != nil || due(identityInterval) {
			t.Fatalf("due just after it was compared, %v", err)
		}
		g.missing()
		if !due(identityInterval) || !due(never) {
			t.Fatal("not due after the table was missing")
		}
		if err := g.compare("other"); !errors.Is(err, sequence.ErrPrecondition) {
			t.Fatalf("another table: %v", err)
		}
		if _, err := g.due(never); !errors.Is(err, sequence.ErrPrecondition) {
			t.Fatalf("after another table: %v", err)
		}
	})
}

func TestServerWithoutTableIDsIsTrusted(t *testing.T) {
	g := guard{}
	g.open("random", false)
	if err := g.compare(""); err != nil {
		t.Fatal(err)
	}
}

func TestTablesThatAreSafeForCounters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*types.TableDescription)
		ready  bool
		want   error
	}{
		"a table":                  {func(*types.TableDescription) {}, true, nil},
		"one being changed":        {func(t *types.TableDescription) { t.TableStatus = types.TableStatusUpdating }, true, nil},
		"one being made":           {func(t *types.TableDescription) { t.TableStatus = types.TableStatusCreating }, false, nil},
		"one being deleted":        {func(t *types.TableDescription) { t.TableStatus = types.TableStatusDeleting }, false, sequence.ErrPrecondition},
		"one without its key":      {func(t *types.TableDescription) { t.TableStatus = types.TableStatusInaccessibleEncryptionCredentials }, false, sequence.ErrPrecondition},
		"one with a sort key":      {func(t *types.TableDescription) { t.KeySchema = append(t.KeySchema, t.KeySchema[0]) }, false, sequence.ErrPrecondition},
		"an eventual global table": {func(t *types.TableDescription) { t.Replicas = make([]types.ReplicaDescription, 1) }, false, sequence.ErrPrecondition},
		"a strong global table": {func(t *types.TableDescription) {
			t.Replicas = make([]types.ReplicaDescription, 2)
			t.MultiRegionConsistency = types.MultiRegionConsistencyStrong
		}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table := types.TableDescription{TableName: aws.String("t"), TableStatus: types.TableStatusActive,
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS}}}
			c.change(&table)
			if ready, err := checkTable(table); ready != c.ready || !errors.Is(err, c.want) {
				t.Fatalf("ready = %t, %v, want %t, %v", ready, err, c.ready, c.want)
			}
		})
	}
}
