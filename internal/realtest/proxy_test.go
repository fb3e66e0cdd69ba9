package realtest_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// echo starts a server that sends back what it gets.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// A line is a connection to say lines over.
type line struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) line {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return line{conn, bufio.NewReader(conn)}
}

// say sends text and returns what comes back within a limit.
func (l line) say(text string, limit time.Duration) (string, error) {
	if _, err := io.WriteString(l, text+"\n"); err != nil {
		return "", err
	}
	return l.hear(limit)
}

func (l line) hear(limit time.Duration) (string, error) {
	l.SetReadDeadline(time.Now().Add(limit))
	back, err := l.in.ReadString('\n')
	return strings.TrimSuffix(back, "\n"), err
}

const long = 10 * time.Second

func TestProxyPassesBothWays(t *testing.T) {
	l := dial(t, realtest.NewProxy(t, echo(t)).Addr)
	big := strings.Repeat("x", 1<<20)
	for _, text := range []string{"a", big, "b"} {
		if got, err := l.say(text, long); err != nil || got != text {
			t.Errorf("sent %d bytes, got %d, %v", len(text), len(got), err)
		}
	}
}

func TestProxyPassesTheEndOfTheStream(t *testing.T) {
	l := dial(t, realtest.NewProxy(t, echo(t)).Addr)
	io.WriteString(l, "last words")
	l.Conn.(*net.TCPConn).CloseWrite()
	l.SetReadDeadline(time.Now().Add(long))
	if got, err := io.ReadAll(l.in); err != nil || string(got) != "last words" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestProxyCutClosesAndRefusesUntilRestored(t *testing.T) {
	p := realtest.NewProxy(t, echo(t))
	l := dial(t, p.Addr)
	if _, err := l.say("a", long); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := l.say("b", long); err == nil || errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("want a closed connection, got %v", err)
	}
	if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("want a refused connection, got %v", err)
	}
	p.Restore()
	if got, err := dial(t, p.Addr).say("c", long); err != nil || got != "c" {
		t.Errorf("after it was restored: %q, %v", got, err)
	}
}

func TestProxyStallHoldsBackUntilRestored(t *testing.T) {
	p := realtest.NewProxy(t, echo(t))
	l := dial(t, p.Addr)
	p.Stall()
	if got, err := l.say("a", 50*time.Millisecond); err == nil {
		t.Errorf("a stalled proxy passed %q", got)
	}
	p.Restore()
	if got, err := l.hear(long); err != nil || got != "a" {
		t.Errorf("after it was restored: %q, %v", got, err)
	}
}

func TestProxyDelaysAnswersOnceEach(t *testing.T) {
	p := realtest.NewProxy(t, echo(t))
	l := dial(t, p.Addr)
	const delay = 100 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	for range 10 { // in flight together
		if _, err := io.WriteString(l, "a\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		if _, err := l.hear(long); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < delay || took > 5*delay {
		t.Errorf("ten exchanges took %v, want about %v", took, delay)
	}
}

func TestProxyEndsConnectionsOfADeadServer(t *testing.T) {
	s := realtest.Dynalite(t)
	p := realtest.NewProxy(t, strings.TrimPrefix(s.URL, "http://"))
	db := client("http://" + p.Addr)
	createTable(t, db, "proxied")
	put(t, db, "proxied", item("a", 1))
	s.Kill()
	if _, err := db.GetItem(t.Context(), getInput("proxied", "a")); err == nil {
		t.Error("a killed server answers")
	}
	s.Start()
	createTable(t, db, "proxied")
}
