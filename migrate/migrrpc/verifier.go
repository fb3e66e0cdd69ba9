package migrrpc

import (
	"context"
	"crypto/rand"
	"sync"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/migrate"
)

// A verifier runs verifications, one at a time, and remembers the last one.
type verifier struct {
	verify func(context.Context, migrate.VerifyOptions) (migrate.Verdict, error)
	life   context.Context // ends with close
	cancel context.CancelFunc
	under  sync.WaitGroup

	mu   sync.Mutex
	last Verification
}

func newVerifier(verify func(context.Context, migrate.VerifyOptions) (migrate.Verdict, error)) *verifier {
	v := &verifier{verify: verify}
	v.life, v.cancel = context.WithCancel(context.Background())
	return v
}

// close ends the verification that is running and waits for it.
func (v *verifier) close() {
	v.cancel()
	v.under.Wait()
}

// begin begins a verification.
func (v *verifier) begin(o migrate.VerifyOptions) (Verification, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.life.Err() != nil {
		return Verification{}, &Error{Code: connect.CodeUnavailable, Message: "the pod is stopping", Remedy: "ask another one"}
	}
	if v.last.ID != "" && !v.last.Done {
		return Verification{}, &Error{Code: connect.CodeFailedPrecondition, Message: "verification " + v.last.ID + " is running", Remedy: "ask for it by verification_id, or wait"}
	}
	v.last = Verification{ID: rand.Text()[:12]}
	o.Progress = v.reach
	v.under.Go(func() {
		verdict, err := v.verify(v.life, o)
		v.end(verdict, err)
	})
	return v.last, nil
}

func (v *verifier) reach(compared int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.Compared = compared
}

func (v *verifier) end(verdict migrate.Verdict, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.Done, v.last.Verdict, v.last.Err = true, verdict, err
	if err == nil {
		v.last.Compared = verdict.Compared
	}
}

// get returns the verification of an id.
func (v *verifier) get(id string) (Verification, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last.ID != id {
		return Verification{}, &Error{Code: connect.CodeNotFound, Field: "verification_id", Message: "this pod has no verification " + id, Remedy: "ask the pod that began it; the last verdict is in Status"}
	}
	return v.last, nil
}
