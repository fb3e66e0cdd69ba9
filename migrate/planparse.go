package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParsePlan reads a plan from YAML. ${NAME} in a value is replaced by what env
// returns for NAME; one that is not set is an error, and so is an unknown key.
// An error is a [*PlanError] with the line of what is wrong, or of the block in
// which something is missing. It quotes the file as it stands, never what env
// returned, and no value that may hold a password.
func ParsePlan(text []byte, env func(string) (string, bool)) (Plan, error) {
	root, err := parseYAML(text)
	if err != nil {
		return Plan{}, err
	}
	f := planText{values: map[string]string{}, lines: map[string]int{}, raw: map[*yaml.Node]string{}}
	if err := f.expand(root, env); err != nil {
		return Plan{}, err
	}
	if err := f.check(root); err != nil {
		return Plan{}, err
	}
	p := defaults()
	if err := root.Decode(&p); err != nil {
		return Plan{}, yamlError(err)
	}
	p.Text, p.lines = string(text), f.lines
	p.complete()
	return p, f.judge(p)
}

// parseYAML returns the one document of text.
func parseYAML(text []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&document); errors.Is(err, io.EOF) {
		return nil, &PlanError{Message: "is empty", Remedy: "begin with name, source, sink and write"}
	} else if err != nil {
		return nil, yamlError(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &PlanError{Line: second.Line, Message: "a second document begins here", Remedy: "a file has one plan"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	return document.Content[0], nil
}

// A planText is what is known of a plan's text.
type planText struct {
	values map[string]string     // scalars by their key, like "source.kind", as they are written
	lines  map[string]int        // of the keys; of the whole: ""
	raw    map[*yaml.Node]string // what was replaced by the environment
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} in every scalar value below n.
func (f planText) expand(n *yaml.Node, env func(string) (string, bool)) error {
	if n.Kind == yaml.ScalarNode {
		return f.expandScalar(n, env)
	}
	for _, c := range n.Content {
		if err := f.expand(c, env); err != nil {
			return err
		}
	}
	return nil
}

func (f planText) expandScalar(n *yaml.Node, env func(string) (string, bool)) error {
	for _, m := range variable.FindAllStringSubmatch(n.Value, -1) {
		v, ok := env(m[1])
		if !ok {
			return &PlanError{Line: n.Line, Message: "the environment variable " + m[1] + " is not set", Remedy: "set it, or write the value"}
		}
		if _, known := f.raw[n]; !known {
			f.raw[n] = n.Value
		}
		n.Value = strings.ReplaceAll(n.Value, m[0], v)
		n.Tag = "" // the value decides
		if n.Style == 0 && n.Value == "" {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return nil
}

var (
	yamlLine = regexp.MustCompile(`line (\d+): (.*)`)
	anchor   = regexp.MustCompile(`unknown anchor '.*' referenced`)
	quoted   = regexp.MustCompile("`[^`]*`")
)

// yamlError returns what the YAML parser says in one line, without the values
// that it quotes.
func yamlError(err error) *PlanError {
	text := quoted.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "a value")
	e := &PlanError{Message: strings.Join(strings.Fields(text), " "), Remedy: "correct the YAML there, or just before"}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1], &e.Line)
		e.Message = m[2]
	}
	if strings.HasPrefix(e.Message, "did not find expected") {
		e.Line++ // these come with the line before, or with none in the first
	}
	switch {
	case anchor.MatchString(e.Message):
		e.Message, e.Remedy = "a value begins with * and names no anchor", `put it in quotes: "..."`
	case strings.Contains(e.Message, "mapping values are not allowed"):
		e.Remedy = "put values with a colon in quotes, and indent all keys of a block alike"
	case strings.Contains(e.Message, "cannot start any token"):
		e.Remedy = "indent with spaces, not tabs, and put values that begin with @, % or ` in quotes"
	}
	return e
}
