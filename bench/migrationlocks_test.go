package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestFaultMigrationLocksUnderSIGSTOP has processes contend for slots while
// each is stopped again and again for longer than a claim lives, and goes on.
func TestFaultMigrationLocksUnderSIGSTOP(t *testing.T) {
	histories, calls := 3, 40
	if full {
		histories, calls = 20, 100
	}
	for range histories {
		h, saved, late := stoppedHistory(t, calls, false)
		if got := migtest.CheckClaims(h); got != porcupine.Ok {
			t.Fatalf("the history is %s", got)
		}
		if saved == 0 || late == 0 {
			t.Errorf("%d saves by owners and %d by others: nothing was shown", saved, late)
		}
		t.Logf("%d calls, %d saves by owners, %d too late", len(h), saved, late)
	}
}

// TestFaultMigrationLocksCatchUnfencedSave: the same finds a process that saves
// without a look at whose the slot is.
func TestFaultMigrationLocksCatchUnfencedSave(t *testing.T) {
	for range 20 {
		if h, _, _ := stoppedHistory(t, 40, true); migtest.CheckClaims(h) == porcupine.Illegal {
			return
		}
	}
	t.Fatal("the fault was not found in 20 histories")
}

// stoppedHistory returns the history of six processes that are being stopped,
// and how many of their saves were done and how many refused.
func stoppedHistory(t *testing.T, calls int, unfenced bool) (h []porcupine.Operation, saved, late int64) {
	t.Helper()
	job := claimerJob{Unfenced: unfenced}
	job.URL, job.Prefix = realtest.RedisPrefix(t)
	first, err := job.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	err = errors.Join(first.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart), first.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var stopping sync.WaitGroup
	pods := make([]migrate.State, 6)
	remotes := make([]*remoteState, len(pods))
	for i := range pods {
		cmd, remote := job.start(t)
		defer cmd.Wait()
		defer remote.client.Close()
		pods[i], remotes[i] = remote, remote
		stopping.Go(func() { stopOften(ctx, cmd.Process) })
	}
	h = migtest.ClaimHistory(t, slotsOfLocks.Slots, calls, pods...)
	stop()
	stopping.Wait()
	for _, r := range remotes {
		saved, late = saved+r.saved.Load(), late+r.late.Load()
	}
	return h, saved, late
}

// stopOften stops a process for longer than a claim lives, again and again.
func stopOften(ctx context.Context, p *os.Process) {
	for ctx.Err() == nil {
		time.Sleep(rand.N(6 * migtest.ClaimTTL))
		p.Signal(syscall.SIGSTOP)
		time.Sleep(migtest.ClaimTTL + rand.N(migtest.ClaimTTL))
		p.Signal(syscall.SIGCONT)
	}
}

// start starts a claimer.
func (j claimerJob) start(t *testing.T) (*exec.Cmd, *remoteState) {
	t.Helper()
	orders, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), claimerEnv+"="+string(orders))
	cmd.Stderr = os.Stderr
	realtest.DieWithTest(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &remoteState{client: rpc.NewClient(pipes{out, in})}
}

// A remoteState is a [migrate.State] in another process.
type remoteState struct {
	migrate.State // nil: histories call the methods below and no others
	client        *rpc.Client
	saved, late   atomic.Int64 // saves that were done, and refused
}

// do calls the other process. Where ctx ends first, the call goes on there.
func (r *remoteState) do(ctx context.Context, in ClaimerCall) (migrate.Claim, error) {
	var out ClaimerReply
	call := r.client.Go("Claimer.Do", in, &out, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return migrate.Claim{}, ctx.Err()
	}
	if call.Error != nil {
		return migrate.Claim{}, call.Error
	}
	return out.Claim, refusals[out.Error]
}

func (r *remoteState) Claim(ctx context.Context, req migrate.ClaimRequest) (migrate.Claim, error) {
	return r.do(ctx, ClaimerCall{Op: "claim", Request: req})
}

func (r *remoteState) Renew(ctx context.Context, c migrate.Claim) error {
	_, err := r.do(ctx, ClaimerCall{Op: "renew", Claim: c})
	return err
}

func (r *remoteState) Save(ctx context.Context, c migrate.Claim, p migrate.Progress) (bool, error) {
	_, err := r.do(ctx, ClaimerCall{Op: "save", Claim: c, Progress: p})
	switch {
	case err == nil:
		r.saved.Add(1)
	case errors.Is(err, migrate.ErrNotHeld):
		r.late.Add(1)
	}
	return false, err
}

func (r *remoteState) Release(ctx context.Context, c migrate.Claim) error {
	_, err := r.do(ctx, ClaimerCall{Op: "release", Claim: c})
	return err
}

func (r *remoteState) Finish(ctx context.Context, c migrate.Claim, p migrate.Progress, _ migrate.Span) error {
	_, err := r.do(ctx, ClaimerCall{Op: "finish", Claim: c, Progress: p})
	return err
}
