package migredis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// Move implements [migrate.Switch].
func (s *State) Move(ctx context.Context, generation uint64, from, to migrate.Status) error {
	plan, err := s.written(ctx)
	if err != nil {
		return err
	}
	_, err = s.registered(ctx, fmt.Sprintf("move from %s to %s", from, to), "move", args{
		"generation": strconv.FormatUint(generation, 10), "from": from, "to": to, "condition": board.Edge(from, to),
		"slots_lo": plan.Slots.Lo, "slots_hi": plan.Slots.Hi, "sweep_lo": plan.Sweep.Lo, "sweep_hi": plan.Sweep.Hi})
	return err
}

// Lead implements [migrate.Switch]. The names of keepers must differ: who
// comes with the name of the one that leads is taken for it.
func (s *State) Lead(ctx context.Context, keeper string, ttl time.Duration) (migrate.Term, error) {
	reply, err := s.registered(ctx, "lead", "lead", args{"keeper": keeper, "ttl": millis(ttl)})
	if err != nil {
		return migrate.Term{}, err
	}
	epoch, err := strconv.ParseUint(reply[1].(string), 10, 64)
	return migrate.Term{Keeper: keeper, Epoch: epoch}, err
}

// Advance implements [migrate.Switch]. The phase it is in already is fine; one
// from before is refused with [migrate.ErrWrongStatus].
func (s *State) Advance(ctx context.Context, t migrate.Term, to migrate.Phase) error {
	_, err := s.registered(ctx, "advance to "+string(to), "advance", args{"keeper": leader(t), "to": to})
	return err
}

// Resign implements [migrate.Switch].
func (s *State) Resign(ctx context.Context, t migrate.Term) error {
	_, err := s.registered(ctx, "resign", "advance", args{"keeper": leader(t), "resign": true})
	return err
}

// leader returns a term as Redis keeps it.
func leader(t migrate.Term) string { return strconv.FormatUint(t.Epoch, 10) + " " + t.Keeper }

// A glance is what the script view returns.
type glance struct {
	Now      int64             `json:"now,string"`
	Status   migrate.Status    `json:"status"`
	Plan     string            `json:"plan"`
	Keeper   string            `json:"keeper"`
	Control  map[string]string `json:"control"`
	Finished map[string]string `json:"finished"`
	Counts   map[string]string `json:"counts"`
	Open     []opened          `json:"open"`
}

// An opened is one slot of a glance.
type opened struct {
	Pass   migrate.Pass `json:"pass"`
	Entry  string       `json:"entry"`
	Worker string       `json:"worker"` // "": nobody
	States string       `json:"states"` // "": none
}

// View implements [migrate.Switch]. A pod that is not open may look, too.
func (s *State) View(ctx context.Context) (migrate.View, error) {
	reply, err := s.call(ctx, "view", "view", nil)
	if err != nil {
		return migrate.View{}, err
	}
	var g glance
	err = json.Unmarshal([]byte(reply[1].(string)), &g)
	var v migrate.View
	if err == nil {
		v, err = g.view()
	}
	if err != nil {
		return migrate.View{}, fmt.Errorf("view: %w", err)
	}
	return v, nil
}

func (g glance) view() (v migrate.View, err error) {
	v = migrate.View{Status: g.Status, Phase: cmp.Or(migrate.Phase(g.Control["phase"]), migrate.PhaseCopy), Now: time.UnixMilli(g.Now), Finished: map[migrate.Pass][]migrate.Span{}}
	if g.Plan != "" {
		if err := json.Unmarshal([]byte(g.Plan), &v.Plan); err != nil {
			return v, err
		}
	}
	if v.Generation, err = strconv.ParseUint(cmp.Or(g.Control["generation"], "0"), 10, 64); err != nil {
		return v, err
	}
	if started := g.Control["started"]; started != "" {
		ms, err := strconv.ParseInt(started, 10, 64)
		if err != nil {
			return v, err
		}
		v.Started = time.UnixMilli(ms)
	}
	_, v.Keeper = epochAnd(g.Keeper)
	for pass, spans := range g.Finished {
		if v.Finished[migrate.Pass(pass)], err = parseSpans(spans); err != nil {
			return v, err
		}
	}
	if v.Counts, err = parseCounts(g.Counts); err != nil {
		return v, err
	}
	return v, addOpen(&v, g.Open)
}
