// Package rpcwire has what every service on connect shares: how JSON looks, and
// how a client reaches a server.
package rpcwire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// compressMinBytes is the size from which messages are compressed.
const compressMinBytes = 1024

const (
	dialTimeout  = 2 * time.Second  // to connect to one server
	pingInterval = 10 * time.Second // of a silent connection with calls under way
	pingPatience = 5 * time.Second  // for the answer
	idleTimeout  = 90 * time.Second // after which an unused connection is closed
)

// ClientOptions returns the options of a service's client, which sends token with
// every call; "" sends none.
func ClientOptions(token string) []connect.ClientOption {
	options := []connect.ClientOption{connect.WithCompressMinBytes(compressMinBytes)}
	if token != "" {
		options = append(options, connect.WithInterceptors(bearer(token)))
	}
	return options
}

// bearer sends token with every unary call.
func bearer(token string) connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			req.Header().Set("Authorization", "Bearer "+token)
			return next(ctx, req)
		}
	})
}

// ParseURL returns raw without a slash at its end, or what is wrong with it.
func ParseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "", errors.New("the server URL is empty (write it like http://127.0.0.1:7070)")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("server URL %q is none (write it like http://127.0.0.1:7070)", raw)
	case u.User != nil:
		return "", fmt.Errorf("server URL of %s holds a password (give the token apart)", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("server URL %q has more than a path (drop everything from the ? or # on)", raw)
	}
	return strings.TrimRight(raw, "/"), nil
}

// Readable reports whether what is sent to a URL can be read on the network: it
// is in clear text and leaves this machine.
func Readable(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Deadline gives a call whose context has no deadline the one of its client.
func Deadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// HTTPClient returns a client that speaks HTTP/2, over TLS or in clear text, and
// trusts the authorities in caFile (PEM), the system's with "". It follows no
// redirect, which might take the token elsewhere.
func HTTPClient(caFile string) (*http.Client, error) {
	transport, err := newTransport(caFile)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA file: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s has no certificate in PEM", caFile)
		}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(false)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		Protocols:           &protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingPatience},
	}, nil
}
