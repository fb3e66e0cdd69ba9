package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/sequence"
)

const (
	defaultServer  = "http://127.0.0.1:7070"
	defaultTimeout = 10 * time.Second
	batchTimeout   = time.Minute // of a call that changes many sequences
)

// A service is what the commands need of a server.
type service interface {
	sequence.Leaser
	sequence.Admin
	Close() error
}

// A remote is how to reach a server.
type remote struct {
	server        string
	tokenFile     string
	tlsCA         string
	insecureNoTLS bool
	timeout       time.Duration
}

// addRemoteFlags adds the flags of commands that talk to a server.
func (c *cli) addRemoteFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.remote.server, "server", defaultServer, "`URL` of the server; several, separated by commas, are tried in turn")
	f.StringVar(&c.remote.tokenFile, "token-file", "", "`file` with the token; otherwise TALLYSTICK_TOKEN has it")
	f.StringVar(&c.remote.tlsCA, "tls-ca", "", "PEM `file` of the authorities to trust instead of the system's")
	f.BoolVar(&c.remote.insecureNoTLS, "insecure-no-tls", false, "send the token in clear text beyond the loopback interface")
	f.DurationVar(&c.remote.timeout, "timeout", defaultTimeout, "how long to wait for an answer")
	c.addOutputFlag(cmd)
}

func (c *cli) addOutputFlag(cmd *cobra.Command) {
	c.output = cmp.Or(c.output, table)
	cmd.PersistentFlags().VarP(&c.output, "output", "o", "how to print data")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "table"}, cobra.ShellCompDirectiveNoFileComp))
}

// connect returns the server that flags and environment name.
func (c *cli) connect(cmd *cobra.Command) (service, error) {
	if err := settings.Apply(cmd.Flags(), nil, "", os.Environ()); err != nil {
		return nil, unset(err)
	}
	if c.remote.timeout <= 0 {
		return nil, &usageError{err: fmt.Errorf("--timeout %s is out of range", c.remote.timeout), field: "timeout", remedy: "write it like 3s"}
	}
	c.warnUnknown(cmd.Root(), os.Environ())
	token, err := c.remote.token()
	if err != nil {
		return nil, err
	}
	s, err := dialSequences(c.remote, token)
	if err != nil {
		return nil, undialled(err)
	}
	return s, nil
}

func (r remote) token() (string, error) {
	if r.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(settings.EnvName("token"))), nil
	}
	b, err := os.ReadFile(r.tokenFile)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("token file %s is empty", r.tokenFile)
	}
	return token, nil
}

// with calls f with the server, in the time that --timeout allows.
func (c *cli) with(cmd *cobra.Command, f func(context.Context, service) error) error {
	s, err := c.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := c.within(cmd.Context(), 0)
	defer cancel()
	return c.outcome(cmd.Context(), f(ctx, s))
}

// undialled returns why no client could be made of what the flags say.
func undialled(err error) error {
	if e, ok := errors.AsType[*sequence.Error](err); ok {
		return &usageError{err: errors.New(e.Message), field: e.Field, remedy: e.Remedy}
	}
	if r, ok := errors.AsType[*coupon.Refusal](err); ok {
		return &usageError{err: errors.New(r.Message), field: r.Field}
	}
	message, remedy, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "couponrpc: "), "seqrpc: "), " (")
	return &usageError{err: errors.New(message), field: "server", remedy: strings.TrimSuffix(remedy, ")")}
}

// outcome returns the error of a call to the server for people. ctx is the
// command's.
func (c *cli) outcome(ctx context.Context, err error) error {
	return interrupted(ctx, c.late(err))
}

// late names the flag that bounds a call which got no answer in time.
func (c *cli) late(err error) error {
	e, ok := errors.AsType[*sequence.Error](err)
	if !ok || !errors.Is(e.Err, context.DeadlineExceeded) {
		return err
	}
	whole := *e
	whole.Message, whole.Err = fmt.Sprintf("%s within %s (--timeout)", e.Message, c.remote.timeout), nil
	return &whole
}

// interrupted says so plainly when a signal ended the command.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !isUsage(err) {
		return errors.New("interrupted")
	}
	return err
}

// completeNames completes the name of a sequence from the server.
func (c *cli) completeNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := c.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	page, err := s.List(ctx, sequence.ListRequest{Prefix: typed, PageSize: 200})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []string
	for _, r := range page.Records {
		found = append(found, r.Definition.Name)
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
