package realtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports to choose from. They lie below those that Linux and macOS give to
// outgoing connections, so that none of these takes the port of a server while
// a test has it down.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// FreeAddr returns an address, host:port, that a server of the test may listen
// on. Its port is not one that outgoing connections get, so it stays free while
// the test has that server down.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return loopback(port)
}

// freePort returns a port of the loopback interface nobody listens on.
func freePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// onFreePort starts a server, again on another port should somebody else have
// taken the first one in between.
func onFreePort(start func(port int) (*Process, error)) (*Process, error) {
	var failed error
	for range 3 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		p, err := start(port)
		if err == nil {
			return p, nil
		}
		failed = err
	}
	return nil, failed
}

// loopback returns the address of port.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
