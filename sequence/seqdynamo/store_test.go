package seqdynamo_test

import (
	"crypto/rand"
	"flag"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqdynamo"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// TestMain makes the suite's model test a third as long as elsewhere, unless
// told otherwise: each of its steps is a request, and it runs twice.
func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "30") // the command line comes after it
	os.Exit(m.Run())
}

func TestStore(t *testing.T) {
	seqtest.TestStore(t, func(t *testing.T) sequence.Store { return open(t, realtest.DynaliteURL(t), newTable()) })
}

func TestStoreWithoutOldItems(t *testing.T) {
	seqtest.TestStore(t, func(t *testing.T) sequence.Store {
		proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
		proxy.OmitOldItems(true)
		return open(t, proxy.URL, newTable())
	})
}

// newTable returns a name no table has.
func newTable() string { return "sequences-" + rand.Text() }

// options names a table of a server that wants no real credentials.
func options(url, table string) seqdynamo.Options {
	return seqdynamo.Options{Endpoint: url, Table: table, Create: true}
}

// open opens a table, which is made if it does not exist.
func open(t testing.TB, url, table string) *seqdynamo.Store {
	t.Helper()
	store, err := seqdynamo.Open(t.Context(), options(url, table))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// rawClient returns a client to do things behind the store's back.
func rawClient(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{BaseEndpoint: &url, Region: "local", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
}

// record returns a new sequence's record.
func record(t testing.TB, name string) sequence.Record {
	t.Helper()
	d, err := sequence.Spec{Name: name}.Define()
	if err != nil {
		t.Fatal(err)
	}
	return sequence.Record{Definition: d, Epoch: 1, Version: 1, State: sequence.StateOpen, Next: d.Start, Nonce: sequence.NewNonce()}
}

// create makes a sequence.
func create(t testing.TB, store sequence.Store, name string) sequence.Record {
	t.Helper()
	r := record(t, name)
	if err := store.Create(t.Context(), []sequence.Record{r})[0]; err != nil {
		t.Fatal(err)
	}
	return r
}

// advance returns the move of r by 100.
func advance(r sequence.Record) sequence.Advance {
	return sequence.Advance{Name: r.Definition.Name, Epoch: r.Epoch, Version: r.Version, Delta: 100, Low: 1, High: 1 << 40, Nonce: sequence.NewNonce()}
}

// swapped returns r as a Swap may leave it.
func swapped(r sequence.Record) sequence.Record {
	r.Next, r.Nonce = r.Next+1000, sequence.NewNonce()
	return r
}
