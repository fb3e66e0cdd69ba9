package rolloutfeature_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-feature/go-sdk/openfeature"
	"github.com/open-feature/go-sdk/openfeature/memprovider"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rolloutfeature"
)

// A flags is a client whose flag has what value returns.
type flags struct {
	mu       sync.Mutex
	value    func(ctx context.Context) (string, error)
	handlers map[openfeature.EventType]openfeature.EventCallback
}

func newFlags(value string) *flags {
	c := &flags{handlers: map[openfeature.EventType]openfeature.EventCallback{}}
	c.set(func(context.Context) (string, error) { return value, nil })
	return c
}

func (c *flags) set(value func(context.Context) (string, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = value
}

func (c *flags) StringValue(ctx context.Context, _, _ string, _ openfeature.EvaluationContext, _ ...openfeature.Option) (string, error) {
	c.mu.Lock()
	value := c.value
	c.mu.Unlock()
	return value(ctx)
}

func (c *flags) AddHandler(e openfeature.EventType, f openfeature.EventCallback) { c.handlers[e] = f }

func (c *flags) RemoveHandler(e openfeature.EventType, f openfeature.EventCallback) {
	if c.handlers[e] == f {
		delete(c.handlers, e)
	}
}

// tell is an event of the provider.
func (c *flags) tell(e openfeature.EventType) {
	(*c.handlers[e])(openfeature.EventDetails{})
	synctest.Wait()
}

func open(t *testing.T, c rolloutfeature.Client) *rolloutfeature.Flag {
	t.Helper()
	f, err := rolloutfeature.Open(t.Context(), c, "phase", rolloutfeature.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func want(t *testing.T, f *rolloutfeature.Flag, phase rollout.Phase) {
	t.Helper()
	if got := f.Phase(t.Context()); got != phase {
		t.Errorf("phase %s, want %s", got, phase)
	}
}

func TestPhaseFollowsTheFlagByEventsAndByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFlags("write-both")
		f := open(t, c)
		want(t, f, rollout.WriteBoth)
		synctest.Wait()
		c.set(func(context.Context) (string, error) { return "compare", nil })
		want(t, f, rollout.WriteBoth)
		c.tell(openfeature.ProviderConfigChange)
		want(t, f, rollout.Compare)
		c.set(func(context.Context) (string, error) { return "new-first", nil })
		<-time.After(10 * time.Second)
		synctest.Wait()
		want(t, f, rollout.NewFirst)
		f.Close()
		if len(c.handlers) > 0 {
			t.Error("handlers are left after Close")
		}
	})
}

func TestPhaseStaysWhenTheFlagCannotBeEvaluated(t *testing.T) {
	for name, value := range map[string]func(context.Context) (string, error){
		"error":    func(context.Context) (string, error) { return "", errors.New("planted") },
		"no phase": func(context.Context) (string, error) { return "everything", nil },
		"hangs":    func(ctx context.Context) (string, error) { <-ctx.Done(); return "old-only", nil },
		"ignores its context": func(context.Context) (string, error) {
			<-time.After(time.Minute)
			return "old-only", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFlags("new-first")
				f := open(t, c)
				synctest.Wait()
				c.set(value)
				c.tell(openfeature.ProviderConfigChange)
				<-time.After(2 * time.Minute)
				want(t, f, rollout.NewFirst)
				c.set(func(context.Context) (string, error) { return "compare", nil })
				<-time.After(2 * time.Minute)
				want(t, f, rollout.Compare)
				f.Close()
			})
		})
	}
}

func TestOpenWithoutAPhaseFailsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFlags("")
		c.set(func(context.Context) (string, error) { <-time.After(time.Minute); return "compare", nil })
		began := time.Now()
		if f, err := rolloutfeature.Open(t.Context(), c, "phase", rolloutfeature.Options{}); err == nil {
			t.Error("opened", f)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("took %s", d)
		}
		<-time.After(time.Minute) // it answers
	})
}

func TestFlagOfARealProvider(t *testing.T) {
	provider := memprovider.NewInMemoryProvider(map[string]memprovider.InMemoryFlag{"phase": {
		State: memprovider.Enabled, DefaultVariant: "on", Variants: map[string]any{"on": "compare"},
	}})
	if err := openfeature.SetNamedProviderAndWait(t.Name(), provider); err != nil {
		t.Fatal(err)
	}
	defer openfeature.Shutdown()
	f := open(t, openfeature.NewClient(t.Name()))
	defer f.Close()
	want(t, f, rollout.Compare)
}
