package realtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// client returns a client that tries each request once.
func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		Retryer:      aws.NopRetryer{},
		HTTPClient:   wholeBody{&http.Client{Transport: &http.Transport{}}},
	})
}

// wholeBody hands net/http the request body as bytes. The SDK's own reader
// (smithy-go 1.28.9) fails with EOF when net/http looks for more of the body
// after the reply has come, whereupon net/http closes the connection under the
// rest of the reply: large pages failed in one of a hundred scans.
type wholeBody struct{ client aws.HTTPClient }

func (w wholeBody) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.client.Do(r)
}

func createTable(t *testing.T, db *dynamodb.Client, table string) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 10*time.Millisecond
	})
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
		t.Fatal(err)
	}
}

// item returns an item with a key and a number.
func item(name string, n int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"name": &types.AttributeValueMemberS{Value: name},
		"n":    &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
	}
}

func put(t *testing.T, db *dynamodb.Client, table string, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func getInput(table, name string) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: name}},
		ConsistentRead: aws.Bool(true),
	}
}

// value returns the number of an item, "" without one.
func value(t *testing.T, db *dynamodb.Client, table, name string) string {
	t.Helper()
	out, err := db.GetItem(t.Context(), getInput(table, name))
	if err != nil {
		t.Fatal(err)
	}
	return number(out.Item)
}

// failedCondition returns err as what it has to be.
func failedCondition(t *testing.T, err error) *types.ConditionalCheckFailedException {
	t.Helper()
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		t.Fatalf("want a failed condition, got %v", err)
	}
	return failed
}

// number returns the number of an item, "" without one.
func number(item map[string]types.AttributeValue) string {
	n, _ := item["n"].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}
