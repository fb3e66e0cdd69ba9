package seqtest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/sequence"
)

// An Op names a method of a store.
type Op = sequence.Op

// The methods.
const (
	OpCreate     = sequence.OpCreate
	OpLoad       = sequence.OpLoad
	OpAdvance    = sequence.OpAdvance
	OpSwap       = sequence.OpSwap
	OpList       = sequence.OpList
	OpGeneration = sequence.OpGeneration
	OpBump       = sequence.OpBump
)

// A Call is one call of a store's method.
type Call struct {
	Op   Op
	Name string // of the sequence; of the first one for Create, the prefix for List
	N    int    // how many records it creates
}

// A Fault is what happens to one call. The zero Fault is none.
type Fault struct {
	Delay  time.Duration // waits before the call
	Refuse error         // comes back instead of the call
	Late   bool          // the call is kept for [Faulty.Flush]; comes back with ErrUnknownOutcome
	Linger time.Duration // waits after the call
	Reply  error         // comes back although the call was done, whatever came of it
}

// Faults that most tests need.
var (
	CutOff      = Fault{Refuse: sequence.ErrUnavailable}    // nothing reaches the store, and the caller knows
	LostRequest = Fault{Refuse: sequence.ErrUnknownOutcome} // nothing reaches the store, and the caller can not know
	LostReply   = Fault{Reply: sequence.ErrUnknownOutcome}  // the write is done, and the caller can not know
	LateWrite   = Fault{Late: true}                         // the write is done later, by Flush
)

// A Plan decides the fault of each call, in the order of the calls. It may be
// called by many goroutines at once.
type Plan func(Call) Fault

// Always returns a plan with one fault for every call.
func Always(f Fault) Plan { return func(Call) Fault { return f } }

// On returns a plan with one fault for every call of op.
func On(op Op, f Fault) Plan {
	return func(c Call) Fault {
		if c.Op == op {
			return f
		}
		return Fault{}
	}
}

// Once returns a plan whose fault befalls the next call of op only.
func Once(op Op, f Fault) Plan { return Nth(op, 1, f) }

// Nth returns a plan whose fault befalls the n-th call of op only, the next
// one being the first.
func Nth(op Op, n int64, f Fault) Plan {
	var calls atomic.Int64
	return func(c Call) Fault {
		if c.Op == op && calls.Add(1) == n {
			return f
		}
		return Fault{}
	}
}

var _ sequence.Store = (*Faulty)(nil)

// Faulty is a store whose calls go wrong as a [Plan] says, and otherwise do
// what the store below does. A context that ends during a wait before the
// call leaves the store untouched (ErrUnavailable); during one after it, the
// outcome of a write is unknown. It is safe for concurrent use. Use
// [NewFaulty].
type Faulty struct {
	below sequence.Store
	plan  atomic.Pointer[Plan]

	mu   sync.Mutex
	late []func()
}

// NewFaulty returns a store on below without any fault yet.
func NewFaulty(below sequence.Store) *Faulty {
	return &Faulty{below: below}
}

// Plan makes plan decide on every call that begins from now on; nil ends all
// faults.
func (f *Faulty) Plan(plan Plan) {
	f.plan.Store(&plan)
}

// Flush does the calls that were kept back, in their order, and returns how
// many there were. Nobody learns what comes of them.
func (f *Faulty) Flush() int {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, call := range late {
		call()
	}
	return len(late)
}

func (f *Faulty) fault(c Call) Fault {
	plan := f.plan.Load()
	if plan == nil || *plan == nil {
		return Fault{}
	}
	return (*plan)(c)
}

// through does one call as the plan says.
func through[T any](ctx context.Context, f *Faulty, c Call, call func(context.Context) (T, error)) (T, error) {
	var none T
	fault := f.fault(c)
	if !wait(ctx, fault.Delay) {
		return none, ended(ctx, c.Op, c.Name)
	}
	if fault.Refuse != nil {
		return none, failed(c.Op, c.Name, fault.Refuse)
	}
	if fault.Late {
		f.keep(func() { _, _ = call(context.WithoutCancel(ctx)) })
		return none, failed(c.Op, c.Name, sequence.ErrUnknownOutcome)
	}
	result, err := call(ctx)
	if !wait(ctx, fault.Linger) {
		return none, unanswered(ctx, c)
	}
	if fault.Reply != nil {
		return none, failed(c.Op, c.Name, fault.Reply)
	}
	return result, err
}

func (f *Faulty) keep(call func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, call)
}

// unanswered is the error of a call whose caller left before the reply.
func unanswered(ctx context.Context, c Call) error {
	if !c.Op.Writes() {
		return ended(ctx, c.Op, c.Name)
	}
	return failed(c.Op, c.Name, &sequence.Error{Code: sequence.CodeUnknown, Message: "no answer", Err: ctx.Err()})
}

// wait returns after d, or false once ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Create implements [sequence.Store].
func (f *Faulty) Create(ctx context.Context, records []sequence.Record) []error {
	c := Call{Op: OpCreate, N: len(records)}
	if len(records) > 0 {
		c.Name = records[0].Definition.Name
	}
	errs, err := through(ctx, f, c, func(ctx context.Context) ([]error, error) {
		return f.below.Create(ctx, records), nil
	})
	if err == nil {
		return errs
	}
	errs = make([]error, len(records))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Load implements [sequence.Store].
func (f *Faulty) Load(ctx context.Context, name string) (sequence.Record, error) {
	return through(ctx, f, Call{Op: OpLoad, Name: name}, func(ctx context.Context) (sequence.Record, error) {
		return f.below.Load(ctx, name)
	})
}

// Advance implements [sequence.Store].
func (f *Faulty) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	return through(ctx, f, Call{Op: OpAdvance, Name: a.Name}, func(ctx context.Context) (sequence.Record, error) {
		return f.below.Advance(ctx, a)
	})
}

// Swap implements [sequence.Store].
func (f *Faulty) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	return through(ctx, f, Call{Op: OpSwap, Name: next.Definition.Name}, func(ctx context.Context) (sequence.Record, error) {
		return f.below.Swap(ctx, nonce, next)
	})
}

// List implements [sequence.Store].
func (f *Faulty) List(ctx context.Context, prefix, after string, limit int) ([]sequence.Record, string, bool, error) {
	var last string
	var more bool
	records, err := through(ctx, f, Call{Op: OpList, Name: prefix}, func(ctx context.Context) (records []sequence.Record, err error) {
		records, last, more, err = f.below.List(ctx, prefix, after, limit)
		return records, err
	})
	return records, last, more, err
}

// Generation implements [sequence.Store].
func (f *Faulty) Generation(ctx context.Context) (uint64, error) {
	return through(ctx, f, Call{Op: OpGeneration}, f.below.Generation)
}

// Bump implements [sequence.Store].
func (f *Faulty) Bump(ctx context.Context) error {
	_, err := through(ctx, f, Call{Op: OpBump}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.below.Bump(ctx)
	})
	return err
}
