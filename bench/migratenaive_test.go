package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/migrate"
)

// sendBare sends prepared requests over some connections, each of which has one
// under way at a time.
func sendBare(t *testing.T, url, operation string, connections int, bodies [][]byte) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var senders sync.WaitGroup
	for c := range connections {
		senders.Go(func() {
			for i := c; i < len(bodies); i += connections {
				if err := postBare(client, url, operation, bodies[i]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
}

// postBare sends one request, with a signature that nobody looks at.
func postBare(client *http.Client, url, operation string, body []byte) error {
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, reply)
	}
	return err
}

// clientOf returns the SDK's client as it comes.
func clientOf(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
}

// A naiveLoop copies the table the way one writes it first: a page, its
// requests one after the other, the next page.
type naiveLoop struct {
	pool   *pgxpool.Pool
	client *dynamodb.Client
	mode   migrate.Mode
}

// run copies up to n of the newest rows and returns how many.
func (l naiveLoop) run(ctx context.Context, n int) (int, error) {
	done, after := 0, "~" // above every id
	for done < n {
		page, err := l.page(ctx, after, min(1000, n-done))
		if err != nil || len(page) == 0 {
			return done, err
		}
		if err := l.write(ctx, page); err != nil {
			return done, err
		}
		done, after = done+len(page), page[len(page)-1].id
	}
	return done, nil
}

func (l naiveLoop) page(ctx context.Context, after string, n int) ([]event, error) {
	rows, err := l.pool.Query(ctx, "select id, room_id::text, data::text, version from room_events where id < $1 order by id desc limit $2", after, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []event
	for rows.Next() {
		var e event
		if err := rows.Scan(&e.id, &e.room, &e.data, &e.version); err != nil {
			return nil, err
		}
		page = append(page, e)
	}
	return page, rows.Err()
}

func (l naiveLoop) write(ctx context.Context, page []event) error {
	if l.mode == migrate.Overwrite {
		for batch := range slices.Chunk(page, 25) {
			if err := l.batch(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range page {
		if err := l.put(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (l naiveLoop) put(ctx context.Context, e event) error {
	condition, versioned := conditionOf(l.mode)
	in := &dynamodb.PutItemInput{TableName: aws.String("room_events"), Item: e.attributes(l.mode), ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#p": "room_id"}}
	if versioned {
		in.ExpressionAttributeNames["#v"] = "_version"
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":v": in.Item["_version"]}
	}
	_, err := l.client.PutItem(ctx, in)
	return err
}

// batch writes up to 25 rows, those that come back again.
func (l naiveLoop) batch(ctx context.Context, rows []event) error {
	var requests []types.WriteRequest
	for _, e := range rows {
		requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: e.attributes(l.mode)}})
	}
	for len(requests) > 0 {
		out, err := l.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"room_events": requests}})
		if err != nil {
			return err
		}
		requests = out.UnprocessedItems["room_events"]
	}
	return nil
}

// attributes returns the row as the engine stores it.
func (e event) attributes(m migrate.Mode) map[string]types.AttributeValue {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	version := &types.AttributeValueMemberN{Value: strconv.FormatInt(e.version, 10)}
	item := map[string]types.AttributeValue{"id": text(e.id), "room_id": text(e.room), "data": text(e.data), "version": version}
	if m == migrate.Guarded {
		item["_version"] = version
	}
	return item
}
