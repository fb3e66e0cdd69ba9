package migrrpc

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/migrate"
)

func code(err error) connect.Code {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return 0
	}
	return e.Code
}

func TestVerificationsRunOneAtATimeAndEndWithThePod(t *testing.T) {
	v := newVerifier(func(ctx context.Context, o migrate.VerifyOptions) (migrate.Verdict, error) {
		o.Progress(7)
		<-ctx.Done()
		return migrate.Verdict{}, ctx.Err()
	})
	first, err := v.begin(migrate.VerifyOptions{Mode: "full"})
	if err != nil || first.ID == "" || first.Done {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := v.begin(migrate.VerifyOptions{Mode: "full"}); code(err) != connect.CodeFailedPrecondition {
		t.Errorf("a second one beside it: %v", err)
	}
	if _, err := v.get("other"); code(err) != connect.CodeNotFound {
		t.Errorf("an id nobody knows: %v", err)
	}
	v.close()
	last, err := v.get(first.ID)
	if err != nil || !last.Done || last.Compared != 7 || !errors.Is(last.Err, context.Canceled) {
		t.Errorf("after close: %+v, %v", last, err)
	}
	if _, err := v.begin(migrate.VerifyOptions{Mode: "full"}); code(err) != connect.CodeUnavailable {
		t.Errorf("one after close: %v", err)
	}
}

func TestAVerificationThatIsDoneKeepsItsVerdict(t *testing.T) {
	v := newVerifier(func(context.Context, migrate.VerifyOptions) (migrate.Verdict, error) {
		return migrate.Verdict{Clean: true, Compared: 5}, nil
	})
	for range 2 {
		begun, err := v.begin(migrate.VerifyOptions{Mode: "full"})
		if err != nil {
			t.Fatal(err)
		}
		v.under.Wait()
		got, err := v.get(begun.ID)
		if err != nil || !got.Done || !got.Verdict.Clean || got.Compared != 5 || got.Err != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
