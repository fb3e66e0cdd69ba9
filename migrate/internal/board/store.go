package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// A Store has serializable transactions over keys and values. All methods are
// safe for concurrent use. An update whose function fails changes nothing.
type Store interface {
	Update(ctx context.Context, f func(Tx) error) error
	View(ctx context.Context, f func(Tx) error) error
	Close() error
}

// A Tx is a transaction. What goes wrong in a store it reports when the
// transaction ends.
type Tx interface {
	Get(key string) []byte // nil: there is none; not to be changed or kept
	Put(key string, value []byte)
	Delete(key string)
	// Each visits the keys from key from on that begin with prefix, rising,
	// until visit returns false. visit changes nothing.
	Each(prefix, from string, visit func(key string, value []byte) bool)
}

// The keys.
const (
	keyHeader  = "header"
	keyPlan    = "plan"
	keyMark    = "mark"
	openKeys   = "open/"
	endedKeys  = "ended/"
	ledgerKeys = "ledger/"
	quarantine = "quarantine/"
)

// A header is what there is once.
type header struct {
	Run        string                 `json:"run"` // random; "": no plan was written yet
	Epoch      uint64                 `json:"epoch"`
	Status     migrate.Status         `json:"status"`
	Generation uint64                 `json:"generation"`
	Phase      migrate.Phase          `json:"phase"`
	Started    time.Time              `json:"started"`
	Wanted     time.Time              `json:"wanted"` // until then a worker is idle
	Keeper     keeper                 `json:"keeper"`
	Counts     migrate.Counts         `json:"counts"` // of finished slots and pieces
	Lines      int64                  `json:"lines"`  // of the ledger
	Wrote      time.Time              `json:"wrote"`
	Cleared    int64                  `json:"cleared"` // of the quarantine
	Finished   map[migrate.Pass]Spans `json:"finished"`
	Verdict    *migrate.Verdict       `json:"verdict,omitempty"`
}

// A keeper is who has the Keeper's lock.
type keeper struct {
	Name  string    `json:"name"`
	Epoch uint64    `json:"epoch"`
	Until time.Time `json:"until"`
}

// An entry is a slot that was claimed and is not finished, or a piece of a
// split one.
type entry struct {
	Pass     migrate.Pass     `json:"pass"`
	Slot     migrate.Slot     `json:"slot"`
	Born     uint64           `json:"born"`            // epoch in which it was made
	Split    bool             `json:"split,omitempty"` // it is a piece of its index
	Done     bool             `json:"done,omitempty"`  // and finished, unlike others
	Saved    bool             `json:"saved,omitempty"`
	Progress migrate.Progress `json:"progress"`
	Holder   holder           `json:"holder"`
}

// A holder is who holds a slot.
type holder struct {
	Worker string    `json:"worker"`
	Token  string    `json:"token"`
	Epoch  uint64    `json:"epoch"`
	Until  time.Time `json:"until"`
}

// held reports whether somebody holds the slot.
func (e *entry) held(now time.Time) bool { return e.Holder.Token != "" && now.Before(e.Holder.Until) }

// empty reports whether nothing is known of the slot that is to be kept.
func (e *entry) empty(now time.Time) bool { return !e.Split && !e.Saved && !e.held(now) }

func (e *entry) key() string { return entryKey(e.Pass, e.Slot) }

func entryKey(p migrate.Pass, s migrate.Slot) string {
	key := fmt.Sprintf("%s%s/%d", openKeys, p, s.Index)
	if s.Below != nil {
		key += "+" + s.Below.String()
	}
	return key
}

// A board is the state within a transaction.
type board struct {
	tx     Tx
	now    time.Time
	header header
	plan   migrate.PlanRecord
}

var errDamaged = errors.New("the state is damaged")

// load returns the state within tx.
func load(tx Tx) (*board, error) {
	b := &board{tx: tx, now: time.Now(), header: header{Status: migrate.NotStarted, Phase: migrate.PhaseCopy}}
	if err := b.get(keyHeader, &b.header); err != nil {
		return nil, err
	}
	return b, b.get(keyPlan, &b.plan)
}

// get reads the value of key into v and leaves v as it is if there is none.
func (b *board) get(key string, v any) error {
	value := b.tx.Get(key)
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(value, v); err != nil {
		return fmt.Errorf("%w: %s: %v", errDamaged, key, err)
	}
	return nil
}

func (b *board) put(key string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b.tx.Put(key, value)
	return nil
}

// entries returns the open slots.
func (b *board) entries() (all []*entry, err error) {
	b.tx.Each(openKeys, openKeys, func(key string, value []byte) bool {
		e := new(entry)
		if json.Unmarshal(value, e) != nil {
			err = fmt.Errorf("%w: %s", errDamaged, key)
		}
		all = append(all, e)
		return err == nil
	})
	return all, err
}

// live returns how many slots are held.
func (b *board) live() (n int, err error) {
	all, err := b.entries()
	for _, e := range all {
		if e.held(b.now) {
			n++
		}
	}
	return n, err
}

// span returns the slots of a pass.
func (b *board) span(p migrate.Pass) migrate.Span {
	if p == migrate.Sweeping {
		return b.plan.Sweep
	}
	return b.plan.Slots
}
