package realtest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A DynamoProxy stands before a server of DynamoDB's API, counts its requests
// and makes them fail in the ways AWS and its network do. With several before
// one server, a test cuts off one client and not the others. While the server
// itself is down, connections are cut: where they are to be refused, use
// [DynamoProxy.Cut].
//
// All methods are safe for concurrent use.
type DynamoProxy struct {
	URL string // to use instead of the server's

	t        testing.TB
	upstream string
	client   *http.Client
	ctx      context.Context // ends with the test, not with a client: the server carries on without
	counts   counts
	ruling   sync.Mutex // held by a rule

	mu      sync.Mutex
	addr    string
	server  *http.Server   // nil: cut
	running sync.WaitGroup // grows only until ctx ends
	rule    func(DynamoRequest) Fault
	repairs repairs
}

// NewDynamoProxy starts a proxy before the server at url that ends with the
// test.
func NewDynamoProxy(t testing.TB, url string) *DynamoProxy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addr := FreeAddr(t)
	p := &DynamoProxy{
		URL: "http://" + addr, addr: addr,
		t: t, upstream: url, ctx: ctx, rule: Always(Fault{}), repairs: repairs{tableIDs: map[string]string{}},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		cancel()
		p.mu.Unlock()
		p.Cut()
		p.running.Wait()
		p.client.CloseIdleConnections()
	})
	return p
}

// Inject has rule decide what happens to each request that comes from now on;
// nil stops it. It is called for one request at a time, so it may count and
// remember without a lock, but must not wait.
func (p *DynamoProxy) Inject(rule func(DynamoRequest) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rule == nil {
		rule = Always(Fault{})
	}
	p.rule = rule
}

// Count returns how many requests of an operation on a table have come,
// whatever happened to them. "" stands for any operation, or any table.
func (p *DynamoProxy) Count(operation, table string) int { return p.counts.of(operation, table) }

// ResetCounts begins to count, and to number, from the beginning.
func (p *DynamoProxy) ResetCounts() { p.counts.reset() }

// Cut closes all connections and refuses new ones until [DynamoProxy.Restore].
// Requests that have come in are carried out, but their replies are lost.
func (p *DynamoProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		p.server = nil
	}
}

// Restore undoes [DynamoProxy.Cut].
func (p *DynamoProxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		return
	}
	if err := p.open(); err != nil {
		p.t.Errorf("restore DynamoDB proxy: %v", err)
	}
}

// SetTableID has the proxy describe a table with another TableId, as after
// that table was dropped and restored from a backup. "" undoes it.
func (p *DynamoProxy) SetTableID(table, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repairs.tableIDs[table] = id
}

// OmitOldItems has the proxy leave out the item of a failed condition, which
// some servers of this API do not return.
func (p *DynamoProxy) OmitOldItems(omit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repairs.omitOldItems = omit
}

// open serves on the address of the proxy.
func (p *DynamoProxy) open() error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(p.handle)}
	p.server = server
	p.running.Go(func() { server.Serve(l) }) // until Cut
	return nil
}

// handle answers one request.
func (p *DynamoProxy) handle(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.running.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil { // the client has gone
		return
	}
	req := newDynamoRequest(r.Header, body)
	req.Number = p.counts.add(req)
	fault := p.judge(req)
	reply := p.carryOut(r, req, fault)
	if reply == nil || !p.wait(fault.After) {
		panic(http.ErrAbortHandler) // which cuts the connection
	}
	reply.send(w)
}

// enter makes the test wait for the handler at its end, unless it has come.
func (p *DynamoProxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.running.Add(1)
	return true
}

// judge asks the rule.
func (p *DynamoProxy) judge(req DynamoRequest) Fault {
	p.mu.Lock()
	rule := p.rule
	p.mu.Unlock() // the rule may call our methods
	p.ruling.Lock()
	defer p.ruling.Unlock()
	return rule(req)
}

// carryOut does to req what fault says and returns the reply for the client;
// nil: it gets none.
func (p *DynamoProxy) carryOut(r *http.Request, req DynamoRequest, fault Fault) *reply {
	if !p.wait(fault.Before) {
		return nil
	}
	switch fault.Action {
	case LoseRequest:
		return nil
	case Hang:
		select {
		case <-r.Context().Done():
		case <-p.ctx.Done():
		}
		return nil
	case Forward:
		return p.forward(r, req)
	case LoseReply:
		p.forward(r, req)
		return nil
	case ServerErrorAfterWrite:
		p.forward(r, req)
	}
	return refusals[fault.Action].reply()
}

// wait returns false when the test has ended meanwhile.
func (p *DynamoProxy) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// forward sends req to the server and returns its reply, nil if there is none.
func (p *DynamoProxy) forward(r *http.Request, req DynamoRequest) *reply {
	out, err := http.NewRequestWithContext(p.ctx, r.Method, p.upstream+r.URL.RequestURI(), bytes.NewReader(req.Body))
	if err != nil {
		return nil
	}
	out.Header = r.Header.Clone()
	resp, err := p.client.Do(out)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repairs.apply(req, &reply{status: resp.StatusCode, body: body})
}
