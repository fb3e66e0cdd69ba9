package migrate

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tallystick/tallystick/internal/spelling"
)

// check returns the first thing in a file that has not the form of a plan, and
// notes where everything is.
func (f planText) check(root *yaml.Node) error {
	f.lines[""] = root.Line
	return f.checkValue(root, reflect.TypeFor[Plan](), "")
}

// checkValue checks the value of the key path, which is to be read as t.
func (f planText) checkValue(n *yaml.Node, t reflect.Type, path string) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	form := formOf(t)
	switch {
	case n.ShortTag() == "!!null": // as if it was left out
		return nil
	case form.block && n.Kind == yaml.MappingNode:
		return f.checkBlock(n, t, path)
	case n.Kind == yaml.ScalarNode:
		f.values[path] = f.written(n)
	}
	if n.Kind == form.kind && n.Decode(reflect.New(t).Interface()) == nil {
		return nil
	}
	return &PlanError{Line: n.Line, Field: path, Message: f.quote(n, path) + " is not " + form.name, Remedy: "write it like " + example(path, form)}
}

// checkBlock checks the keys of a block, which are the fields of a struct or
// the names of columns.
func (f planText) checkBlock(n *yaml.Node, t reflect.Type, path string) error {
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			if err := f.checkMerged(value, t, path); err != nil {
				return err
			}
			continue
		}
		place := strings.TrimPrefix(path+"."+key.Value, ".")
		of, known := typeOf(t, key.Value)
		switch {
		case !known:
			return unknownKey(key, t, path)
		case first[key.Value] > 0:
			return &PlanError{Line: key.Line, Field: place, Message: fmt.Sprintf("was given in line %d already", first[key.Value]), Remedy: "remove one"}
		}
		first[key.Value], f.lines[place] = key.Line, key.Line
		if err := f.checkValue(value, of, place); err != nil {
			return err
		}
	}
	return nil
}

// checkMerged checks what << takes keys from: a block, or several.
func (f planText) checkMerged(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind != yaml.SequenceNode {
		return f.checkValue(n, t, path)
	}
	for _, block := range n.Content {
		if err := f.checkValue(block, t, path); err != nil {
			return err
		}
	}
	return nil
}

// keyWord is what a key looks like; anything else may be a value by mistake.
var keyWord = regexp.MustCompile(`^[A-Za-z_]{1,30}$`)

// unknownKey returns the error for a key of a block that has no such key.
func unknownKey(key *yaml.Node, t reflect.Type, path string) *PlanError {
	block := cmp.Or(path, "a plan")
	e := &PlanError{Line: key.Line, Field: path, Message: "has a key that is none of " + block + "'s"}
	if keyWord.MatchString(key.Value) {
		e.Field = strings.TrimPrefix(path+"."+key.Value, ".")
		e.Message = "is not a key of " + block
	}
	keys := keysOf(t)
	e.Remedy = "its keys are " + strings.Join(keys, ", ")
	if similar := spelling.Nearest(key.Value, keys); similar != "" {
		e.Remedy = "did you mean " + similar + "?"
	}
	return e
}

// keysOf returns the keys of a struct in YAML.
func keysOf(t reflect.Type) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(t) {
		if key := field.Tag.Get("yaml"); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// typeOf returns what the value of a key is read as.
func typeOf(t reflect.Type, key string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for _, field := range reflect.VisibleFields(t) {
		if field.Tag.Get("yaml") == key && key != "-" {
			return field.Type, true
		}
	}
	return nil, false
}

// A form says how values of a type are written.
type form struct {
	kind    yaml.Kind
	block   bool // it has keys
	name    string
	example string
}

func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[Duration]():
		return form{yaml.ScalarNode, false, "a duration", "90s, 10m or 24h"}
	case reflect.TypeFor[Width]():
		return form{yaml.ScalarNode, false, "a width", "1h, or a number of keys with by: integer"}
	case reflect.TypeFor[*time.Time]():
		return form{yaml.ScalarNode, false, "an instant", "2024-10-20T00:00:00Z"}
	case reflect.TypeFor[[]Duration]():
		return form{yaml.SequenceNode, false, "a list of durations", "[100ms, 200ms, 500ms]"}
	}
	switch t.Kind() {
	case reflect.Int:
		return form{yaml.ScalarNode, false, "a whole number", "8"}
	case reflect.Float64:
		return form{yaml.ScalarNode, false, "a number", "5000"}
	case reflect.Bool:
		return form{yaml.ScalarNode, false, "true or false", "true"}
	case reflect.Slice:
		return form{yaml.SequenceNode, false, "a list of names", "[id]"}
	case reflect.Map, reflect.Struct:
		return form{0, true, "a block of keys", "{...}, or its keys in lines of their own, indented"}
	}
	return form{yaml.ScalarNode, false, "a text", "name"}
}

// example returns how a key is written.
func example(path string, f form) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	return strings.TrimPrefix(key+": "+f.example, ": ")
}

// written returns a scalar as the file has it.
func (f planText) written(n *yaml.Node) string {
	if raw, ok := f.raw[n]; ok {
		return raw
	}
	return n.Value
}

// secretive are the keys whose values may hold a password.
var secretive = map[string]bool{"source.dsn": true, "sink.endpoint": true, "state.url": true}

// plainWord is a value that is no connection string, wherever it stands.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.,+ ${}-]{0,40}$`)

// quote returns a value as an error names it.
func (f planText) quote(n *yaml.Node, path string) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a block of keys"
	case yaml.SequenceNode:
		return "a list"
	}
	return quote(f.written(n), path)
}

func quote(value, path string) string {
	if secretive[path] || !plainWord.MatchString(value) {
		return "the value"
	}
	return fmt.Sprintf("%q", value)
}
