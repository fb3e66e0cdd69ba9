package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/internal/watched"
	"github.com/tallystick/tallystick/sequence"
)

// closeTimeout bounds what giving values back may take after the handlers are
// drained.
const closeTimeout = 5 * time.Second

func newServe(c *cli) *cobra.Command {
	var o serveOptions
	var print bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server. One port answers gRPC, gRPC-Web, JSON, /metrics, /livez and
/readyz.

Every flag is also a setting of the YAML file that --config names (listen: ...)
and an environment variable (TALLYSTICK_LISTEN). What the command line says
counts most, then the environment, then the file.

Beyond the loopback interface tokens and TLS are both required; see
"tallystick token create" and --tls-cert.

SIGTERM and SIGINT stop it gracefully: what is under way is finished and unused
values go back to the store. A second signal ends it at once.`,
		Example: `  tallystick serve
  tallystick serve --listen 127.0.0.1:8080 --data /var/lib/tallystick
  tallystick serve --store dynamodb --dynamodb-table sequences --dynamodb-create
  tallystick serve --listen :7070 --tls-cert cert.pem --tls-key key.pem`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.load(cmd); err != nil {
				return err
			}
			if print {
				return c.printSettings(cmd)
			}
			c.warnUnknown(cmd.Root(), os.Environ())
			return c.serve(cmd.Context(), o)
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&print, "print-config", false, "print the settings in force and stop")
	return cmd
}

// load completes the options from the environment and the file.
func (o *serveOptions) load(cmd *cobra.Command) error {
	if err := loadSettings(cmd, settingNames(cmd), o.config); err != nil {
		return err
	}
	return o.check()
}

// loadSettings completes cmd's flags. config is what --config says.
func loadSettings(cmd *cobra.Command, known []string, config string) error {
	path := cmp.Or(config, os.Getenv(settings.EnvName("config")))
	if err := settings.Apply(cmd.Flags(), known, path, os.Environ()); err != nil {
		return unset(err)
	}
	return nil
}

// serve runs a server until ctx ends or the store is lost.
func (c *cli) serve(ctx context.Context, o serveOptions) (err error) {
	logger, err := newLogger(c.err, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	ctx, stop := hangup(ctx, c)
	defer stop()

	tokens, err := o.tokens(access.Parse)
	if err != nil {
		return err
	}
	certificate, err := o.certificate()
	if err != nil {
		return err
	}
	if err := o.free(); err != nil {
		return err
	}
	dir, err := hold(o.store.data, "stop that server, or give this one a folder of its own with --data or TALLYSTICK_DATA")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	store, err := openStore(ctx, o.store, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	service := sequence.NewService(store, sequence.ServiceOptions{Logger: logger})
	if o.coupons.external() && o.store.kind == storeBolt {
		logger.Warn("campaigns take their numbers from this server's own file of sequences: with a second server on the same databases use --store dynamodb")
	}
	coupons, err := o.coupons.open(ctx, o.store.data, service, logger)
	if err != nil {
		return err
	}
	traces, err := openTracing(ctx, logger)
	if err != nil {
		return err
	}
	defer traces.close(logger)
	s, err := newServer(o, service, coupons, tokens, traces, logger)
	if err != nil {
		return err
	}
	listener, err := o.bind()
	if err != nil {
		return err
	}
	if o.insecureNoTokens && tokens.Get().Exists {
		logger.Warn("tokens are not asked for, although there are some: --insecure-no-tokens is set")
	}
	c.greet(o, listener.Addr(), tokens.Get(), certificate)
	logger.Info("ready", "listen", listener.Addr().String(), "store", o.store.describe(), "tls", certificate != nil, "version", version)
	return s.run(ctx, listener, certificate)
}

// bind listens.
func (o *serveOptions) bind() (net.Listener, error) {
	listener, err := net.Listen("tcp", o.listen)
	if err == nil {
		return listener, nil
	}
	why, remedy := err, "choose another address with --listen or TALLYSTICK_LISTEN"
	if op, ok := errors.AsType[*net.OpError](err); ok {
		why = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		why = call.Err
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		remedy = "stop the process that has it, or choose another port with --listen or TALLYSTICK_LISTEN"
	}
	return nil, failed(remedy, "cannot listen on %s: %v", o.listen, why)
}

// free fails if the address cannot be had, before anything is made in the data
// folder. The server listens only once its store is open.
func (o *serveOptions) free() error {
	listener, err := o.bind()
	if err != nil {
		return err
	}
	return listener.Close()
}

// hangup makes the end of a terminal a graceful stop, and SIGHUP without one
// nothing: files that it asks daemons to read again are read again anyway.
func hangup(ctx context.Context, c *cli) (context.Context, context.CancelFunc) {
	if terminal(c.in) {
		return signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGHUP)
	return ctx, func() {}
}

// tokens opens the token file, or refuses to start without tokens beyond
// loopback.
func (o *serveOptions) tokens(parse func([]byte) (access.List, error)) (*watched.File[access.List], error) {
	f, err := watched.Open(o.store.tokenFile(), parse)
	if err != nil {
		return nil, err
	}
	return f, o.exposed(f.Get())
}
