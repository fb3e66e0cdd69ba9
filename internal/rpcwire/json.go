package rpcwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// HandlerOptions returns the options of a service's handler: it speaks JSON with
// people and scripts, too.
func HandlerOptions() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCompressMinBytes(compressMinBytes),
		connect.WithCodec(codec{name: "json"}),
		connect.WithCodec(codec{name: "json; charset=utf-8"}),
	}
}

// codec speaks JSON with people and scripts: it prints the contract's own
// snake_case names, accepts camelCase too, prints false, 0 and empty lists,
// and refuses a field it does not know, because a misspelt option that is
// ignored does harm.
type codec struct{ name string }

func (c codec) Name() string { return c.name }

func (c codec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no protobuf message", message)
	}
	return MarshalJSON(m)
}

func (c codec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no protobuf message", message)
	}
	name := m.ProtoReflect().Descriptor().Name()
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("the body is empty (send a %s in JSON, {} for none; its fields: %s)", name, fields(m))
	}
	if err := UnmarshalJSON(data, m); err != nil {
		return fmt.Errorf("the body is no %s in JSON: %w (its fields: %s)", name, err, fields(m))
	}
	return nil
}

// fields returns the names of m's fields.
func fields(m proto.Message) string {
	var names []string
	all := m.ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		names = append(names, all.Get(i).TextName())
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// MarshalJSON returns m as the wire has it in JSON, compact and the
// same for the same message.
func MarshalJSON(m proto.Message) ([]byte, error) {
	loose, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var tight bytes.Buffer // protojson varies its white space on purpose
	tight.Grow(len(loose))
	err = json.Compact(&tight, loose)
	return tight.Bytes(), err
}

// UnmarshalJSON reads m as MarshalJSON prints it, or returns one line that says
// where data is wrong.
func UnmarshalJSON(data []byte, m proto.Message) error {
	if err := protojson.Unmarshal(data, m); err != nil {
		return plainJSONError(err)
	}
	return nil
}

// plainJSONError drops protojson's prefix, whose space is on purpose not
// always the same character.
func plainJSONError(err error) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	text = strings.TrimPrefix(text, "proto: ")
	return errors.New(strings.Join(strings.Fields(text), " "))
}
