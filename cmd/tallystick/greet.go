package main

import (
	"fmt"
	"net"
	"strings"
)

// greet says that the server is ready and what to try.
func (c *cli) greet(o serveOptions, addr net.Addr) {
	url := serverURL(o, addr)
	var flags string
	if url != defaultServer {
		flags = " --server " + url
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Tallystick %s is ready at %s, with sequences in %s.\n\nTry it:\n\n", version, url, o.store.describe())
	fmt.Fprintf(&b, "  %s seq create orders_seq --start 1001 --increment 5%s\n", c.program, flags)
	fmt.Fprintf(&b, "  %s seq next orders_seq -n 5%s\n", c.program, flags)
	fmt.Fprintf(&b, "  curl -H 'Content-Type: application/json' -d '{\"items\":[{\"name\":\"orders_seq\",\"count\":5}]}' \\\n"+
		"    %s/tallystick.sequence.v1.SequenceService/Lease\n\nStop it with Ctrl-C.\n", url)
	fmt.Fprint(c.out, b.String())
}

// serverURL returns where clients on this machine find the server.
func serverURL(o serveOptions, addr net.Addr) string {
	scheme := "http"
	if o.tlsCert != "" {
		scheme = "https"
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return scheme + "://" + addr.String()
	}
	host, _, _ := net.SplitHostPort(o.listen)
	if tcp.IP.IsUnspecified() || host == "" {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}
