package migredis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/migrate"
)

var _ migrate.State = (*State)(nil)

// A State is a [migrate.State] in Redis, as one pod sees it.
type State struct {
	rdb     *redis.Client
	scripts library
	plan    migrate.Plan
	axis    migrate.Axis

	mu     sync.Mutex
	run    string // that this pod belongs to; "": it is not open
	epoch  int64  // the greatest it has seen
	record migrate.PlanRecord
}

// Open connects to the Redis of plan and refuses one that cannot keep a state
// safely; see [State.Preflight]. Slots are named by axis.
func Open(ctx context.Context, plan migrate.Plan, axis migrate.Axis) (*State, error) {
	opts, err := redis.ParseURL(plan.State.URL)
	if err != nil {
		return nil, &migrate.PlanError{Field: "state.url", Message: "is no Redis URL", Remedy: "write it like redis://HOST:6379/0"}
	}
	opts.MaxRetries = -1 // whether a call may be repeated is for its caller to know
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.DialerRetries = 1
	silence()
	s := &State{rdb: redis.NewClient(opts), scripts: scripts, plan: plan, axis: axis}
	if err := s.Preflight(ctx); err != nil {
		return nil, errors.Join(err, s.rdb.Close())
	}
	return s, nil
}

// silence keeps go-redis, which knows only one logger for the process, from
// writing to stderr what is returned as an error, too.
var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close implements [migrate.State].
func (s *State) Close() error { return s.rdb.Close() }

// stemOf returns what all keys begin with. After a letter, a digit or a hyphen a
// colon is added: a slot's name begins with them, so that the keys of "a1" might
// be those of "a" and another slot.
func stemOf(prefix string) string {
	if prefix == "" {
		return ""
	}
	last := prefix[len(prefix)-1]
	if last == '-' || '0' <= last && last <= '9' || 'a' <= last|0x20 && last|0x20 <= 'z' {
		return prefix + ":"
	}
	return prefix
}

// args are the arguments of a script, by name.
type args map[string]any

// call runs a script and returns its reply, which begins with the epoch.
func (s *State) call(ctx context.Context, op, script string, a args) ([]any, error) {
	s.mu.Lock()
	all := args{"run": s.run, "epoch": s.epoch, "width": s.axis.Width, "layout": layout(s.axis)}
	s.mu.Unlock()
	maps.Copy(all, a)
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	reply, err := s.scripts[script].Run(ctx, s.rdb, []string{stemOf(s.plan.State.Prefix)}, text).Slice()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, s.meaning(ctx, err))
	}
	s.saw(reply[0].(int64))
	return reply, nil
}

// registered runs a script that needs the pod to be open.
func (s *State) registered(ctx context.Context, op, script string, a args) ([]any, error) {
	s.mu.Lock()
	open := s.run != ""
	s.mu.Unlock()
	if !open {
		return nil, fmt.Errorf("%s: the state is not open: %w", op, migrate.ErrWrongStatus)
	}
	return s.call(ctx, op, script, a)
}

// saw notes an epoch, once the pod belongs to a run.
func (s *State) saw(epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != "" {
		s.epoch = max(s.epoch, epoch)
	}
}

// joined makes the pod one of a run.
func (s *State) joined(run string, epoch int64, record migrate.PlanRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.epoch, s.record = run, max(s.epoch, epoch), record
}

func (s *State) joinedPlan() migrate.PlanRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// layout returns which of migrate.Axis.Name's forms the slots have.
func layout(a migrate.Axis) string {
	switch {
	case a.By == migrate.ByInteger:
		return "integer"
	case a.Width%3_600_000 == 0:
		return "hour"
	case a.Width%60_000 == 0:
		return "minute"
	}
	return "milli"
}

// Open implements [migrate.State].
func (s *State) Open(ctx context.Context, plan migrate.PlanRecord) error {
	if err := s.Holds(migrate.Survey{Slots: plan.Slots, Sweep: plan.Sweep}); err != nil {
		return err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	reply, err := s.call(ctx, "open", "open", args{"new": rand.Text(), "plan": string(text)})
	if err != nil {
		return err
	}
	var theirs migrate.PlanRecord
	if err := json.Unmarshal([]byte(reply[2].(string)), &theirs); err != nil {
		return fmt.Errorf("open: the plan in the state: %w", err)
	}
	if theirs.Hash != plan.Hash {
		return fmt.Errorf("open: %w", &migrate.OtherPlanError{Theirs: theirs, Ours: plan})
	}
	s.joined(reply[1].(string), reply[0].(int64), theirs)
	return nil
}

// fits reports whether Lua can compute with the indexes and positions of x.
func fits(a migrate.Axis, x migrate.Span) bool {
	limit := int64(1<<53) / a.Width
	return x.Lo > -limit && x.Hi < limit && math.MinInt64 < x.Lo
}

// Reset implements [migrate.State]. The epoch stays, so that no claim from
// before can be one from after.
func (s *State) Reset(ctx context.Context) error {
	_, err := s.call(ctx, "reset", "reset", nil)
	if err == nil {
		s.mu.Lock()
		s.run = ""
		s.mu.Unlock()
	}
	return err
}

// replies are the error codes of the scripts.
var replies = map[string]error{
	"LOST":    migrate.ErrStateLost,
	"NOTHELD": migrate.ErrNotHeld,
	"NOSLOT":  migrate.ErrNoSlot,
	"STATUS":  migrate.ErrWrongStatus,
}

// meaning returns what an error of Redis or on the way to it means.
func (s *State) meaning(ctx context.Context, err error) error {
	refused, ok := errors.AsType[redis.Error](err)
	if !ok {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%w: Redis at %s: %w", migrate.ErrTransient, s.rdb.Options().Addr, err)
	}
	code, text, _ := strings.Cut(refused.Error(), " ")
	text = strings.TrimSpace(text)
	known, ok := replies[code]
	switch {
	case ok && text == "":
		return known
	case ok:
		return fmt.Errorf("%s: %w", text, known)
	case code == "WRONGPASS" || code == "NOAUTH" || code == "NOPERM":
		return fmt.Errorf("the Redis at %s refuses the credentials of state.url (%s)", s.rdb.Options().Addr, code)
	case code == "ERR":
		return fmt.Errorf("the Redis at %s: %w", s.rdb.Options().Addr, err)
	}
	return fmt.Errorf("%w: Redis at %s: %w", migrate.ErrTransient, s.rdb.Options().Addr, err) // LOADING, OOM, READONLY and the like
}
