package sequence

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Create creates sequences, each on its own; see [Admin]. A name that was
// deleted continues beyond its old values unless req says to reuse them.
//
// If the process dies on the way, some are created and some are not; doing it
// again reports the former as [ErrExists].
func (s *Service) Create(ctx context.Context, req CreateRequest) ([]CreateResult, error) {
	if e := s.failure.Load(); e != nil {
		return nil, e
	}
	if n := len(req.Specs); n == 0 || n > MaxCreate {
		return nil, invalid("specs", fmt.Sprintf("create 1 to %d sequences at once", MaxCreate), "has %d entries", n)
	}
	results := make([]CreateResult, len(req.Specs))
	var records []Record
	var at []int
	for i, spec := range req.Specs {
		d, err := spec.Define()
		if err != nil {
			results[i].Err = asError(err)
			continue
		}
		records, at = append(records, newRecord(d, NewNonce())), append(at, i)
	}
	if len(records) == 0 {
		return results, nil
	}
	errs := s.store.Create(ctx, records)
	limit := make(chan struct{}, storeWorkers)
	var wg sync.WaitGroup
	var recreated atomic.Bool
	for k, i := range at {
		if errs[k] == nil {
			results[i].Record = records[k]
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			r, written, err := s.createAgain(ctx, records[k], errs[k], req.ReuseValues)
			if results[i].Record = r; err != nil {
				results[i] = CreateResult{Err: asError(err)}
			}
			if written {
				recreated.Store(true)
			}
			<-limit
		})
	}
	wg.Wait()
	if recreated.Load() { // servers may have cached what the tombstones were
		s.announce(ctx)
	}
	return results, nil
}

// createAgain settles a creation that the store answered with cause: it was
// done after all, or the name is that of a tombstone, or it is taken.
func (s *Service) createAgain(ctx context.Context, r Record, cause error, reuse bool) (after Record, written bool, err error) {
	if !errors.Is(cause, ErrExists) && !errors.Is(cause, ErrUnknownOutcome) {
		return r, false, cause
	}
	name := r.Definition.Name
	after, written, err = s.write(ctx, name, func(old Record, nonce string) (Record, error) {
		switch {
		case old.Nonce == r.Nonce:
			return old, nil
		case old.State == StateDeleted:
			return old.recreated(r.Definition, reuse, nonce)
		}
		return old, &Error{Code: CodeExists, Field: "name", Message: fmt.Sprintf("sequence %q exists already", name),
			Remedy: "choose another name, or change it with `tallystick seq alter`"}
	})
	switch CodeOf(err) {
	case "", CodeExists, CodePrecondition, CodeUnknown:
		return after, written, err
	}
	if errors.Is(cause, ErrUnknownOutcome) { // and the record could not be read since
		err = unsaid(name, cause)
	}
	return r, false, err
}

// Alter changes a definition in one write and tells every server. Values
// cached under the old definition are dropped and burned within seconds. It
// never moves the counter, which has to lie within the new bounds; a change of
// direction needs ReuseValues.
func (s *Service) Alter(ctx context.Context, req AlterRequest) (Record, error) {
	return s.changeOpen(ctx, req.Spec.Name, func(r Record, nonce string) (Record, error) { return r.altered(req, nonce) })
}

// Restart moves the counter, forward freely and back only with ReuseValues.
// Values cached before are dropped and burned within seconds.
func (s *Service) Restart(ctx context.Context, req RestartRequest) (Record, error) {
	return s.changeOpen(ctx, req.Name, func(r Record, nonce string) (Record, error) { return r.restarted(req, nonce) })
}

// Delete deletes a sequence. A tombstone keeps its counter, so that creating it
// again does not repeat values. Servers stop granting it within seconds;
// clients hand out what they have cached.
func (s *Service) Delete(ctx context.Context, name string) error {
	_, err := s.changeOpen(ctx, name, func(r Record, nonce string) (Record, error) { return r.deleted(nonce), nil })
	return err
}

// Get returns the sequence as the store has it now.
func (s *Service) Get(ctx context.Context, name string) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	r, err := s.store.Load(ctx, name)
	if err == nil && r.State == StateDeleted || errors.Is(err, ErrNotFound) {
		return Record{}, notFound(name)
	}
	return r, err
}

// changeOpen changes a sequence that is not deleted.
func (s *Service) changeOpen(ctx context.Context, name string, f func(Record, string) (Record, error)) (Record, error) {
	return s.change(ctx, name, func(r Record, nonce string) (Record, error) {
		if r.State == StateDeleted {
			return r, notFound(name)
		}
		return f(r, nonce)
	})
}

// change writes what f makes of the record of name and tells every server,
// also when it is not known whether it was written.
//
// If the process dies after the write and before the generation is raised,
// servers find out within 5 minutes instead of seconds.
func (s *Service) change(ctx context.Context, name string, f func(old Record, nonce string) (Record, error)) (Record, error) {
	r, written, err := s.write(ctx, name, f)
	if written || errors.Is(err, ErrUnknownOutcome) {
		s.announce(ctx)
	}
	return r, err
}

// write replaces the record of name by what f makes of it, which is called
// again whenever somebody else was faster, and reports whether it did. Nothing
// is written if f leaves the nonce.
//
// A lost reply is resolved by the nonce, which stays the same as long as the
// record does: a write given up that lands late is then its own repetition. A
// record that somebody else wrote since tells by its version, which every
// change raises, that the lost write was not done; or nothing, and then
// the outcome is unknown.
func (s *Service) write(ctx context.Context, name string, f func(old Record, nonce string) (Record, error)) (_ Record, written bool, err error) {
	if err := s.admits(name); err != nil {
		return Record{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	old, err := s.store.Load(ctx, name)
	if err != nil {
		return Record{}, false, missing(name, err)
	}
	var lost error // why it is not known whether the write of nonce was done
	defer func() {
		if err != nil && lost != nil {
			err = unsaid(name, lost)
		}
	}()
	nonce := NewNonce()
	for attempt := range maxAttempts {
		if err := pause(ctx, attempt); err != nil {
			return Record{}, false, asError(err)
		}
		next, err := f(old, nonce)
		if err != nil || next.Nonce == old.Nonce {
			return next, false, err
		}
		now, err := s.store.Swap(ctx, old.Nonce, next)
		if errors.Is(err, ErrUnknownOutcome) {
			lost = err
			now, err = s.store.Load(ctx, name)
		}
		switch {
		case wrote(now, err, nonce):
			return next, true, nil
		case err != nil && !errors.Is(err, ErrConflict):
			return Record{}, false, missing(name, err)
		case now.Nonce == old.Nonce:
			continue
		case lost != nil && now.Version >= next.Version:
			return Record{}, false, lost
		}
		old, nonce, lost = now, NewNonce(), nil
	}
	return Record{}, false, &Error{Code: CodeUnavailable, RetryAfter: maxDelay, Message: fmt.Sprintf("sequence %q is being changed by too many at once", name)}
}

// admits returns why nothing called name can be changed here.
func (s *Service) admits(name string) error {
	if e := s.failure.Load(); e != nil {
		return e
	}
	return CheckName(name)
}

// missing returns err, which the store gave for the record of name, in words
// for the caller where it is ErrNotFound.
func missing(name string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return notFound(name)
	}
	return err
}

// unsaid returns the CodeUnknown error of a write of name whose reply was lost
// for the reason cause.
func unsaid(name string, cause error) *Error {
	return &Error{Code: CodeUnknown, Field: "name", Message: fmt.Sprintf("the store did not say whether sequence %q was written", name),
		Remedy: "look at it with `tallystick seq get`, then decide", Err: cause}
}

// announce makes every server, this one first, look at its cached sequences.
func (s *Service) announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s.suspect.Add(1)
	for attempt := range 3 {
		if pause(ctx, attempt) != nil {
			break
		}
		err := s.store.Bump(ctx)
		if err == nil {
			return
		}
		s.log.Warn("generation not raised: other servers notice the change within 5 minutes", "error", err)
	}
}

// List returns one page of sequences, in the store's own order.
func (s *Service) List(ctx context.Context, req ListRequest) (ListResponse, error) {
	size := req.PageSize
	if size == 0 {
		size = 100
	}
	if size < 1 || size > MaxPageSize {
		return ListResponse{}, invalid("page_size", fmt.Sprintf("choose 1 to %d", MaxPageSize), "%d is out of range", size)
	}
	after, err := parsePageToken(req.PageToken, req.Prefix)
	if err != nil {
		return ListResponse{}, err
	}
	resp := ListResponse{}
	for more := true; more && len(resp.Records) < size; {
		var found []Record
		found, after, more, err = s.store.List(ctx, req.Prefix, after, size-len(resp.Records))
		if err != nil {
			return ListResponse{}, err
		}
		for _, r := range found {
			if r.State != StateDeleted {
				resp.Records = append(resp.Records, r)
			}
		}
		resp.NextPageToken = ""
		if more {
			resp.NextPageToken = pageToken(req.Prefix, after)
		}
	}
	return resp, nil
}

// pageToken encodes where a list with prefix goes on.
func pageToken(prefix, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(prefix + "\x00" + after))
}

func parsePageToken(token, prefix string) (after string, err error) {
	if token == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	p, after, ok := strings.Cut(string(b), "\x00")
	if err != nil || !ok || p != prefix {
		return "", invalid("page_token", "send the token of the page before, with the same prefix", "is not a token of this list")
	}
	return after, nil
}

// Skip moves every counter of a store n values on, 1 or more, and returns how
// many it moved; one that is exhausted stays. It is for a store that was restored from a backup and may have
// forgotten its newest writes; no server may be running on it. Running it again
// after an interruption skips more, which is harmless. progress, if not nil, is
// called after each.
func Skip(ctx context.Context, store Store, n int64, progress func(moved int)) (moved int, err error) {
	if n < 1 {
		return 0, invalid("skip", "skip at least as many values as were handed out since the backup", "%d is less than 1", n)
	}
	s := NewService(store, ServiceOptions{})
	for after, more := "", true; more; {
		var found []Record
		found, after, more, err = store.List(ctx, "", after, MaxPageSize)
		if err != nil {
			return moved, err
		}
		for _, r := range found {
			_, written, err := s.write(ctx, r.Definition.Name, func(old Record, nonce string) (Record, error) {
				return old.skipped(n, nonce), nil
			})
			if err != nil {
				return moved, fmt.Errorf("skip in sequence %q: %w", r.Definition.Name, err)
			}
			if !written {
				continue
			}
			if moved++; progress != nil {
				progress(moved)
			}
		}
	}
	return moved, nil
}
