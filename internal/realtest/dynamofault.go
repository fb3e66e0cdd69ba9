package realtest

import (
	"encoding/json"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A DynamoRequest is a request as a rule of [DynamoProxy.Inject] sees it.
type DynamoRequest struct {
	Operation string   // like "UpdateItem"
	Tables    []string // sorted; more than one only in batches and transactions
	Number    int      // 1 for the first of this operation on this table
	Body      []byte   // JSON
}

// Table returns the table, or the first of a batch.
func (r DynamoRequest) Table() string {
	if len(r.Tables) == 0 {
		return ""
	}
	return r.Tables[0]
}

// Writes reports whether the request may change an item.
func (r DynamoRequest) Writes() bool {
	switch r.Operation {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		return true
	}
	return false
}

// newDynamoRequest reads what a request is about.
func newDynamoRequest(h http.Header, body []byte) DynamoRequest {
	_, operation, _ := strings.Cut(h.Get("X-Amz-Target"), ".")
	return DynamoRequest{Operation: operation, Tables: tablesOf(body), Body: body}
}

// tablesOf returns the tables a request names, wherever its operation does.
func tablesOf(body []byte) []string {
	var named struct {
		TableName     string
		RequestItems  map[string]json.RawMessage
		TransactItems []map[string]struct{ TableName string }
	}
	if json.Unmarshal(body, &named) != nil { // the server says so too
		return nil
	}
	var tables []string
	if named.TableName != "" {
		tables = append(tables, named.TableName)
	}
	for table := range named.RequestItems {
		tables = append(tables, table)
	}
	for _, item := range named.TransactItems {
		for _, action := range item {
			tables = append(tables, action.TableName)
		}
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// A Fault is what happens to a request. The zero Fault is none.
type Fault struct {
	Before time.Duration // the request reaches the server this much later, even if the client has gone
	After  time.Duration // the reply reaches the client this much later
	Action Action
}

// Always returns a rule that lets f happen to each request.
func Always(f Fault) func(DynamoRequest) Fault {
	return func(DynamoRequest) Fault { return f }
}

// An Action is the way a request ends.
type Action int

// The actions. After those that lose a reply the client cannot know whether
// its write was done; nor after a 500, of which AWS says the same.
const (
	Forward               Action = iota // to the server, and its reply to the client
	LoseRequest                         // cut the connection; the server sees nothing
	LoseReply                           // cut the connection once the server is done
	Hang                                // no answer while the client waits; the server sees nothing
	ThrottleProvisioned                 // refuse as a table with too little provisioned capacity
	ThrottleOnDemand                    // refuse as an on-demand table that is still scaling
	ThrottleAccount                     // refuse as an account at its limit
	ServerError                         // 500; the server sees nothing
	ServerErrorAfterWrite               // 500 once the server is done
	Unavailable                         // 503; the server sees nothing
)

// A refusal is what the proxy says in the server's place.
type refusal struct {
	status        int
	kind, message string
}

// refusals holds the texts of AWS.
var refusals = map[Action]refusal{
	ThrottleProvisioned: {400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
		"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API."},
	ThrottleOnDemand: {400, "com.amazon.coral.availability#ThrottlingException",
		"Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly."},
	ThrottleAccount: {400, "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded",
		"Throughput exceeds the current throughput limit for your account."},
	ServerError:           {500, "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal server error"},
	ServerErrorAfterWrite: {500, "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal server error"},
	Unavailable:           {503, "com.amazon.coral.availability#ServiceUnavailableException", "Service unavailable"},
}

func (f refusal) reply() *reply {
	body, _ := json.Marshal(map[string]string{"__type": f.kind, "message": f.message}) // of strings: cannot fail
	return &reply{status: f.status, body: body}
}

// A reply is an answer to a request.
type reply struct {
	status int
	body   []byte
}

// send writes r with the checksum that the SDK verifies.
func (r *reply) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.body)), 10))
	w.WriteHeader(r.status)
	w.Write(r.body)
}
