package migdynamo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

const benchPage = 1000 // rows of an iteration

// BenchmarkWrite compares a writer with what the server takes: the same items
// by bare HTTP, from prepared bodies, on two connections.
func BenchmarkWrite(b *testing.B) {
	for _, mode := range []migrate.Mode{migrate.Guarded, migrate.Overwrite} {
		b.Run(string(mode)+"/bare", func(b *testing.B) {
			plan := newPlan(realtest.Dynalite(b).URL, mode)
			open(b, plan, migdynamo.Options{})
			for page := 0; b.Loop(); page++ {
				b.StopTimer()
				all := bodies(plan, mode, page)
				b.StartTimer()
				sendBare(b, plan.Sink.Endpoint, mode, all)
			}
			b.ReportMetric(float64(b.N)*benchPage/b.Elapsed().Seconds(), "items/s")
		})
		b.Run(string(mode)+"/writer", func(b *testing.B) {
			sink := open(b, newPlan(realtest.Dynalite(b).URL, mode), migdynamo.Options{})
			w := sink.Writer()
			b.ReportAllocs()
			for page := 0; b.Loop(); page++ {
				results, err := w.Write(b.Context(), benchRows(page))
				if err != nil {
					b.Fatal(err)
				}
				allWritten(b, results)
			}
			b.ReportMetric(float64(b.N)*benchPage/b.Elapsed().Seconds(), "items/s")
		})
	}
}

const benchJSON = `{"type": "m.room.message", "sender": "@alice:example.org", "content": {"body": "hello, how are you today?", "msgtype": "m.text"}, "n": 9007199254740993}`

func benchRows(page int) []migrate.Row {
	all := make([]migrate.Row, benchPage)
	for i := range all {
		all[i] = row(fmt.Sprintf("01J%023d", page*benchPage+i), 1, data(migrate.Value{Kind: migrate.JSON, Text: benchJSON}))
		all[i].Fields[0].Value.Text = fmt.Sprintf("room-%d", i%100)
	}
	return all
}

// bodies returns the requests for a page.
func bodies(plan migrate.Plan, mode migrate.Mode, page int) [][]byte {
	var all [][]byte
	var batch []any
	for _, r := range benchRows(page) {
		item := map[string]any{"room_id": map[string]any{"S": r.Fields[0].Value.Text}, "id": map[string]any{"S": r.Key[0]}, "data": map[string]any{"S": benchJSON}}
		if mode == migrate.Guarded {
			item["_version"] = map[string]any{"N": "1"}
			body, _ := json.Marshal(map[string]any{"TableName": plan.Sink.Table, "Item": item,
				"ConditionExpression":       "attribute_not_exists(#p) OR (#v < :v)",
				"ExpressionAttributeNames":  map[string]string{"#p": "room_id", "#v": "_version"},
				"ExpressionAttributeValues": map[string]any{":v": map[string]string{"N": "1"}}})
			all = append(all, body)
			continue
		}
		if batch = append(batch, map[string]any{"PutRequest": map[string]any{"Item": item}}); len(batch) == 25 {
			body, _ := json.Marshal(map[string]any{"RequestItems": map[string]any{plan.Sink.Table: batch}})
			all, batch = append(all, body), nil
		}
	}
	return all
}

var bareClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}

func sendBare(b *testing.B, url string, mode migrate.Mode, all [][]byte) {
	operation := "PutItem"
	if mode == migrate.Overwrite {
		operation = "BatchWriteItem"
	}
	var wg sync.WaitGroup
	for half := range 2 {
		wg.Go(func() {
			for i := half; i < len(all); i += 2 {
				req, _ := http.NewRequest("POST", url, bytes.NewReader(all[i]))
				req.Header.Set("Content-Type", "application/x-amz-json-1.0")
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
				req.Header.Set("X-Amz-Date", "20260101T000000Z")
				req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b")
				resp, err := bareClient.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("%s: %s", resp.Status, body)
					return
				}
			}
		})
	}
	wg.Wait()
}
