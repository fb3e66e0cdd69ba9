// Package seqrpc carries sequences over the network: [Handler] serves a
// [sequence.Service] and [Dial] returns a [Client] that stands in for one far
// away, with the same methods and the same errors.
//
//	service, err := seqrpc.Dial("http://10.0.0.1:7070,http://10.0.0.2:7070", seqrpc.Options{Token: token})
//	client := sequence.NewClient(service, sequence.ClientOptions{})
//	id, err := client.Next(ctx, "orders_seq")
//
// # Wire
//
// The contract is proto/tallystick/sequence/v1/sequence.proto. One path per
// method answers gRPC, gRPC-Web, Connect and plain JSON, over HTTP/1.1 and
// HTTP/2, with TLS or without:
//
//	curl -H 'Content-Type: application/json' -d '{"name":"orders_seq"}' \
//	    http://127.0.0.1:7070/tallystick.sequence.v1.SequenceService/Get
//
// # Errors
//
// A [sequence.Error] crosses the wire whole: code, field, message, remedy and
// retry-after arrive as they were sent; its cause arrives as text within the
// message. What never got to a server is [sequence.ErrUnavailable]. What was
// sent and not answered is [sequence.ErrUnknownOutcome], but
// [sequence.ErrUnavailable] where asking again does no harm: for reads and for
// leases, because a lost lease is burned.
//
// The package needs nothing but connect and protobuf.
package seqrpc

//go:generate ../../proto/generate.sh

import "github.com/tallystick/tallystick/sequence"

// A Service is what a [Handler] serves and what a [Client] is.
// [sequence.Service] is one.
type Service interface {
	sequence.Leaser
	sequence.Admin
}
