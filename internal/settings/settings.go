// Package settings gives a command's flags the values of a configuration file
// and of the environment. One rule names a setting everywhere: the flag
// --dynamodb-table is dynamodb-table in the file and TALLYSTICK_DYNAMODB_TABLE
// in the environment. What is said on the command line counts most, then the
// environment, then the file, then the default.
package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	yamlparser "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Prefix begins the name of every environment variable.
const Prefix = "TALLYSTICK_"

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets every flag that the command line did not from environ and then
// from the YAML file at path ("": none). A key of the file that is not in keys
// is an error naming its line; variables that no flag knows are not, because
// other commands know them.
func Apply(flags *pflag.FlagSet, keys []string, path string, environ []string) error {
	file, lines, err := loadFile(path, keys)
	if err != nil {
		return err
	}
	variables := loadEnv(flags, environ)
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Changed || wrong != nil:
		case variables.Exists(f.Name):
			wrong = set(flags, f, variables, EnvName(f.Name))
		case file.Exists(f.Name):
			wrong = set(flags, f, file, fmt.Sprintf("%s line %d: %s", path, lines[f.Name], f.Name))
		}
	})
	return wrong
}

// set gives f the value that values has of it.
func set(flags *pflag.FlagSet, f *pflag.Flag, values *koanf.Koanf, source string) error {
	text := values.String(f.Name)
	if list, ok := values.Get(f.Name).([]any); ok {
		text = strings.Trim(strings.Join(values.Strings(f.Name), ","), ",")
		if len(list) == 0 {
			return nil
		}
	}
	if err := flags.Set(f.Name, text); err != nil {
		return &ValueError{Source: source, Value: text, Flag: f, Err: cmp.Or(errors.Unwrap(err), err)}
	}
	return nil
}

// A ValueError is a value that its flag does not take.
type ValueError struct {
	Source string // the variable, or the file with line and key
	Value  string
	Flag   *pflag.Flag
	Err    error // the flag's own, which does not name it
}

// Error returns source, value and cause in one line.
func (e *ValueError) Error() string { return fmt.Sprintf("%s %q: %v", e.Source, e.Value, e.Err) }

// Unwrap returns the cause.
func (e *ValueError) Unwrap() error { return e.Err }

func loadEnv(flags *pflag.FlagSet, environ []string) *koanf.Koanf {
	k := koanf.New("/")
	names := make(map[string]string)
	flags.VisitAll(func(f *pflag.Flag) { names[EnvName(f.Name)] = f.Name })
	// Neither can fail: the variables are in memory and the keys are flat.
	_ = k.Load(env.Provider("/", env.Opt{
		Prefix:        Prefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return names[name], value },
	}), nil)
	return k
}

// loadFile returns the settings of a file and the lines they are on.
func loadFile(path string, keys []string) (*koanf.Koanf, map[string]int, error) {
	k := koanf.New("/")
	if path == "" {
		return k, nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file: %w", err)
	}
	lines, err := checkKeys(b, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	if err := k.Load(rawbytes.Provider(b), yamlparser.Parser()); err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return k, lines, nil
}

// checkKeys returns the lines of the keys, and fails with the line of one that
// nobody knows.
func checkKeys(b []byte, keys []string) (map[string]int, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, oneLine(err)
	}
	if len(doc.Content) == 0 {
		return nil, nil // comments only
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: write settings as NAME: VALUE", root.Line)
	}
	lines := make(map[string]int)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case !slices.Contains(keys, key.Value):
			return nil, fmt.Errorf("line %d: unknown setting %q; known are %s", key.Line, key.Value, strings.Join(keys, ", "))
		case value.Kind == yaml.MappingNode:
			return nil, fmt.Errorf("line %d: %s takes a value, not settings of its own", key.Line, key.Value)
		}
		lines[key.Value] = key.Line
	}
	return lines, nil
}

func oneLine(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	return errors.New(strings.Join(strings.Fields(text), " "))
}
