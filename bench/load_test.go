package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/history"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// loadEnv holds the orders of a client process, as JSON.
const loadEnv = "TALLYSTICK_BENCH_LOAD"

// A load is what a client process does: callers ask for values of sequences in
// turn, together at rate values a second, and log each.
type load struct {
	Servers   []string
	Sequences []string
	Dir       string // of the logs: Dir/SEQUENCE/CLIENT/CALLER.log
	Client    string
	Callers   int
	Rate      int
	Capacity  int // events a log has room for
}

// start runs l in a process of its own.
func (l load) start(t *testing.T) *exec.Cmd {
	t.Helper()
	orders, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+string(orders))
	cmd.Stderr = os.Stderr
	realtest.DieWithTest(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// loadMain is the main of a client process. It ends with SIGTERM, cleanly.
func loadMain() int {
	var l load
	if err := json.Unmarshal([]byte(os.Getenv(loadEnv)), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := l.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, l.Client, err)
		return 1
	}
	return 0
}

func (l load) run(ctx context.Context) error {
	leaser, err := newWanderer(l.Servers)
	if err != nil {
		return err
	}
	client := sequence.NewClient(leaser, sequence.ClientOptions{ID: l.Client})
	begun := time.Now()
	var callers sync.WaitGroup
	for i := range l.Callers {
		logs := make([]*history.Log, len(l.Sequences))
		for k, name := range l.Sequences {
			if logs[k], err = history.Create(filepath.Join(l.Dir, name, l.Client), strconv.Itoa(i), l.Capacity); err != nil {
				return err
			}
		}
		callers.Go(func() { l.call(ctx, client, logs, begun) })
	}
	callers.Wait()
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return client.Close(end)
}

// call is one caller. Errors are not fatal: servers are being killed.
func (l load) call(ctx context.Context, client *sequence.Client, logs []*history.Log, begun time.Time) {
	const tick = 10 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	each := max(1, l.Rate/l.Callers*int(tick)/int(time.Second))
	handles := make([]*sequence.Sequence, len(l.Sequences))
	for k, name := range l.Sequences {
		handles[k] = client.Sequence(name)
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		k := turn % len(handles)
		for range each {
			start := time.Since(begun)
			v, err := handles[k].Next(ctx)
			if err != nil {
				break
			}
			if !logs[k].Append(history.Event{Start: start, End: time.Since(begun), Value: v}) {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// A wanderer leases from another server each time, chosen at random, and
// returns leases to any.
type wanderer []*seqrpc.Client

func newWanderer(servers []string) (wanderer, error) {
	var w wanderer
	for _, url := range servers {
		c, err := seqrpc.Dial(url, seqrpc.Options{Timeout: 2 * time.Second})
		if err != nil {
			return nil, err
		}
		w = append(w, c)
	}
	return w, nil
}

func (w wanderer) pick() *seqrpc.Client { return w[rand.IntN(len(w))] }

func (w wanderer) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	return w.pick().Lease(ctx, req)
}

func (w wanderer) Return(ctx context.Context, req sequence.ReturnRequest) error {
	return w.pick().Return(ctx, req)
}
