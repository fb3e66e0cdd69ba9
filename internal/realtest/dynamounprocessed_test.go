package realtest_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/internal/realtest"
)

func TestPartialBatchesGiveBackTheRest(t *testing.T) {
	takes := 0
	db := client(realtest.PartialBatches(t, realtest.DynaliteURL(t), func(realtest.DynamoRequest) int { return takes }))
	table := realtest.TableName()
	createTable(t, db, table)
	var writes []types.WriteRequest
	var keys []map[string]types.AttributeValue
	for i := range 5 {
		key := map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}}
		keys = append(keys, key)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
	}
	for _, c := range []struct{ take, left, there int }{{0, 5, 0}, {2, 3, 2}, {-1, 0, 5}} {
		takes = c.take
		out, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
		if err != nil || len(out.UnprocessedItems[table]) != c.left {
			t.Fatalf("take %d: %d items come back, %v; want %d", c.take, len(out.UnprocessedItems[table]), err, c.left)
		}
		takes = -1
		got, err := db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys}}})
		if err != nil || len(got.Responses[table]) != c.there {
			t.Fatalf("take %d: %d items are there, %v; want %d", c.take, len(got.Responses[table]), err, c.there)
		}
	}
	takes = 1
	got, err := db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys}}})
	if err != nil || len(got.Responses[table]) != 1 || len(got.UnprocessedKeys[table].Keys) != 4 {
		t.Fatalf("%d items and %d keys, %v", len(got.Responses[table]), len(got.UnprocessedKeys[table].Keys), err)
	}
}
