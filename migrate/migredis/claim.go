package migredis

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// Claim implements [migrate.Board]. It fails with [migrate.ErrWrongStatus]
// unless the status is IN_PROGRESS: a claim that came in after the last one
// ended would be live in a migration that is stopped.
func (s *State) Claim(ctx context.Context, req migrate.ClaimRequest) (migrate.Claim, error) {
	plan, err := s.written(ctx)
	if err != nil {
		return migrate.Claim{}, err
	}
	within := board.Intersect(req.Within, of(plan, req.Pass))
	c := migrate.Claim{Pass: req.Pass, Token: rand.Text(), TTL: req.TTL, Deadline: time.Now().Add(req.TTL - req.TTL/10)}
	reply, err := s.registered(ctx, "claim", "claim", args{"pass": req.Pass, "worker": req.Worker, "token": c.Token, "ttl": millis(req.TTL),
		"lo": within.Lo, "hi": within.Hi, "oldest": req.Oldest})
	if err != nil {
		return migrate.Claim{}, err
	}
	e, slot, err := decodeEntry(reply[1].(string))
	if err != nil {
		return migrate.Claim{}, fmt.Errorf("claim: %w", err)
	}
	c.Slot, c.Epoch = slot, uint64(reply[0].(int64))
	if c.Progress, err = decodeProgress(reply[2].(string), e.Lo); err != nil {
		return migrate.Claim{}, fmt.Errorf("claim %s: %w", s.axis.Name(slot), err)
	}
	return c, nil
}

// of returns the slots of a pass.
func of(plan migrate.PlanRecord, pass migrate.Pass) migrate.Span {
	if pass == migrate.Sweeping {
		return plan.Sweep
	}
	return plan.Slots
}

// owner returns the arguments that tell whose claim it is.
func (s *State) owner(c migrate.Claim) args {
	epoch := strconv.FormatUint(c.Epoch, 10)
	return args{"pass": c.Pass, "slot": s.axis.Name(c.Slot), "holder": epoch + " " + c.Token + " ", "claim": epoch, "token": c.Token,
		"ttl": millis(c.TTL), "progress_ttl": millis(time.Duration(s.plan.State.ProgressTTL))}
}

// owning runs a script as the owner of c. Its error names the slot.
func (s *State) owning(ctx context.Context, op string, c migrate.Claim, a args) ([]any, error) {
	return s.registered(ctx, op+" "+s.axis.Name(c.Slot), op, a)
}

// at adds the arguments of progress to a.
func (a args) at(p migrate.Progress, status migrate.Status) error {
	text, err := encodeProgress(p, status)
	if err != nil {
		return err
	}
	a["states"], a["read"] = text, p.Counts.Read
	a.key("last", p.Last)
	a.key("end_", p.Lo)
	return nil
}

// key adds a key, unless it is none.
func (a args) key(name string, k migrate.Key) {
	if text := keyText(k); text != nil {
		a[name] = *text
	}
}

// Renew implements [migrate.Board].
func (s *State) Renew(ctx context.Context, c migrate.Claim) error {
	_, err := s.owning(ctx, "renew", c, s.owner(c))
	return err
}

// Save implements [migrate.Board]. It can be repeated.
func (s *State) Save(ctx context.Context, c migrate.Claim, p migrate.Progress) (wanted bool, err error) {
	a := s.owner(c)
	if err := a.at(p, migrate.InProgress); err != nil {
		return false, err
	}
	reply, err := s.owning(ctx, "save", c, a)
	return err == nil && reply[1].(int64) == 1, err
}

// Split implements [migrate.Board]. It can be repeated. It takes the wish of
// an idle worker as granted.
func (s *State) Split(ctx context.Context, c migrate.Claim, p migrate.Progress, rest migrate.Slot, begin migrate.Progress) error {
	if rest.Index != c.Slot.Index || rest.Below == nil || !rest.Below.Equal(p.Lo) {
		return fmt.Errorf("split %s: %s is not what is left of it", s.axis.Name(c.Slot), s.axis.Name(rest))
	}
	a := s.owner(c)
	a["rest"] = s.axis.Name(rest)
	a.key("rest_end", begin.Lo)
	if begin.Last != nil || begin.Counts != (migrate.Counts{}) {
		text, err := encodeProgress(begin, migrate.InProgress)
		if err != nil {
			return err
		}
		a["rest_states"] = text
	}
	if err := a.at(p, migrate.InProgress); err != nil {
		return err
	}
	_, err := s.owning(ctx, "split", c, a)
	return err
}

// Want implements [migrate.Board].
func (s *State) Want(ctx context.Context, d time.Duration) error {
	_, err := s.registered(ctx, "want", "want", args{"ttl": millis(d)})
	return err
}
