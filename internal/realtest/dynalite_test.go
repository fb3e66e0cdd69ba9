package realtest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/internal/realtest"
)

func TestDurableDynaliteKeepsItemsWhenKilled(t *testing.T) {
	s := realtest.DurableDynalite(t)
	db := client(s.URL)
	createTable(t, db, "kept")
	put(t, db, "kept", item("a", 7))
	s.Kill()
	if _, err := db.GetItem(t.Context(), getInput("kept", "a")); err == nil {
		t.Error("a killed server answers")
	}
	s.Start()
	if got := value(t, db, "kept", "a"); got != "7" {
		t.Errorf("after kill and start: %q, want 7", got)
	}
	s.Stop()
	s.Start()
	if got := value(t, db, "kept", "a"); got != "7" {
		t.Errorf("after stop and start: %q, want 7", got)
	}
}

func TestDynaliteForgetsItsTablesWhenKilled(t *testing.T) {
	s := realtest.Dynalite(t)
	db := client(s.URL)
	createTable(t, db, "gone")
	s.Kill()
	s.Start()
	createTable(t, db, "gone") // fails if it exists
}

func TestPausedDynaliteAnswersWhenResumed(t *testing.T) {
	s := realtest.Dynalite(t)
	db := client(s.URL)
	createTable(t, db, "paused")
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := db.GetItem(ctx, getInput("paused", "a")); err == nil {
		t.Error("a frozen server answers")
	}
	s.Resume()
	put(t, db, "paused", item("a", 1))
}

// dynalite as it comes ends when a client goes away in the middle of a request.
func TestDynaliteSurvivesClientsThatGoAway(t *testing.T) {
	s := realtest.Dynalite(t)
	db := client(s.URL)
	createTable(t, db, "busy")
	for i := range 50 {
		for _, sent := range []int{0, 5, len(rawUpdate(0))} {
			abandon(t, s.URL, rawUpdate(i), sent)
		}
	}
	put(t, db, "busy", item("a", 1))
}

// rawUpdate is the body of an UpdateItem.
func rawUpdate(i int) string {
	return fmt.Sprintf(`{"TableName":"busy","Key":{"name":{"S":"%06d"}},"UpdateExpression":"add n :n","ExpressionAttributeValues":{":n":{"N":"1"}}}`, i)
}

// abandon sends the header of an UpdateItem and some bytes of its body, and
// leaves.
func abandon(t *testing.T, url, body string, sent int) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req, _ := http.NewRequest("POST", url, nil)
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.UpdateItem")
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Date", "20200101T000000Z")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=c")
	var head strings.Builder
	fmt.Fprintf(&head, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", len(body))
	req.Header.Write(&head)
	if _, err := fmt.Fprintf(conn, "%s\r\n%s", head.String(), body[:sent]); err != nil {
		t.Fatal(err)
	}
}

func TestDynaliteReturnsTheItemThatFailedTheCondition(t *testing.T) {
	db := client(realtest.DynaliteURL(t))
	table := realtest.TableName()
	createTable(t, db, table)
	put(t, db, table, item("a", 7))
	key, condition, all := item("a", 0), aws.String("n = :n"), types.ReturnValuesOnConditionCheckFailureAllOld
	delete(key, "n")
	eight := map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "8"}}
	for name, write := range map[string]func(types.ReturnValuesOnConditionCheckFailure) error{
		"PutItem": func(r types.ReturnValuesOnConditionCheckFailure) error {
			_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &table, Item: item("a", 9), ConditionExpression: condition,
				ExpressionAttributeValues: eight, ReturnValuesOnConditionCheckFailure: r,
			})
			return err
		},
		"UpdateItem": func(r types.ReturnValuesOnConditionCheckFailure) error {
			_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: &table, Key: key, ConditionExpression: condition, UpdateExpression: aws.String("add n :n"),
				ExpressionAttributeValues: eight, ReturnValuesOnConditionCheckFailure: r,
			})
			return err
		},
		"DeleteItem": func(r types.ReturnValuesOnConditionCheckFailure) error {
			_, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: &table, Key: key, ConditionExpression: condition,
				ExpressionAttributeValues: eight, ReturnValuesOnConditionCheckFailure: r,
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if old := failedCondition(t, write(all)).Item; number(old) != "7" {
				t.Errorf("asked for the old item, got %v", old)
			}
			if old := failedCondition(t, write("")).Item; old != nil {
				t.Errorf("did not ask for the old item, got %v", old)
			}
		})
	}
}

func TestDynaliteReturnsNoOldItemWhereThereIsNone(t *testing.T) {
	db := client(realtest.DynaliteURL(t))
	table := realtest.TableName()
	createTable(t, db, table)
	_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: &table, Item: item("a", 1), ConditionExpression: aws.String("attribute_exists(n)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old := failedCondition(t, err).Item; old != nil {
		t.Errorf("got %v", old)
	}
}

// Sequences are listed by scans that follow the keys.
func TestDynaliteScansPageByPage(t *testing.T) {
	db := client(realtest.DynaliteURL(t))
	table := realtest.TableName()
	createTable(t, db, table)
	for i := range 25 {
		item := item(fmt.Sprint(i), i)
		item["fill"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 100_000)}
		put(t, db, table, item)
	}
	for name, c := range map[string]struct {
		limit *int32
		pages int
	}{
		"by count": {aws.Int32(10), 3},
		"by size":  {nil, 3}, // 1 MB each
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, Limit: c.limit})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.pages--
				for _, item := range page.Items {
					seen[number(item)] = true
				}
			}
			if len(seen) != 25 || c.pages != 0 {
				t.Errorf("%d of 25 items, pages off by %d: %v", len(seen), c.pages, seen)
			}
		})
	}
}

func TestSharedDynaliteIsOneServer(t *testing.T) {
	var urls [4]string
	var wg sync.WaitGroup
	for i := range urls {
		wg.Go(func() { urls[i] = realtest.DynaliteURL(t) })
	}
	wg.Wait()
	for _, url := range urls {
		if url != urls[0] {
			t.Errorf("two servers: %v", urls)
		}
	}
}
