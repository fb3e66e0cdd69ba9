package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migredis"
)

// claimerEnv makes the test binary a pod that claims, renews, saves, releases
// and finishes slots as it is told on standard input. It holds a claimerJob as
// JSON.
const claimerEnv = "TALLYSTICK_BENCH_CLAIMER"

// A claimerJob is what a claimer is told at its start.
type claimerJob struct {
	URL, Prefix string
	Unfenced    bool // it saves whether or not the claim is still its own
}

// slotsOfLocks is the migration that claimers contend in.
var slotsOfLocks = migrate.PlanRecord{Name: "locks", Hash: "locks", Slots: migrate.Span{Lo: 0, Hi: 4}, Sweep: migrate.Span{Lo: 4, Hi: 4}}

// open opens the state as a pod.
func (j claimerJob) open(ctx context.Context) (*migredis.State, error) {
	plan := migrate.Plan{State: migrate.StatePlan{URL: j.URL, Prefix: j.Prefix, ProgressTTL: migrate.Duration(time.Hour)}}
	s, err := migredis.Open(ctx, plan, migrate.Axis{By: migrate.ByULID, Width: time.Hour.Milliseconds()})
	if err != nil {
		return nil, err
	}
	if err := s.Open(ctx, slotsOfLocks); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// claimerMain is the main of a claimer. It ends with its standard input.
func claimerMain() int {
	var job claimerJob
	err := json.Unmarshal([]byte(os.Getenv(claimerEnv)), &job)
	if err == nil {
		err = job.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "claimer:", err)
		return 1
	}
	return 0
}

func (j claimerJob) serve() error {
	s, err := j.open(context.Background())
	if err != nil {
		return err
	}
	defer s.Close()
	opts, err := redis.ParseURL(j.URL)
	if err != nil {
		return err
	}
	c := &Claimer{job: j, state: s, raw: redis.NewClient(opts)}
	defer c.raw.Close()
	server := rpc.NewServer()
	if err := server.Register(c); err != nil {
		return err
	}
	server.ServeConn(pipes{os.Stdin, os.Stdout})
	return nil
}

// pipes is a connection.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

// Close closes both.
func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.WriteCloser.Close()) }

// A Claimer does a pod's calls in its own process.
type Claimer struct {
	job   claimerJob
	state *migredis.State
	raw   *redis.Client
}

// A ClaimerCall is a call of [migrate.Board].
type ClaimerCall struct {
	Op       string
	Request  migrate.ClaimRequest
	Claim    migrate.Claim
	Progress migrate.Progress
}

// A ClaimerReply is what came of it.
type ClaimerReply struct {
	Claim migrate.Claim
	Error string // one of refusals, "": none
}

// refusals are the errors that a history tells apart.
var refusals = map[string]error{
	"not held": migrate.ErrNotHeld, "no slot": migrate.ErrNoSlot, "transient": migrate.ErrTransient,
}

// Do does a call.
func (c *Claimer) Do(in ClaimerCall, out *ClaimerReply) (err error) {
	ctx := context.Background()
	switch in.Op {
	case "claim":
		out.Claim, err = c.state.Claim(ctx, in.Request)
	case "renew":
		err = c.state.Renew(ctx, in.Claim)
	case "save":
		if _, err = c.state.Save(ctx, in.Claim, in.Progress); errors.Is(err, migrate.ErrNotHeld) && c.job.Unfenced {
			err = c.overwrite(ctx, in.Claim, in.Progress)
		}
	case "release":
		err = c.state.Release(ctx, in.Claim)
	case "finish":
		err = c.state.Finish(ctx, in.Claim, in.Progress, migrate.Span{})
	}
	for name, known := range refusals {
		if errors.Is(err, known) {
			out.Error, err = name, nil
		}
	}
	return err
}

// overwrite is the planted fault: it saves progress where anything is saved,
// without a look at whose the slot is.
func (c *Claimer) overwrite(ctx context.Context, claim migrate.Claim, p migrate.Progress) error {
	axis := migrate.Axis{By: migrate.ByULID, Width: time.Hour.Milliseconds()}
	key := c.job.Prefix + axis.Name(claim.Slot) + ":states"
	text, err := c.raw.Get(ctx, key).Result()
	if err != nil {
		return fmt.Errorf("%w: %w", migrate.ErrTransient, err) // nothing was saved yet, or it is finished
	}
	var saved map[string]any
	if err := json.Unmarshal([]byte(text), &saved); err != nil {
		return err
	}
	saved["counts"], saved["last_id"] = p.Counts, p.Last.String()
	b, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return c.raw.SetXX(ctx, key, b, time.Hour).Err()
}
