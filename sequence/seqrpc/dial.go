package seqrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// DefaultTimeout is the deadline of a call whose context has none.
const DefaultTimeout = 5 * time.Second

const (
	dialTimeout  = 2 * time.Second  // to connect to one server
	pingInterval = 10 * time.Second // of a silent connection with calls under way
	pingPatience = 5 * time.Second  // for the answer
	idleTimeout  = 90 * time.Second // after which an unused connection is closed
)

// Options configures a [Client].
type Options struct {
	Token        string                // bearer token; "": none
	CAFile       string                // PEM file of the authorities to trust; "": the system's
	Timeout      time.Duration         // of a call whose context has no deadline; 0: DefaultTimeout
	Interceptors []connect.Interceptor // around every call, for tracing say
}

// Dial returns a client of the servers at the given URLs, separated by commas:
// http://HOST:PORT speaks HTTP/2 in clear text, https://HOST:PORT TLS. It
// connects to none of them yet; a server that is away shows in the first call.
// Servers that share a store are interchangeable: the client begins with one
// at random and stays with it until it fails.
func Dial(urls string, opts Options) (*Client, error) {
	transport, err := newTransport(opts.CAFile)
	if err != nil {
		return nil, err
	}
	c := &Client{timeout: opts.Timeout, transport: transport}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	httpClient := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for raw := range strings.SplitSeq(urls, ",") {
		base, err := parseURL(strings.TrimSpace(raw))
		if err != nil {
			return nil, err
		}
		c.targets = append(c.targets, &target{
			url: base,
			rpc: sequencev1.NewSequenceServiceClient(httpClient, base, clientOptions(opts)...),
		})
	}
	c.preferred.Store(rand.Int64N(int64(len(c.targets))))
	return c, nil
}

func clientOptions(opts Options) []connect.ClientOption {
	options := []connect.ClientOption{
		connect.WithReadMaxBytes(64 << 20),
		connect.WithCompressMinBytes(compressMinBytes),
		connect.WithInterceptors(opts.Interceptors...),
	}
	if opts.Token != "" {
		options = append(options, connect.WithInterceptors(bearer(opts.Token)))
	}
	return options
}

// bearer sends token with every call.
func bearer(token string) connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			req.Header().Set("Authorization", "Bearer "+token)
			return next(ctx, req)
		}
	})
}

// parseURL returns raw without a slash at its end, or what is wrong with it.
func parseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "", errors.New("seqrpc: server URL is empty: give one like http://127.0.0.1:7070")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("seqrpc: server URL %q: give one like http://127.0.0.1:7070", raw)
	case u.User != nil:
		return "", fmt.Errorf("seqrpc: server URL of %s holds a password: give the token apart", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("seqrpc: server URL %q: drop everything from the ? or # on", raw)
	}
	return strings.TrimRight(raw, "/"), nil
}

func newTransport(caFile string) (*http.Transport, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("seqrpc: read the CA file: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("seqrpc: CA file %s has no certificate in PEM", caFile)
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
