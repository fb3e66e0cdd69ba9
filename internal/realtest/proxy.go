package realtest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy stands before any server and disturbs its TCP connections. It knows
// nothing of what they carry; [DynamoProxy] does.
//
// It is our own because Shopify/toxiproxy, the library for
// this, brings an HTTP server, a metrics registry and a router into go.mod.
type Proxy struct {
	Addr string // host:port to connect to instead of the server's

	t      testing.TB
	target string
	ctx    context.Context // ends with the test
	wg     sync.WaitGroup

	mu      sync.Mutex
	gate    net.Listener // nil: cut
	conns   map[net.Conn]bool
	delay   time.Duration
	flowing chan struct{} // closed unless stalled
}

// NewProxy starts a proxy before the server at target, a host:port, that ends
// with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{Addr: FreeAddr(t), t: t, target: target, conns: map[net.Conn]bool{}, flowing: make(chan struct{})}
	close(p.flowing)
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithCancel(context.Background())
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Cut closes all connections and refuses new ones until [Proxy.Restore]. What
// the proxy has received and not passed on yet is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		p.gate.Close()
		p.gate = nil
	}
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// Stall keeps connections open, and accepts new ones, but holds every byte
// back until [Proxy.Restore].
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flows() {
		p.flowing = make(chan struct{})
	}
}

// Delay holds back what the server sends for d, so that each exchange takes d
// longer. Nothing is reordered.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Restore undoes [Proxy.Cut], [Proxy.Stall] and [Proxy.Delay].
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	if !p.flows() {
		close(p.flowing)
	}
	if p.gate != nil {
		return
	}
	if err := p.open(); err != nil {
		p.t.Errorf("restore proxy: %v", err)
	}
}

// flows reports whether bytes are passed on.
func (p *Proxy) flows() bool {
	select {
	case <-p.flowing:
		return true
	default:
		return false
	}
}

// open accepts connections.
func (p *Proxy) open() error {
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	p.gate = l
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.forward(l, client) })
		}
	})
	return nil
}

// forward connects client, which came through gate l, to the server.
func (p *Proxy) forward(l net.Listener, client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(l, client, server) {
		return
	}
	defer p.leave(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client, p.noDelay) })
	both.Go(func() { p.pass(client, server, p.currentDelay) })
	both.Wait()
}

// enter makes a connection one that Cut closes, unless l was closed meanwhile.
func (p *Proxy) enter(l net.Listener, conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != l {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

func (p *Proxy) noDelay() time.Duration { return 0 }

func (p *Proxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// A parcel is what was read at once, and when to pass it on.
type parcel struct {
	data []byte
	due  time.Time
}

// pass copies from src to dst until src ends and all of it is delivered, and
// then tells dst that no more will come.
func (p *Proxy) pass(dst, src net.Conn, delay func() time.Duration) {
	parcels := make(chan parcel, 256)
	p.wg.Go(func() {
		defer close(parcels)
		collect(parcels, src, delay)
	})
	for parcel := range parcels {
		if !p.await(parcel.due) {
			continue
		}
		if _, err := dst.Write(parcel.data); err != nil {
			src.Close()
		}
	}
	dst.(*net.TCPConn).CloseWrite()
}

// collect reads src until it ends.
func collect(parcels chan<- parcel, src net.Conn, delay func() time.Duration) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			parcels <- parcel{bytes.Clone(buf[:n]), time.Now().Add(delay())}
		}
		if err != nil {
			return
		}
	}
}

// await waits until due, and on while the proxy is stalled. It returns false
// when the test has ended.
func (p *Proxy) await(due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		return false
	}
	p.mu.Lock()
	flowing := p.flowing
	p.mu.Unlock()
	select {
	case <-flowing:
		return true
	case <-p.ctx.Done():
		return false
	}
}
