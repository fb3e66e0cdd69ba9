// Package rolloutfeature takes the phase of a rollout from an OpenFeature flag
// of type string, whose values are the names of the phases.
//
//	flag, err := rolloutfeature.Open(ctx, openfeature.NewClient("app"), "room-events-phase", rolloutfeature.Options{})
//	defer flag.Close()
//	store := rollout.New(old, new_, rollout.Options[string, Event]{Phase: flag.Phase})
//
// [Flag.Phase] answers from memory. The flag is evaluated in the background: at
// intervals, and when the provider tells that it is ready or its configuration
// has changed. An evaluation that fails, takes too long or gives no phase leaves
// the last good one. So there has to be a first: Open fails without it, since a
// process that starts with a phase of its own choice writes one side only while
// others read the other.
//
// The phase is of a whole application. Do not target it by user or by share:
// move it one step, for all processes, as package rollout says.
package rolloutfeature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/open-feature/go-sdk/openfeature"

	"github.com/tallystick/tallystick/rollout"
)

// A Client is what is needed of an [openfeature.Client].
type Client interface {
	StringValue(ctx context.Context, flag, defaultValue string, evalCtx openfeature.EvaluationContext, options ...openfeature.Option) (string, error)
	AddHandler(eventType openfeature.EventType, callback openfeature.EventCallback)
	RemoveHandler(eventType openfeature.EventType, callback openfeature.EventCallback)
}

// Options of [Open]. All may be left out.
type Options struct {
	Interval time.Duration                 // between evaluations without an event; 0: 10 s
	Timeout  time.Duration                 // of an evaluation; 0: 1 s
	Context  openfeature.EvaluationContext // the same for the whole application
	Logger   *slog.Logger                  // changes of phase, and failures; nil: silent
}

// A Flag is a phase that follows a flag. It is safe for concurrent use.
type Flag struct {
	client  Client
	name    string
	o       Options
	phase   atomic.Uint32
	changed chan struct{} // has room for one: somebody should look
	busy    chan struct{} // full while the provider is asked
	handler func(openfeature.EventDetails)
	stop    context.CancelFunc
	ended   chan struct{}
}

// events are those after which the flag may have another value.
var events = []openfeature.EventType{openfeature.ProviderReady, openfeature.ProviderConfigChange}

// Open evaluates the flag and follows it until Close. It fails when the flag has
// no phase yet; ctx is for that first evaluation only.
func Open(ctx context.Context, client Client, name string, o Options) (*Flag, error) {
	o.Interval, o.Timeout = cmp.Or(o.Interval, 10*time.Second), cmp.Or(o.Timeout, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Flag{client: client, name: name, o: o, changed: make(chan struct{}, 1), busy: make(chan struct{}, 1), ended: make(chan struct{})}
	phase, err := f.evaluate(ctx)
	if err != nil {
		return nil, fmt.Errorf("rolloutfeature: flag %q has no phase to begin with: %w", name, err)
	}
	f.phase.Store(uint32(phase))
	f.handler = func(openfeature.EventDetails) { f.look() }
	for _, e := range events {
		client.AddHandler(e, &f.handler)
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go f.follow(ctx) // ends in Close
	return f, nil
}

// Phase returns the last good value, from memory. It is a
// [rollout.Options.Phase].
func (f *Flag) Phase(context.Context) rollout.Phase { return rollout.Phase(f.phase.Load()) }

// Close stops following the flag; its phase stays what it was.
func (f *Flag) Close() {
	for _, e := range events {
		f.client.RemoveHandler(e, &f.handler)
	}
	f.stop()
	<-f.ended
}

// look has the flag evaluated soon. It never waits: providers call it.
func (f *Flag) look() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *Flag) follow(ctx context.Context) {
	defer close(f.ended)
	ticker := time.NewTicker(f.o.Interval)
	defer ticker.Stop()
	for {
		f.refresh(ctx)
		select {
		case <-f.changed:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// refresh takes the flag's value over, if it is a phase.
func (f *Flag) refresh(ctx context.Context) {
	phase, err := f.evaluate(ctx)
	before := f.Phase(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		f.o.Logger.Warn("flag not evaluated; the phase stays", "flag", f.name, "phase", before, "error", err)
	case phase != before:
		f.phase.Store(uint32(phase))
		f.o.Logger.Info("phase", "flag", f.name, "from", before, "to", phase)
	}
}

// errBusy: the provider has not answered the last evaluation yet.
var errBusy = errors.New("the provider still has not answered")

// evaluate returns the flag's phase, within the timeout even if the provider
// does not mind its context: what it says later is thrown away, and it is not
// asked again before that.
func (f *Flag) evaluate(ctx context.Context) (rollout.Phase, error) {
	select {
	case f.busy <- struct{}{}:
	default:
		return 0, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	type answer struct {
		value string
		err   error
	}
	answers := make(chan answer, 1)
	go func() { // ends when the provider answers
		value, err := f.client.StringValue(ctx, f.name, "", f.o.Context)
		<-f.busy
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return 0, a.err
		}
		return rollout.ParsePhase(a.value)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
