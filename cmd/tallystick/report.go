package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/sequence"
)

// An output is a form to print data in.
type output string

const (
	table    output = "table"
	jsonForm output = "json"
)

// String implements [pflag.Value].
func (o *output) String() string { return string(*o) }

// Type implements [pflag.Value].
func (o *output) Type() string { return "json|table" }

// Set implements [pflag.Value].
func (o *output) Set(s string) error {
	if s := output(s); s == table || s == jsonForm {
		*o = s
		return nil
	}
	return errors.New("use json or table")
}

// outputOf finds the output among args, for mistakes that come before the
// flags are understood.
func outputOf(args []string) output {
	for i, a := range args {
		if slices.Contains([]string{"-ojson", "-o=json", "--output=json"}, a) ||
			i > 0 && a == "json" && (args[i-1] == "-o" || args[i-1] == "--output") {
			return jsonForm
		}
	}
	return table
}

// A usageError is a command line that cannot be carried out as it is.
type usageError struct {
	err    error
	field  string
	remedy string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// failed returns the error of a command that cannot be carried out now; remedy
// says what to do.
func failed(remedy, format string, args ...any) error {
	return &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func isUsage(err error) bool {
	_, ok := errors.AsType[*usageError](err)
	return ok
}

// errReported ends a command with exit code 1 that has said itself why.
var errReported = errors.New("reported")

// errDiffer ends a command with exit code 3 that has said itself why.
var errDiffer = errors.New("differences")

// errInterrupted ends a command that a signal ended while it asked.
var errInterrupted = errors.New("interrupted: nothing was changed")

// A failure is an error as it is printed.
type failure struct {
	Code    sequence.Code `json:"code"`
	Field   string        `json:"field"`
	Message string        `json:"message"`
	Remedy  string        `json:"remedy"`
}

// report prints err as one line.
func (c *cli) report(err error, usage bool) {
	if errors.Is(err, errReported) {
		return
	}
	c.printFailure(describe(err, usage))
}

func (c *cli) printFailure(f failure) {
	f.Message = c.secrets.mask(f.Message)
	if c.output == jsonForm {
		b, _ := json.Marshal(f) // strings cannot fail
		fmt.Fprintf(c.err, "%s\n", b)
		return
	}
	fmt.Fprintf(c.err, "tallystick: %s\n", f.line())
}

// line returns the failure for people.
func (f failure) line() string {
	line := f.Message
	if f.Remedy != "" {
		line += " (" + f.Remedy + ")"
	}
	return line
}

func describe(err error, usage bool) failure {
	f := failure{Code: sequence.CodeInternal, Message: err.Error()}
	if usage {
		f.Code, f.Remedy = sequence.CodeInvalid, "--help shows how to use it"
	}
	if e, ok := errors.AsType[*usageError](err); ok {
		f.Field, f.Remedy = e.field, cmp.Or(e.remedy, f.Remedy)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f = describeFlag(e)
	}
	if e, ok := describeMigration(err); ok {
		f = e
	}
	if e, ok := describeCoupon(err); ok {
		f = e
	}
	if e, ok := errors.AsType[*sequence.Error](err); ok { // after: its cause may be one that migrations have too
		f = describeCoded(e)
	}
	f.Message = strings.Join(strings.Fields(f.Message), " ")
	return f
}

// describeCoded returns e in parts; its cause becomes part of the message.
func describeCoded(e *sequence.Error) failure {
	whole := *e
	whole.Remedy = ""
	return failure{Code: e.Code, Field: e.Field, Message: strings.TrimPrefix(whole.Error(), "sequence: "), Remedy: e.Remedy}
}

func describeFlag(e *pflag.InvalidValueError) failure {
	return refusedValue("--"+e.GetFlag().Name, e.GetValue(), e.GetFlag(), e.Unwrap())
}

// unset returns the error of settings that could not be applied.
func unset(err error) error {
	e, ok := errors.AsType[*settings.ValueError](err)
	if !ok {
		return usagef("%w", err)
	}
	f := refusedValue(e.Source, e.Value, e.Flag, e.Err)
	return &usageError{err: errors.New(f.Message), field: f.Field, remedy: f.Remedy}
}

// refusedValue says which value a flag refuses, and what it takes.
func refusedValue(source, value string, flag *pflag.Flag, cause error) failure {
	f := failure{Code: sequence.CodeInvalid, Field: strings.ReplaceAll(flag.Name, "-", "_")}
	why := "is not what it takes"
	if r, ok := errors.AsType[*rangeError](cause); ok {
		why, f.Remedy = r.what, r.remedy
	} else {
		switch flag.Value.Type() {
		case "duration":
			why, f.Remedy = "is no duration", "write it like 3s, 500ms or 1m30s"
		case "int", "int64", "uint32":
			why, f.Remedy = whatIsWrong(value, "is out of range"), "write it like 1000"
		case "float64":
			why, f.Remedy = "is no number", "write it like 1000 or 0.5"
		case "bool":
			why, f.Remedy = "is neither true nor false", "write true or false"
		default:
			why = cause.Error()
			if wanted, ok := strings.CutPrefix(why, "use "); ok {
				why, f.Remedy = "is not known", "use "+wanted
			}
		}
	}
	f.Message = fmt.Sprintf("%s %q %s", source, value, why)
	return f
}
