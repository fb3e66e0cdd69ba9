package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/watched"
)

// greet says that the server is ready and what to try.
func (c *cli) greet(o serveOptions, addr net.Addr, tokens access.List, certificate *watched.File[tls.Certificate]) {
	var b strings.Builder
	base := serverURL(o, addr)
	if certificate != nil {
		base = certified(base, certificate.Get())
	}
	fmt.Fprintf(&b, "Tallystick %s is ready at %s, with sequences in %s.\n\nTry it:\n\n", version, base, o.store.describe())

	var flags, curl string
	if base != defaultServer {
		flags = " --server " + base
	}
	if certificate != nil {
		flags += " --tls-ca " + o.tlsCert
		curl = "--cacert " + o.tlsCert + " "
	}
	if tokens.Exists && !o.insecureNoTokens {
		fmt.Fprintf(&b, "  export TALLYSTICK_TOKEN=...  # an admin token; %s token create --scope admin --data %s makes one\n", c.program, o.store.data)
		curl += `-H "Authorization: Bearer $TALLYSTICK_TOKEN" `
	}
	fmt.Fprintf(&b, "  %s seq create orders_seq --start 1001 --increment 5%s\n", c.program, flags)
	fmt.Fprintf(&b, "  %s seq next orders_seq -n 5%s\n", c.program, flags)
	fmt.Fprintf(&b, "  curl %s-H 'Content-Type: application/json' -d '{\"items\":[{\"name\":\"orders_seq\",\"count\":5}]}' \\\n"+
		"    %s/tallystick.sequence.v1.SequenceService/Lease\n\nStop it with Ctrl-C.\n", curl, base)
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

// certified returns base with a host that the certificate is for.
func certified(base string, c tls.Certificate) string {
	u, err := url.Parse(base)
	if err != nil || c.Leaf == nil || c.Leaf.VerifyHostname(u.Hostname()) == nil {
		return base
	}
	switch leaf := c.Leaf; {
	case len(leaf.DNSNames) > 0 && !strings.Contains(leaf.DNSNames[0], "*"):
		u.Host = net.JoinHostPort(leaf.DNSNames[0], u.Port())
	case len(leaf.IPAddresses) > 0:
		u.Host = net.JoinHostPort(leaf.IPAddresses[0].String(), u.Port())
	}
	return u.String()
}
