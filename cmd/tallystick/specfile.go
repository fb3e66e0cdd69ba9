package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tallystick/tallystick/sequence"
)

// readSpecs reads definitions from a file or standard input: one JSON object
// per line, or a YAML list.
func (c *cli) readSpecs(file string) ([]sequence.Spec, error) {
	var b []byte
	var err error
	if file == "-" {
		file = "standard input"
		b, err = io.ReadAll(c.in)
	} else {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	parse := specsFromYAML
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		parse = specsFromLines
	}
	specs, err := parse(b)
	if err == nil && len(specs) == 0 {
		err = errors.New("defines no sequence (write one with - name: NAME)")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return specs, nil
}

func specsFromLines(b []byte) ([]sequence.Spec, error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	var specs []sequence.Spec
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		spec, err := parseSpec(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s", n, withoutPlace(err))
		}
		specs = append(specs, spec)
	}
	return specs, lines.Err()
}

func specsFromYAML(b []byte) ([]sequence.Spec, error) {
	var list []yaml.Node
	if err := yaml.Unmarshal(b, &list); err != nil {
		if _, other := errors.AsType[*yaml.TypeError](err); other {
			return nil, errors.New("is neither JSON lines nor a YAML list of definitions (begin each one with - name: NAME)")
		}
		return nil, fmt.Errorf("is neither JSON lines nor a YAML list of definitions: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	specs := make([]sequence.Spec, 0, len(list))
	for _, node := range list {
		spec, err := specFromNode(&node)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s", lineOf(&node), withoutPlace(err))
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func specFromNode(node *yaml.Node) (sequence.Spec, error) {
	var fields map[string]any
	if err := node.Decode(&fields); err != nil {
		return sequence.Spec{}, errors.New("is no definition (write FIELD: VALUE)")
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return sequence.Spec{}, err
	}
	return parseSpec(b)
}

// lineOf returns the line of the first key of a definition that is wrong by
// itself, or the definition's.
func lineOf(node *yaml.Node) int {
	if node.Kind != yaml.MappingNode {
		return node.Line
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		one := yaml.Node{Kind: yaml.MappingNode, Tag: node.Tag, Content: node.Content[i : i+2]}
		if _, err := specFromNode(&one); err != nil {
			return node.Content[i].Line
		}
	}
	return node.Line
}

var place = regexp.MustCompile(`\(line \d+:\d+\):? ?`)

// withoutPlace drops the place within a single definition: the line of the
// file says it.
func withoutPlace(err error) string { return place.ReplaceAllString(err.Error(), "") }
