package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/sequence"
)

// specFlags are the flags that say what a definition is to be.
type specFlags struct {
	spec       sequence.Spec
	descending bool
	cycle      bool
	owner      string
	labels     []string
}

func (s *specFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(int64Flag{&s.spec.Start}, "start", "first `value`")
	f.Var(int64Flag{&s.spec.Increment}, "increment", "`step` between values, negative to descend")
	f.Var(int64Flag{&s.spec.Min}, "min", "lowest `value`")
	f.Var(int64Flag{&s.spec.Max}, "max", "highest `value`")
	f.BoolVar(&s.cycle, "cycle", false, "begin again after the last value; --cycle=false ends there")
	f.BoolVar(&s.descending, "descending", false, "short for --increment -1")
	f.Var(int64Flag{&s.spec.BlockSize}, "block-size", "least `values` a server takes from the store at once")
	f.Var(int64Flag{&s.spec.MaxBlock}, "max-block", "most `values` it takes at once")
	f.Var(int64Flag{&s.spec.ServerCacheMax}, "server-cache-max", "most unserved `values` one server holds")
	f.Var(int64Flag{&s.spec.ClientCacheMin}, "client-cache-min", "least `values` a client's full cache holds")
	f.Var(int64Flag{&s.spec.ClientCacheMax}, "client-cache-max", "most `values` it holds")
	f.Var(int64Flag{&s.spec.MinThreshold}, "min-threshold", "a client refills when this many `values` are left")
	f.Var(int64Flag{&s.spec.BufferSeconds}, "buffer-seconds", "`seconds` of consumption a client keeps ahead")
	f.StringVar(&s.owner, "owner", "", "`who` to ask about it")
	f.StringArrayVar(&s.labels, "label", nil, "label as `KEY=VALUE`; may be repeated")
}

// tellDefaults adds to the help what a new definition has where a flag is left
// out.
func tellDefaults(cmd *cobra.Command) {
	for name, def := range map[string]string{
		"start":            "min, max when descending",
		"increment":        "1",
		"min":              "1, the lowest there is when descending",
		"max":              "the highest there is, -1 when descending",
		"block-size":       number(sequence.DefaultBlockSize),
		"max-block":        number(sequence.DefaultMaxBlock),
		"server-cache-max": number(sequence.DefaultServerCacheMax),
		"client-cache-min": number(sequence.DefaultClientCacheMin),
		"client-cache-max": number(sequence.DefaultClientCacheMax),
		"min-threshold":    "a fifth of its cache",
		"buffer-seconds":   number(sequence.DefaultBufferSeconds),
	} {
		f := cmd.Flags().Lookup(name)
		f.Usage += " (default " + def + ")"
	}
}

// said returns the spec that the flags describe.
func (s *specFlags) said(cmd *cobra.Command, name string) (sequence.Spec, error) {
	spec, f := s.spec, cmd.Flags()
	spec.Name = name
	if f.Changed("cycle") {
		spec.Cycle = &s.cycle
	}
	if s.descending {
		if spec.Increment != nil {
			return spec, &usageError{err: errors.New("--descending is --increment -1"), field: "increment", remedy: "give only one of them"}
		}
		spec.Increment = new(int64(-1))
	}
	if f.Changed("owner") {
		spec.Owner = &s.owner
	}
	if f.Changed("label") {
		labels, err := parseLabels(s.labels)
		if err != nil {
			return spec, err
		}
		spec.Labels = labels
	}
	return spec, nil
}

// given reports whether one of these flags was given.
func (s *specFlags) given(cmd *cobra.Command) bool { return s.firstGiven(cmd) != "" }

// firstGiven returns the name of the first of these flags that was given.
func (s *specFlags) firstGiven(cmd *cobra.Command) string {
	own := &cobra.Command{}
	new(specFlags).add(own)
	var first string
	own.Flags().VisitAll(func(f *pflag.Flag) {
		if first == "" && cmd.Flags().Changed(f.Name) {
			first = f.Name
		}
	})
	return first
}

// parseLabels reads KEY=VALUE; a single empty text means no labels.
func parseLabels(said []string) (map[string]string, error) {
	labels := make(map[string]string)
	for _, l := range said {
		if l == "" && len(said) == 1 {
			break
		}
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, &usageError{err: fmt.Errorf("--label %q is not KEY=VALUE", l), field: "labels", remedy: `write it like --label team=orders; --label "" removes all`}
		}
		labels[k] = v
	}
	return labels, nil
}

// An int64Flag sets *p to a value that may be left unsaid.
type int64Flag struct{ p **int64 }

// A rangeError says which values a flag takes.
type rangeError struct{ what, remedy string }

func (e *rangeError) Error() string { return e.what + " (" + e.remedy + ")" }

// String implements [pflag.Value].
func (f int64Flag) String() string {
	if f.p == nil || *f.p == nil {
		return ""
	}
	return strconv.FormatInt(**f.p, 10)
}

// Type implements [pflag.Value].
func (f int64Flag) Type() string { return "int" }

// Set implements [pflag.Value].
func (f int64Flag) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return &rangeError{whatIsWrong(s, "does not fit 64 bits"), fmt.Sprintf("use a whole number from %d to %d", int64(math.MinInt64), int64(math.MaxInt64))}
	}
	*f.p = &v
	return nil
}

// whatIsWrong says why s is no whole number that fits, which is tooLarge if it
// is one.
func whatIsWrong(s, tooLarge string) string {
	digits := strings.TrimLeft(s, "+-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		return tooLarge
	}
	return "is no whole number"
}
