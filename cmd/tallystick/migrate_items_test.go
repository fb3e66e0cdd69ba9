package main_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type attributes = map[string]types.AttributeValue

// items is the sink's table through the plain SDK.
type items struct {
	t     testing.TB
	raw   *dynamodb.Client
	table string
}

func (m *migrating) items() items {
	m.t.Helper()
	endpoint := m.variable("DYNAMODB_ENDPOINT")
	return items{m.t, dynamodb.New(dynamodb.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:  wholeBody{http.DefaultClient},
	}), m.table}
}

// wholeBody hands net/http the request body as bytes: see realtest.
type wholeBody struct{ client aws.HTTPClient }

func (w wholeBody) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.client.Do(r)
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func yes() types.AttributeValue         { return &types.AttributeValueMemberBOOL{Value: true} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func (i items) put(item attributes) {
	i.t.Helper()
	if _, err := i.raw.PutItem(i.t.Context(), &dynamodb.PutItemInput{TableName: &i.table, Item: item}); err != nil {
		i.t.Fatal(err)
	}
}

// key returns the key of a room's event.
func key(room, id string) attributes { return attributes{"room_id": str(room), "id": str(id)} }

func (i items) get(key attributes) attributes {
	i.t.Helper()
	out, err := i.raw.GetItem(i.t.Context(), &dynamodb.GetItemInput{TableName: &i.table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		i.t.Fatal(err)
	}
	return out.Item
}

func (i items) delete(key attributes) {
	i.t.Helper()
	if _, err := i.raw.DeleteItem(i.t.Context(), &dynamodb.DeleteItemInput{TableName: &i.table, Key: key}); err != nil {
		i.t.Fatal(err)
	}
}

// tree returns a map of texts.
func tree(pairs ...string) types.AttributeValue {
	m := attributes{}
	for n := 0; n < len(pairs); n += 2 {
		m[pairs[n]] = str(pairs[n+1])
	}
	return &types.AttributeValueMemberM{Value: m}
}
