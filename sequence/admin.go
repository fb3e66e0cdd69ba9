package sequence

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Create creates sequences, each on its own; see [Admin]. A name that was
// deleted continues beyond its old values unless req says to reuse them.
//
// If the process dies on the way, some are created and some are not; doing it
// again reports the former as [ErrExists].
func (s *Service) Create(ctx context.Context, req CreateRequest) ([]CreateResult, error) {
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
	for k, i := range at {
		if errs[k] == nil {
			results[i].Record = records[k]
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			r, err := s.createAgain(ctx, records[k], errs[k], req.ReuseValues)
			if results[i].Record = r; err != nil {
				results[i] = CreateResult{Err: asError(err)}
			}
			<-limit
		})
	}
	wg.Wait()
	return results, nil
}

// createAgain settles a creation that the store answered with cause: it was
// done after all, or the name is that of a tombstone, or it is taken.
func (s *Service) createAgain(ctx context.Context, r Record, cause error, reuse bool) (Record, error) {
	if !errors.Is(cause, ErrExists) && !errors.Is(cause, ErrUnknownOutcome) {
		return r, cause
	}
	after, err := s.change(ctx, r.Definition.Name, func(old Record, nonce string) (Record, error) {
		switch {
		case old.Nonce == r.Nonce:
			return old, nil
		case old.State == StateDeleted:
			return old.recreated(r.Definition, reuse, nonce)
		}
		return old, &Error{Code: CodeExists, Field: "name", Message: fmt.Sprintf("sequence %q exists already", r.Definition.Name),
			Remedy: "choose another name, or change it with `tallystick seq alter`"}
	})
	if errors.Is(err, ErrNotFound) {
		return r, &Error{Code: CodeUnavailable, Message: "the store did not say whether the sequence was created", Remedy: "try again", Err: cause}
	}
	return after, err
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

// change replaces the record of name by what f makes of it, which is called
// again whenever somebody else was faster, and tells every server. Nothing is
// written if f leaves the nonce. A lost reply is resolved by the nonce.
//
// If the process dies after the write and before the generation is raised,
// servers find out within 5 minutes instead of seconds.
func (s *Service) change(ctx context.Context, name string, f func(old Record, nonce string) (Record, error)) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	old, err := s.store.Load(ctx, name)
	for attempt := range maxAttempts {
		if err := pause(ctx, attempt); err != nil {
			return Record{}, asError(err)
		}
		if errors.Is(err, ErrNotFound) {
			return Record{}, notFound(name)
		} else if err != nil {
			return Record{}, err
		}
		next, refused := f(old, NewNonce())
		if refused != nil || next.Nonce == old.Nonce {
			return next, refused
		}
		now, err := s.store.Swap(ctx, old.Nonce, next)
		if errors.Is(err, ErrUnknownOutcome) {
			now, err = s.store.Load(ctx, name)
		}
		if now.Nonce == next.Nonce && (err == nil || errors.Is(err, ErrConflict)) {
			s.announce(ctx)
			return next, nil
		}
		if err != nil && !errors.Is(err, ErrConflict) {
			return Record{}, err
		}
		old = now
	}
	return Record{}, &Error{Code: CodeUnavailable, RetryAfter: maxDelay, Message: fmt.Sprintf("sequence %q is being changed by too many at once", name)}
}

// announce makes every server, this one first, look at its cached sequences.
func (s *Service) announce(ctx context.Context) {
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
// many it moved. It is for a store that was restored from a backup and may have
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
			_, err = s.change(ctx, r.Definition.Name, func(old Record, nonce string) (Record, error) {
				next, _ := old.skipped(n, nonce)
				return next, nil
			})
			if err != nil {
				return moved, fmt.Errorf("skip in sequence %q: %w", r.Definition.Name, err)
			}
			if moved++; progress != nil {
				progress(moved)
			}
		}
	}
	return moved, nil
}
