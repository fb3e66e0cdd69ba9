package realtest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/tallystick/tallystick/internal/realtest"
)

// behindProxy returns a proxy before the shared dynalite, a client that goes
// through it, and the name of a new table that holds item a with 1.
func behindProxy(t *testing.T) (p *realtest.DynamoProxy, db *dynamodb.Client, table string) {
	t.Helper()
	table = realtest.TableName()
	p = realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	db = client(p.URL)
	createTable(t, db, table)
	put(t, db, table, item("a", 1))
	p.ResetCounts()
	return p, db, table
}

// set writes n into item a.
func set(ctx context.Context, db *dynamodb.Client, table string, n int) error {
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item("a", n)})
	return err
}

func TestDynamoProxyCountsByOperationAndTable(t *testing.T) {
	p, db, table := behindProxy(t)
	other := realtest.TableName()
	createTable(t, db, other)
	p.ResetCounts()

	put(t, db, table, item("b", 1))
	put(t, db, table, item("b", 2))
	put(t, db, other, item("b", 3))
	value(t, db, table, "b")
	writes := []types.WriteRequest{{PutRequest: &types.PutRequest{Item: item("c", 1)}}}
	_, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{table: writes, other: writes},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		operation, table string
		want             int
	}{
		{"PutItem", table, 2}, {"PutItem", other, 1}, {"PutItem", "", 3},
		{"GetItem", table, 1}, {"GetItem", other, 0},
		{"BatchWriteItem", table, 1}, {"BatchWriteItem", other, 1}, {"BatchWriteItem", "", 1},
		{"", table, 4}, {"", other, 2}, {"", "", 5},
	} {
		if got := p.Count(c.operation, c.table); got != c.want {
			t.Errorf("Count(%q, %q) = %d, want %d", c.operation, c.table, got, c.want)
		}
	}
}

// Each action fails the write as it says, and leaves behind what it says.
func TestDynamoProxyActionsDoWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		action  realtest.Action
		code    string // of the API's error; "": another error
		written bool
	}{
		"LoseRequest":           {realtest.LoseRequest, "", false},
		"LoseReply":             {realtest.LoseReply, "", true},
		"ThrottleProvisioned":   {realtest.ThrottleProvisioned, "ProvisionedThroughputExceededException", false},
		"ThrottleOnDemand":      {realtest.ThrottleOnDemand, "ThrottlingException", false},
		"ThrottleAccount":       {realtest.ThrottleAccount, "RequestLimitExceeded", false},
		"ServerError":           {realtest.ServerError, "InternalServerError", false},
		"ServerErrorAfterWrite": {realtest.ServerErrorAfterWrite, "InternalServerError", true},
		"Unavailable":           {realtest.Unavailable, "ServiceUnavailableException", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, db, table := behindProxy(t)
			p.Inject(realtest.Always(realtest.Fault{Action: c.action}))
			err := set(t.Context(), db, table, 2)
			api, ok := errors.AsType[smithy.APIError](err)
			switch {
			case err == nil:
				t.Error("the write succeeded")
			case ok != (c.code != "") || ok && api.ErrorCode() != c.code:
				t.Errorf("failed with %v, want code %q", err, c.code)
			}
			p.Inject(nil)
			if got := value(t, db, table, "a") == "2"; got != c.written {
				t.Errorf("written: %t, want %t", got, c.written)
			}
		})
	}
}

func TestDynamoProxyInjectsByRequest(t *testing.T) {
	p, db, table := behindProxy(t)
	p.Inject(func(r realtest.DynamoRequest) realtest.Fault {
		if r.Operation == "PutItem" && r.Table() == table && r.Number == 2 {
			return realtest.Fault{Action: realtest.ThrottleProvisioned}
		}
		return realtest.Fault{}
	})
	for i, want := range []bool{true, false, true} {
		if got := set(t.Context(), db, table, i) == nil; got != want {
			t.Errorf("write %d succeeded: %t, want %t", i+1, got, want)
		}
	}
}

func TestDynamoProxyLetsARuleCutIt(t *testing.T) {
	p, db, table := behindProxy(t)
	p.Inject(func(realtest.DynamoRequest) realtest.Fault {
		p.Inject(nil)
		p.Cut()
		return realtest.Fault{Action: realtest.LoseRequest}
	})
	if set(t.Context(), db, table, 2) == nil {
		t.Error("the write at which the rule cut succeeded")
	}
	p.Restore()
	if got := value(t, db, table, "a"); got != "1" {
		t.Errorf("it wrote %s", got)
	}
}

// A client that gives up does not call its write back: the late one is what
// fences have to stop.
func TestDynamoProxyDeliversLateWritesOfClientsThatGaveUp(t *testing.T) {
	p, db, table := behindProxy(t)
	p.Inject(realtest.Always(realtest.Fault{Before: 200 * time.Millisecond}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := set(ctx, db, table, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want a time-out, got %v", err)
	}
	p.Inject(nil)
	if got := value(t, db, table, "a"); got != "1" {
		t.Fatalf("the write was not delayed: %s", got)
	}
	for limit := time.Now().Add(10 * time.Second); value(t, db, table, "a") != "2"; {
		if time.Now().After(limit) {
			t.Fatal("the delayed write never came")
		}
	}
}

func TestDynamoProxyDelaysReplies(t *testing.T) {
	p, db, table := behindProxy(t)
	const delay = 50 * time.Millisecond
	p.Inject(realtest.Always(realtest.Fault{After: delay}))
	start := time.Now()
	if err := set(t.Context(), db, table, 2); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("answered after %v", took)
	}
}

func TestDynamoProxyHangsUntilTheClientGivesUp(t *testing.T) {
	p, db, table := behindProxy(t)
	p.Inject(realtest.Always(realtest.Fault{Action: realtest.Hang}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := set(ctx, db, table, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want a time-out, got %v", err)
	}
	p.Inject(nil)
	if got := value(t, db, table, "a"); got != "1" {
		t.Errorf("it wrote %s", got)
	}
}

func TestDynamoProxyRefusesConnectionsWhileCut(t *testing.T) {
	p, _, table := behindProxy(t)
	p.Cut()
	// One that has connections may find them broken instead.
	if err := set(t.Context(), client(p.URL), table, 2); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("want a refused connection, got %v", err)
	}
	p.Restore()
	if err := set(t.Context(), client(p.URL), table, 3); err != nil {
		t.Errorf("after it was restored: %v", err)
	}
}

func TestDynamoProxyCutEndsRequestsThatWait(t *testing.T) {
	p, db, table := behindProxy(t)
	arrived := make(chan struct{}, 1)
	p.Inject(func(realtest.DynamoRequest) realtest.Fault {
		arrived <- struct{}{}
		return realtest.Fault{Action: realtest.Hang}
	})
	done := make(chan error, 1)
	go func() { done <- set(context.Background(), db, table, 2) }()
	<-arrived
	p.Cut()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the write succeeded")
		}
	case <-time.After(10 * time.Second):
		t.Error("the write still waits")
	}
}

func TestDynamoProxyDescribesARestoredTable(t *testing.T) {
	p, db, table := behindProxy(t)
	id := func() string {
		out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(out.Table.TableId)
	}
	original := id()
	if original == "" {
		t.Error("the server has no TableId")
	}
	p.SetTableID(table, "restored")
	if got := id(); got != "restored" {
		t.Errorf("TableId is %q, want restored", got)
	}
	p.SetTableID(table, "")
	if got := id(); got != original {
		t.Errorf("TableId is %q, want %q again", got, original)
	}
}

func TestDynamoProxyOmitsOldItems(t *testing.T) {
	p, db, table := behindProxy(t)
	refused := func() map[string]types.AttributeValue {
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: &table, Item: item("a", 9), ConditionExpression: aws.String("attribute_not_exists(n)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return failedCondition(t, err).Item
	}
	if got := number(refused()); got != "1" {
		t.Errorf("old item %q, want 1", got)
	}
	p.OmitOldItems(true)
	if got := refused(); got != nil {
		t.Errorf("old item %v, want none", got)
	}
}

// Two proxies before one server: one client cut off, the other not.
func TestDynamoProxiesAreCutOneByOne(t *testing.T) {
	p, db, table := behindProxy(t)
	other := client(realtest.NewDynamoProxy(t, realtest.DynaliteURL(t)).URL)
	p.Cut()
	if set(t.Context(), db, table, 2) == nil {
		t.Error("a write through the cut proxy succeeded")
	}
	if err := set(t.Context(), other, table, 3); err != nil {
		t.Errorf("a write through the other: %v", err)
	}
}
