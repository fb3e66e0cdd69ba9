package sequence

import (
	"context"
	"sync"
)

// A pool runs functions on at most limit goroutines, in the order they came.
// It keeps no goroutine while there is nothing to do. Its queue is as long as
// its callers let it be: a Service queues each sequence at most once.
type pool struct {
	limit int

	mu      sync.Mutex
	running int
	queue   []func()
	idle    chan struct{} // closed when running falls to 0; nil if nobody waits
}

// do runs f soon.
func (p *pool) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == p.limit {
		p.queue = append(p.queue, f)
		return
	}
	p.running++
	go p.work(f)
}

func (p *pool) work(f func()) {
	for ; f != nil; f = p.next() {
		f()
	}
}

// next returns the next function of the queue; nil ends the goroutine.
func (p *pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.queue = nil
		p.running--
		if p.running == 0 && p.idle != nil {
			close(p.idle)
			p.idle = nil
		}
		return nil
	}
	f := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	return f
}

// wait returns when nothing runs any more, or when ctx ends.
func (p *pool) wait(ctx context.Context) error {
	p.mu.Lock()
	if p.running == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
