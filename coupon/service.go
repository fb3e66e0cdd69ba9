package coupon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Bounds of a call. None can be chosen: they follow from the contract.
const (
	raceLimit    = 10 // times a decision is made anew because another was faster
	unknownLimit = 2  // times a call is made again whose commit got no reply
	maxNumber    = 64 // bytes of a user, an order or a business number
)

// Options configures a [Service].
type Options struct {
	IDs     IDs          // of coupons
	Codes   CodeMaker    // of coupons
	Numbers Numbers      // of campaigns and operations
	Logger  *slog.Logger // changes of state; nil: silent

	// Patience is how long a process is left to what it began before others go on
	// with it; 0: a minute. Less than what a call takes makes them do things twice,
	// which costs time and nothing else.
	Patience time.Duration
	// Step is called at each of [Steps], for tests that stop a process there; nil
	// in production.
	Step func(point string)
}

// An IDs makes ids for a bucket, none twice. [Minter] is one.
type IDs interface {
	Mint(b shard.Bucket) (ID, error)
}

// A CodeMaker makes codes that route to a shard, none that can be guessed.
// [Codes] is one.
type CodeMaker interface {
	New(s shard.Shard) Code
}

// Numbers gives numbers by the name of a sequence, none twice. A
// [sequence.Client] is one.
type Numbers interface {
	Next(ctx context.Context, name string) (int64, error)
}

// The sequences that a service takes numbers from.
const (
	CampaignNumbers  = "coupon_campaign"
	OperationNumbers = "coupon_operation"
)

// A Service does what is asked about coupons. Any number of services may share
// a store; none knows of the others. It is safe for concurrent use.
type Service struct {
	store     Store
	control   Control
	ids       IDs
	codes     CodeMaker
	numbers   Numbers
	log       *slog.Logger
	campaigns *campaigns
	pool      *pool
	name      string // of this process, to lease operations
	patience  time.Duration
	away      seldom             // calls that were refused because a shard was
	step      func(point string) // may be nil

	fills sync.WaitGroup  // under way
	life  context.Context // ends with Close
	end   context.CancelFunc
}

// NewService returns a service on a store. It starts nothing: the caller runs
// [Service.Run] beside it, and calls [Service.Close] at the end.
func NewService(store Store, control Control, o Options) *Service {
	healthy := &healthyStore{Store: store}
	s := &Service{
		store: healthy, control: control, ids: o.IDs, codes: o.Codes, numbers: o.Numbers, log: o.Logger,
		campaigns: newCampaigns(control), name: rand.Text(), patience: cmp.Or(o.Patience, defaultPatience), step: o.Step,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.pool = &pool{store: healthy, slices: make(map[sliceKey]*slice), spawn: s.spawn}
	return s
}

// spawn runs a fill, whose callers may be gone before it ends.
func (s *Service) spawn(fill func(context.Context)) {
	s.fills.Go(func() { fill(s.life) })
}

// Run does what goes on beside calls, until ctx ends: long work, and finishing
// what other processes left behind.
func (s *Service) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { s.sweeper(ctx) })
	loops.Go(func() { s.operator(ctx) })
	loops.Wait()
	return nil
}

// Close ends what is under way for the pool. No call may be made after it.
func (s *Service) Close() {
	s.end()
	s.fills.Wait()
}

// A Target names a coupon by its id or, if that is 0, by its code.
type Target struct {
	ID   ID
	Code Code
}

// key returns where the coupon is: an id and its code are on one shard.
func (t Target) key() shard.Key {
	if t.ID != 0 {
		return t.ID
	}
	return t.Code
}

// find returns the coupon, or [ErrUnavailable].
func (t Target) find(rows Rows) (Coupon, error) {
	var c Coupon
	var err error
	if t.ID != 0 {
		c, err = rows.Coupon(t.ID)
	} else {
		c, err = rows.ByCode(t.Code)
	}
	if errors.Is(err, ErrNoRow) {
		return c, ErrUnavailable
	}
	return c, err
}

// A Result is what a call did to a coupon.
type Result struct {
	Coupon   Coupon
	Replayed bool      // it was done before; nothing was written
	At       time.Time // of the database's clock
}

// Redemption names the redemption of a redeemed coupon, for the order's records.
// It is "" for a coupon that is not redeemed.
func (r Result) Redemption() string {
	if r.Coupon.Status != Redeemed {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.Coupon.ID, r.Coupon.Version)
}

// A Call is who asks for what, as the ledger keeps it.
type Call struct {
	Actor   string // name of the token; "": none
	User    string
	Order   string
	Request string
}

// decision decides what becomes of a coupon as it is at now.
type decision func(c Coupon, now time.Time) (decided, error)

// change decides about a coupon and writes the outcome, in one transaction on
// its shard. Whoever loses a race decides again, on the newer coupon.
func (s *Service) change(ctx context.Context, t Target, call Call, decide decision) (Result, error) {
	return s.changeBy(ctx, t, func(tx Tx) (Result, error) { return s.changeIn(tx, t, call, decide) })
}

// changeBy runs fn, which changes a coupon and replays what it did before, in a
// transaction on the coupon's shard.
func (s *Service) changeBy(ctx context.Context, t Target, fn func(Tx) (Result, error)) (Result, error) {
	var result Result
	err := s.writeAgain(ctx, t.key(), func(tx Tx) (err error) {
		result, err = fn(tx)
		s.reach(StepChangeWritten, err)
		return err
	})
	s.reach(StepChangeCommitted, err)
	return result, err
}

// writeAgain runs fn in a transaction on the shard of key. It does so again where
// the reply to the commit was lost, so fn has to know what it did before, and where
// another was faster.
func (s *Service) writeAgain(ctx context.Context, key shard.Key, fn func(Tx) error) error {
	for unknown, raced := 0, 0; ; {
		err := s.store.Write(ctx, key, fn)
		switch {
		case errors.Is(err, shard.ErrUnknown) && unknown < unknownLimit:
			unknown++
		case errors.Is(err, shard.ErrNoMatch):
			if raced++; raced == raceLimit {
				return ErrInProgress
			}
		default:
			return err
		}
	}
}

// reach tells that a flow has come to a point, unless the way there failed.
func (s *Service) reach(point string, err error) {
	if err == nil && s.step != nil {
		s.step(point)
	}
}

// changeIn decides about the coupon and writes the outcome.
func (s *Service) changeIn(tx Tx, t Target, call Call, decide decision) (Result, error) {
	c, err := t.find(tx)
	if err != nil {
		return Result{}, err
	}
	done, err := decide(c, tx.Now())
	if err == nil && !done.replayed {
		err = put(tx, done, call)
	}
	return Result{done.next, done.replayed, tx.Now()}, err
}

// put writes what was decided: coupon, ledger and event, and the wallet if it is
// here. If the coupon is no longer the one that was decided about, the transaction
// fails with [shard.ErrNoMatch].
func put(tx Tx, done decided, call Call) error {
	c := done.next
	err := tx.Change(c, Event{
		Coupon: c.ID, Version: c.Version, Type: done.event, At: tx.Now(),
		Actor: call.Actor, User: call.User, Order: call.Order, Request: call.Request,
	})
	switch {
	case err != nil, c.User == "", !shard.Same(c.ID, shard.Text(c.User)):
		return err
	case done.event == WasClaimed, done.event == WasBound:
		return tx.KeepNew(c)
	}
	return tx.KeepStatus(c)
}
