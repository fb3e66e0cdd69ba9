package seqdynamo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
)

func TestRestoredTableIsRefusedUntilAdopted(t *testing.T) {
	proxy, table := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)), newTable()
	store := open(t, proxy.URL, table)
	r := create(t, store, "orders")
	proxy.SetTableID(table, "11111111-2222-3333-4444-555555555555")

	_, err := seqdynamo.Open(t.Context(), options(proxy.URL, table))
	refused(t, err, sequence.CodePrecondition, "counters may have moved back", "`tallystick seq adopt --skip N`")

	o := options(proxy.URL, table)
	o.Adopt = true
	adopting, err := seqdynamo.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	moved := swapped(r)
	if _, err := adopting.Swap(t.Context(), r.Nonce, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := adopting.Generation(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = seqdynamo.Open(t.Context(), options(proxy.URL, table))
	refused(t, err, sequence.CodePrecondition) // half way is not adopted
	if err := adopting.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}

	again := open(t, proxy.URL, table)
	if now, err := again.Load(t.Context(), "orders"); err != nil || now.Next != moved.Next {
		t.Fatalf("load = %+v, %v", now, err)
	}
	if g, err := again.Generation(t.Context()); err != nil || g != 1 {
		t.Fatalf("generation = %d, %v, want 1", g, err)
	}
	if err := adopting.Bump(t.Context()); err != nil {
		t.Fatalf("the one that adopted: %v", err)
	}
	_, err = store.Generation(t.Context())
	refused(t, err, sequence.CodePrecondition, "restart the server")
	_, err = store.Advance(t.Context(), advance(moved))
	refused(t, err, sequence.CodePrecondition, "restart the server")
	refused(t, store.Bump(t.Context()), sequence.CodePrecondition, "restart the server")
}

// A table that was dropped and made again under a running server must not be
// written to, even where it has the content of a backup.
func TestTableMadeAgainIsRefused(t *testing.T) {
	for _, content := range []string{"empty", "from a backup"} {
		t.Run(content, func(t *testing.T) {
			url, table := realtest.DynaliteURL(t), newTable()
			store := open(t, url, table)
			r := create(t, store, "orders")
			raw := rawClient(url)
			backup, err := raw.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := raw.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Fatal(err)
			}
			for _, w := range writes {
				refused(t, w.do(t.Context(), store, r), sequence.CodePrecondition, "does not exist")
			}
			if content == "empty" {
				open(t, url, table)
			} else {
				restore(t, raw, table, backup.Items)
			}
			for _, w := range writes {
				refused(t, w.do(t.Context(), store, r), sequence.CodePrecondition, "is not the one its content was written in", "seq adopt")
			}
			_, err = store.Generation(t.Context())
			refused(t, err, sequence.CodePrecondition, "seq adopt")
			if now, err := store.Load(t.Context(), "orders"); !errors.Is(err, sequence.ErrNotFound) && now.Nonce != r.Nonce {
				t.Fatalf("something was written: %+v, %v", now, err)
			}
		})
	}
}

// restore makes a table with the given content.
func restore(t *testing.T, raw *dynamodb.Client, table string, items []map[string]types.AttributeValue) {
	t.Helper()
	name := "name"
	_, err := raw.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, raw, table)
	for _, item := range items {
		put(t, raw, table, item)
	}
}

// await returns once a table is active.
func await(t *testing.T, raw *dynamodb.Client, table string) {
	t.Helper()
	for {
		out, err := raw.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			return
		}
	}
}

// A process that never saw the table missing finds its content gone.
func TestMissingMetaItemIsRefused(t *testing.T) {
	url, table := realtest.DynaliteURL(t), newTable()
	store := open(t, url, table)
	raw := rawClient(url)
	_, err := raw.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table,
		Key: map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: "\ttallystick"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Generation(t.Context())
	refused(t, err, sequence.CodePrecondition, "seq adopt")
}
