package seqrpc

import (
	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/internal/rpcwire"
)

// MarshalJSON returns m as this package's wire has it in JSON, compact and the
// same for the same message.
func MarshalJSON(m proto.Message) ([]byte, error) { return rpcwire.MarshalJSON(m) }

// UnmarshalJSON reads m as MarshalJSON prints it, or returns one line that says
// where data is wrong.
func UnmarshalJSON(data []byte, m proto.Message) error { return rpcwire.UnmarshalJSON(data, m) }
