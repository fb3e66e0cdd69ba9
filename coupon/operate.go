package coupon

import (
	"context"
	"errors"
	"time"
)

// How long work is shared out between processes.
const (
	operateEvery = 500 * time.Millisecond // looks for work that nobody does
	operateSave  = time.Second            // progress that others see, at least
)

// What operations do.
const (
	Generating = "generate"
	Issuing    = "issue"
)

// operator does long work, one piece at a time, until ctx ends. What a process
// leaves undone another one goes on with, from the chunks that are there.
func (s *Service) operator(ctx context.Context) {
	for pause := operateEvery; wait(ctx, pause); {
		pause = operateEvery
		if s.operateNext(ctx) {
			pause = 0 // there may be more
		}
	}
}

// operateNext does the work that has waited longest, and reports whether there was
// any. What fails keeps its lease: it is not next again before that is over.
func (s *Service) operateNext(ctx context.Context) bool {
	op, err := s.control.LeaseOperation(ctx, s.name, s.lease())
	if errors.Is(err, ErrNoRow) || ctx.Err() != nil {
		return false
	}
	leased := err == nil
	if leased {
		s.reach(StepOperationLeased, nil)
		err = s.operate(ctx, op)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("operation", "id", op.ID, "error", err)
	}
	return leased
}

// operate does the work of one operation, saves progress and keeps the lease
// meanwhile. A lost lease ends it; the chunks make sure that two processes that
// both believe to have it do nothing twice.
func (s *Service) operate(ctx context.Context, op Operation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done counter
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		for wait(ctx, min(operateSave, s.lease()/4)) {
			now := op
			now.Succeeded = done.n.Load()
			if held, err := s.control.SaveOperation(ctx, now, s.name, s.lease()); err == nil && !held {
				cancel(errors.New("another process has taken the operation over"))
			}
		}
	}()
	err := s.work(ctx, op, &done)
	lost := context.Cause(ctx)
	cancel(nil)
	<-saved
	refused, final := errors.AsType[*Refusal](err)
	if err != nil && (!final || refused.Retryable) {
		return errors.Join(err, lost)
	}
	op.Done, op.Succeeded = true, done.n.Load()
	op.Failed = op.Total - op.Succeeded
	if final {
		op.Error = refused.Code
	}
	s.log.Info("operation done", "id", op.ID, "kind", op.Kind, "subject", op.Subject, "succeeded", op.Succeeded, "error", op.Error)
	s.reach(StepOperationWorked, nil)
	_, err = s.control.SaveOperation(context.WithoutCancel(ctx), op, s.name, s.lease())
	return err
}

// lease is how long a process that died holds its operation up.
func (s *Service) lease() time.Duration { return s.patience / leasesPerWait }

func (s *Service) work(ctx context.Context, op Operation, done *counter) error {
	switch op.Kind {
	case Generating:
		return s.generate(ctx, op.Campaign, done)
	case Issuing:
		return s.fulfil(ctx, BatchKey{op.Campaign, op.Batch}, done)
	}
	return ErrInvalid.With("operation kind %q is not known", op.Kind)
}

// start begins long work, or returns the same work that is there.
func (s *Service) start(ctx context.Context, op Operation) (Operation, error) {
	id, err := s.numbers.Next(ctx, OperationNumbers)
	if err != nil {
		return op, err
	}
	op.ID = id
	op, err = s.control.StartOperation(ctx, op)
	return op, s.refusal(err)
}

// Operation returns long work as it is now.
func (s *Service) Operation(ctx context.Context, id int64) (Operation, error) {
	op, err := s.control.Operation(ctx, id)
	if errors.Is(err, ErrNoRow) {
		return op, ErrOperationNotFound
	}
	return op, s.refusal(err)
}
