package migrate

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	markEvery  = 5 * time.Second // a mark is saved no more often
	markPause  = 24 * time.Hour  // a verification that lay still for longer begins anew
	leaveWords = 2 * time.Second // for the last save of one that is told to end
)

// A marker knows how far a verification has come and saves it now and then. All
// methods are safe for concurrent use.
//
// If the process dies after something was compared and before it was saved,
// that is compared again; if it dies after the verdict was recorded, the mark
// is gone with it.
type marker struct {
	m        *Migration
	verifier string    // "": it saves nothing
	began    time.Time // by the state's clock
	since    time.Time // the same moment by this process's

	mu     sync.Mutex
	mark   Mark
	pages  frontier
	saving bool
	last   time.Time // when it was saved last
}

// now returns how far it has come.
func (k *marker) now() Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mark
}

// compared notes the outcome of page n of those that this process reads.
func (k *marker) compared(ctx context.Context, n int, o outcome) error {
	k.mu.Lock()
	for _, o := range k.pages.join(n, o) {
		k.mark.Compared += o.compared
		k.mark.Last = o.last
		k.suspect(o.suspects)
	}
	k.mu.Unlock()
	return k.save(ctx, false)
}

// looked notes that what the sink has up to position was looked up.
func (k *marker) looked(ctx context.Context, position string, suspects []suspect) error {
	k.mu.Lock()
	k.mark.Position = position
	k.suspect(suspects)
	k.mu.Unlock()
	return k.save(ctx, false)
}

// paged notes that all rows of the source are compared.
func (k *marker) paged(ctx context.Context) error {
	k.mu.Lock()
	k.mark.Paged = true
	k.mu.Unlock()
	return k.save(ctx, true)
}

// scanned notes that all items of the sink are looked up.
func (k *marker) scanned(ctx context.Context) error {
	k.mu.Lock()
	k.mark.Scanned = true
	k.mu.Unlock()
	return k.save(ctx, true)
}

// awaits notes which open transactions are awaited after the walk.
func (k *marker) awaits(ctx context.Context, token string) error {
	k.mu.Lock()
	k.mark.Open = token
	k.mu.Unlock()
	return k.save(ctx, true)
}

// suspect adds suspects. With too many of them nothing is saved any more: what
// was saved before stays. The caller holds k.mu.
func (k *marker) suspect(all []suspect) {
	for _, s := range all {
		if len(k.mark.Suspects) == maxMarked {
			k.verifier = ""
			return
		}
		k.mark.Suspects = append(k.mark.Suspects, Suspect{Key: s.key, Ref: s.stored.Ref, Scanned: s.scanned})
	}
}

// save saves the mark if it is due, or with now at once. A save that fails for
// now is made up for by the next one.
func (k *marker) save(ctx context.Context, now bool) error {
	verifier, m, due := k.due(now)
	if !due {
		return nil
	}
	err := k.m.state.SaveMark(ctx, verifier, m)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saving = false
	switch {
	case fatal(err):
		return err
	case errors.Is(err, ErrNotHeld):
		k.verifier = "" // another verification has taken the mark over
		k.m.log.Info("mark taken over by another verification")
	case err != nil:
		k.m.log.Warn("mark not saved", "error", err)
	}
	return nil
}

func (k *marker) due(now bool) (verifier string, m Mark, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.verifier == "" || k.saving || !now && time.Since(k.last) < markEvery {
		return "", Mark{}, false
	}
	k.saving, k.last = true, time.Now()
	k.mark.Saved = k.began.Add(k.last.Sub(k.since)) // whatever the time is here, others compare it
	return k.verifier, k.mark, true
}

// leave saves the mark even though ctx may have ended.
func (k *marker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWords)
	defer cancel()
	_ = k.save(ctx, true) // a state that is lost has no mark
}
