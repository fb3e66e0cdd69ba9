package seqrpc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// defaultTimeout is the deadline of a call whose context has none.
const defaultTimeout = 5 * time.Second

// Options configures a [Client].
type Options struct {
	Token        string                // bearer token; "": none
	CAFile       string                // PEM file of the authorities to trust; "": the system's
	Timeout      time.Duration         // of a call whose context has no deadline; 0: 5 s
	Interceptors []connect.Interceptor // around every call, for tracing say

	// InsecureNoTLS lets the token leave this machine in clear text, where
	// the whole network can read it.
	InsecureNoTLS bool
}

// Dial returns a client of the servers at the given URLs, separated by commas:
// http://HOST:PORT speaks HTTP/2 in clear text, https://HOST:PORT TLS. It
// connects to none of them yet; a server that is away shows in the first call.
// Servers that share a store are interchangeable: the client begins with one
// at random and stays with it until it fails.
//
// A token is not sent in clear text to another machine unless the options say
// so: that fails with [sequence.ErrInvalid].
func Dial(urls string, opts Options) (*Client, error) {
	httpClient, err := rpcwire.HTTPClient(opts.CAFile)
	if err != nil {
		return nil, fmt.Errorf("seqrpc: %w", err)
	}
	c := &Client{timeout: opts.Timeout, http: httpClient}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	for raw := range strings.SplitSeq(urls, ",") {
		base, err := rpcwire.ParseURL(strings.TrimSpace(raw))
		if err != nil {
			return nil, fmt.Errorf("seqrpc: %w", err)
		}
		if opts.Token != "" && !opts.InsecureNoTLS && rpcwire.Readable(base) {
			return nil, &sequence.Error{Code: sequence.CodeInvalid, Field: "server",
				Message: fmt.Sprintf("the token would go to %s in clear text", base),
				Remedy:  "use https://, or allow it with --insecure-no-tls, Options.InsecureNoTLS"}
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
	return append([]connect.ClientOption{
		connect.WithReadMaxBytes(64 << 20),
		connect.WithInterceptors(opts.Interceptors...),
	}, rpcwire.ClientOptions(opts.Token)...)
}
