package realtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// PartialBatches returns the URL of a proxy before the server at url that has
// only part of each batch carried out, as DynamoDB does when it is pressed. take
// is asked for each BatchWriteItem and BatchGetItem how many of its items, of
// each table, reach the server; the rest comes back unprocessed. A negative
// number stands for all of them. It is called for one request at a time.
//
// Where a test also needs [DynamoProxy], either may stand before the other.
func PartialBatches(t testing.TB, url string, take func(DynamoRequest) int) string {
	t.Helper()
	p := &partialBatches{upstream: url, take: take, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.Close()
		p.client.CloseIdleConnections()
	})
	return server.URL
}

type partialBatches struct {
	upstream string
	client   *http.Client
	mu       sync.Mutex // held by take
	take     func(DynamoRequest) int
}

func (p *partialBatches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := newDynamoRequest(r.Header, body)
	rest := object{}
	if req.Operation == "BatchWriteItem" || req.Operation == "BatchGetItem" {
		req.Body, rest = cut(body, p.ask(req))
	}
	reply, err := p.forward(r, req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if len(rest) > 0 && reply.status == http.StatusOK {
		reply.body = addUnprocessed(reply.body, req.Operation, rest)
	}
	reply.send(w)
}

func (p *partialBatches) ask(req DynamoRequest) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(req)
}

// forward sends body to the server; nothing of a batch is a success.
func (p *partialBatches) forward(r *http.Request, body []byte) (*reply, error) {
	if body == nil {
		return &reply{status: http.StatusOK, body: []byte("{}")}, nil
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	resp, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return &reply{status: resp.StatusCode, body: answer}, err
}

// cut returns the batch with the first n items of each table, nil if that is
// nothing, and the tables with the rest.
func cut(body []byte, n int) ([]byte, object) {
	rest := object{}
	if n < 0 {
		return body, rest
	}
	left := 0
	body = edit(body, func(batch object) {
		batch["RequestItems"] = edit(batch["RequestItems"], func(tables object) {
			for table, items := range tables {
				some, others, count := cutTable(items, n)
				if others != nil {
					rest[table] = others
				}
				if tables[table] = some; count == 0 {
					delete(tables, table)
				}
				left += count
			}
		})
	})
	if left == 0 {
		return nil, rest
	}
	return body, rest
}

// cutTable cuts what a batch wants of one table: a list of writes, or an object
// with a list of keys.
func cutTable(items json.RawMessage, n int) (some, others json.RawMessage, count int) {
	var writes []json.RawMessage
	if json.Unmarshal(items, &writes) == nil {
		return cutList(writes, n)
	}
	var reads object
	if json.Unmarshal(items, &reads) != nil || json.Unmarshal(reads["Keys"], &writes) != nil {
		return items, nil, 1
	}
	keys, left, count := cutList(writes, n)
	some = edit(items, func(o object) { o["Keys"] = keys })
	if left != nil {
		others = edit(items, func(o object) { o["Keys"] = left })
	}
	return some, others, count
}

func cutList(list []json.RawMessage, n int) (some, others json.RawMessage, count int) {
	n = min(n, len(list))
	some, _ = json.Marshal(list[:n]) // of valid JSON: cannot fail
	if n < len(list) {
		others, _ = json.Marshal(list[n:])
	}
	return some, others, n
}

// addUnprocessed adds the rest of a batch to its reply.
func addUnprocessed(body []byte, operation string, rest object) []byte {
	field := "UnprocessedItems"
	if operation == "BatchGetItem" {
		field = "UnprocessedKeys"
	}
	return edit(body, func(whole object) { whole[field], _ = json.Marshal(rest) })
}
