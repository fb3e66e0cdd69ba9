package seqdynamo_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
)

// refused fails the test unless err has that code and says every word in one
// line.
func refused(t *testing.T, err error, code sequence.Code, words ...string) {
	t.Helper()
	if sequence.CodeOf(err) != code {
		t.Fatalf("error = %v, want code %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q does not say %q in one line", err, word)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	url := realtest.DynaliteURL(t)
	raw := rawClient(url)
	other := func(key types.KeySchemaElement, kind types.ScalarAttributeType) string {
		table := newTable()
		_, err := raw.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{key},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: key.AttributeName, AttributeType: kind}}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, raw, table)
		return table
	}
	hash := func(name string) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: types.KeyTypeHash}
	}
	foreign := other(hash("name"), "S")
	if _, err := seqdynamo.Open(t.Context(), options(url, foreign)); err != nil {
		t.Fatalf("an empty table with the right key: %v", err)
	}
	foreign = other(hash("name"), "S")
	put(t, raw, foreign, map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: "someone's"}})

	for name, c := range map[string]struct {
		o     seqdynamo.Options
		code  sequence.Code
		words []string
	}{
		"no table named":            {seqdynamo.Options{Endpoint: url}, sequence.CodeInvalid, []string{"table"}},
		"a table that is not there": {seqdynamo.Options{Endpoint: url, Table: "none"}, sequence.CodePrecondition, []string{`"none" does not exist`, "check its name"}},
		"a name no table can have":  {options(url, "a b"), sequence.CodeInternal, []string{"ValidationException"}},
		"another key":               {options(url, other(hash("id"), "S")), sequence.CodePrecondition, []string{"its key is not", "another table"}},
		"a key of numbers":          {options(url, other(hash("name"), "N")), sequence.CodePrecondition, []string{"its key is not"}},
		"foreign items":             {options(url, foreign), sequence.CodePrecondition, []string{"items that Tallystick did not write"}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := seqdynamo.Open(t.Context(), c.o)
			if store != nil {
				t.Error("it was opened")
			}
			refused(t, err, c.code, c.words...)
		})
	}
}

func put(t *testing.T, raw *dynamodb.Client, table string, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := raw.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func TestOpenWithoutAServerFailsSoon(t *testing.T) {
	proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	proxy.Cut()
	begin := time.Now()
	_, err := seqdynamo.Open(t.Context(), options(proxy.URL, "t"))
	refused(t, err, sequence.CodeUnavailable, "connection refused", `"t"`)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestManyOpenTheSameNewTable(t *testing.T) {
	url, table := realtest.DynaliteURL(t), newTable()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			store, err := seqdynamo.Open(t.Context(), options(url, table))
			if err != nil {
				t.Error(err)
				return
			}
			if err := store.Bump(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g, err := open(t, url, table).Generation(t.Context()); err != nil || g != 8 {
		t.Fatalf("generation = %d, %v, want 8", g, err)
	}
}

// What AWS says about rights and credentials comes through, and what was
// signed does not.
func TestRefusalsOfAWSAreToldWithoutSecrets(t *testing.T) {
	const secret = "FwoGZXIvYXdzEBYaDO"
	for kind, words := range map[string][]string{
		"AccessDeniedException":               {"AWS denies access", "User: arn:aws:iam::1:user/x is not authorized", "rights"},
		"InvalidSignatureException":           {"InvalidSignatureException", "check the credentials and the clock"},
		"UnrecognizedClientException":         {"UnrecognizedClientException", "check the credentials"},
		"ExpiredTokenException":               {"ExpiredTokenException", "check the credentials"},
		"MissingAuthenticationTokenException": {"check the credentials"},
	} {
		t.Run(kind, func(t *testing.T) {
			message := "x-amz-security-token:" + secret
			if kind == "AccessDeniedException" {
				message = "User: arn:aws:iam::1:user/x is not authorized to perform: dynamodb:DescribeTable"
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#%s","message":%q}`, kind, message)
			}))
			defer server.Close()
			_, err := seqdynamo.Open(t.Context(), options(server.URL, "t"))
			refused(t, err, sequence.CodeUnavailable, words...)
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q has the secret", err)
				}
			}
		})
	}
}

// A proxy on the way may answer in its own words.
func TestAnswersOfSomethingElseAreUnderstood(t *testing.T) {
	url, table := realtest.DynaliteURL(t), newTable()
	r := create(t, open(t, url, table), "orders")
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		want   sequence.Code
	}{
		{"a gateway that fails", func(w http.ResponseWriter) { http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway) }, sequence.CodeUnknown},
		{"a gateway that throttles", func(w http.ResponseWriter) { http.Error(w, "slow down", http.StatusTooManyRequests) }, sequence.CodeUnavailable},
		{"a success cut short", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"Attributes":{`)
		}, sequence.CodeUnknown},
		{"a success that is none", func(w http.ResponseWriter) { io.WriteString(w, "<html>welcome</html>") }, sequence.CodeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if strings.HasSuffix(q.Header.Get("X-Amz-Target"), ".UpdateItem") {
					c.answer(w)
					return
				}
				forward(t, w, q, url)
			}))
			defer server.Close()
			store := open(t, server.URL, table)
			_, err := store.Advance(t.Context(), advance(r))
			refused(t, err, c.want)
		})
	}
}

// forward passes a request on.
func forward(t *testing.T, w http.ResponseWriter, q *http.Request, url string) {
	out := q.Clone(q.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", strings.TrimPrefix(url, "http://")
	answer, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	io.Copy(w, answer.Body)
}

func TestItemEditedByHandIsNamed(t *testing.T) {
	url, table := realtest.DynaliteURL(t), newTable()
	store := open(t, url, table)
	create(t, store, "orders")
	raw := rawClient(url)
	_, err := raw.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table,
		Key:                       map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: "orders"}},
		UpdateExpression:          aws.String("SET epoch = :half"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":half": &types.AttributeValueMemberN{Value: "1.5"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Load(t.Context(), "orders")
	refused(t, err, sequence.CodeInternal, `"orders"`, "epoch", "natural number")
	_, _, _, err = store.List(t.Context(), "", "", 10)
	refused(t, err, sequence.CodeInternal, `"orders"`)
}
