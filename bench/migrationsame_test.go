package bench

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// same compares both tables by a program that shares nothing with the engine.
func (m *migration) same() int {
	m.t.Helper()
	items := m.items()
	rows, err := m.pool.Query(m.t.Context(), "select id, room_id::text, data::text, version from room_events")
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	n, wrong := 0, 0
	for rows.Next() {
		var id, room, data string
		var version int64
		if err := rows.Scan(&id, &room, &data, &version); err != nil {
			m.t.Fatal(err)
		}
		want := fmt.Sprintf("%s|%s|%s|%d", id, room, data, version)
		if got := items[id]; got != want {
			if wrong++; wrong < 5 {
				m.t.Errorf("row %s: the sink has %q, want %q", id, got, want)
			}
		}
		delete(items, id)
		n++
	}
	if len(items) > 0 || wrong > 0 {
		m.t.Errorf("%d items of the sink have no row, %d rows are not as in the source", len(items), wrong)
	}
	return n
}

// newItems returns a client of the API at url.
func newItems(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
}

// items returns every item that is no tombstone, by id.
func (m *migration) items() map[string]string {
	m.t.Helper()
	items := map[string]string{}
	pages := dynamodb.NewScanPaginator(newItems(m.sink.URL), &dynamodb.ScanInput{TableName: aws.String("room_events"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		for _, it := range page.Items {
			if _, dead := it["_deleted"]; dead {
				continue
			}
			text := func(name string) string {
				switch v := it[name].(type) {
				case *types.AttributeValueMemberS:
					return v.Value
				case *types.AttributeValueMemberN:
					return v.Value
				}
				return ""
			}
			items[text("id")] = fmt.Sprintf("%s|%s|%s|%s", text("id"), text("room_id"), text("data"), text("version"))
		}
	}
	return items
}
