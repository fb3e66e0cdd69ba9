package seqrpc

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// An asking is one lease request on its way through the servers.
type asking struct {
	request  *sequencev1.LeaseRequest
	results  []sequence.LeaseResult
	open     []int // indexes of the items no server has settled yet
	answered bool  // a server has answered at least once
}

// newAsking settles what cannot be sent: a name that is not UTF-8 would fail
// the other sequences of the request too.
func newAsking(req sequence.LeaseRequest) *asking {
	a := &asking{request: encodeLeaseRequest(req), results: make([]sequence.LeaseResult, len(req.Items))}
	for i, it := range req.Items {
		if err := sequence.CheckName(it.Name); err != nil {
			a.results[i] = sequence.LeaseResult{Name: it.Name, Err: coded(err)}
			continue
		}
		a.open = append(a.open, i)
	}
	a.answered = len(req.Items) > 0 && len(a.open) == 0
	return a
}

// ask asks t for the open items. It fails with [sequence.ErrUnavailable] while
// some stay open.
func (a *asking) ask(ctx context.Context, t *target, known *issuers) error {
	if a.answered && len(a.open) == 0 {
		return nil
	}
	m := &sequencev1.LeaseRequest{
		ClientId: a.request.GetClientId(),
		Items:    each(a.open, func(i int) *sequencev1.LeaseItem { return a.request.GetItems()[i] }),
	}
	res, err := t.rpc.Lease(ctx, m)
	if err != nil {
		return encodable(m, err)
	}
	if got := len(res.GetResults()); got != len(a.open) {
		return &sequence.Error{Code: sequence.CodeInternal, Message: fmt.Sprintf("%s answered %d of %d items", t.url, got, len(a.open))}
	}
	return a.settle(res.GetResults(), t, known)
}

func (a *asking) settle(results []*sequencev1.LeaseResult, t *target, known *issuers) error {
	var still []int
	for j, i := range a.open {
		a.results[i] = decodeResult(results[j])
		if e := a.results[i].Err; e != nil && e.Code == sequence.CodeUnavailable {
			still = append(still, i)
		} else if e == nil {
			known.learn(a.results[i].LeaseID, t)
		}
	}
	a.open, a.answered = still, true
	if len(still) > 0 {
		return a.results[still[0]].Err
	}
	return nil
}

// maxIssuers bounds how many server processes a client remembers. Restarts
// make new ones; the old are of no use.
const maxIssuers = 256

// issuers remembers at which target a server process answers, by the id its
// lease ids begin with.
type issuers struct {
	mu sync.Mutex
	at map[string]*target
}

func issuer(leaseID string) string {
	server, _, _ := strings.Cut(leaseID, "-")
	return server
}

func (is *issuers) learn(leaseID string, t *target) {
	server := issuer(leaseID)
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.at[server] == t {
		return
	}
	if is.at == nil || len(is.at) >= maxIssuers {
		is.at = make(map[string]*target)
	}
	is.at[strings.Clone(server)] = t
}

// of returns the target of the lease's server, nil if it is not known.
func (is *issuers) of(leaseID string) *target {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.at[issuer(leaseID)]
}
