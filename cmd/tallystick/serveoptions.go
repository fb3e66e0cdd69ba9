package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/watched"
)

// serveOptions are the settings of a server.
type serveOptions struct {
	config           string
	listen           string
	store            storeOptions
	coupons          couponOptions
	tlsCert, tlsKey  string
	insecureNoTLS    bool
	insecureNoTokens bool
	logLevel         string
	logFormat        string
	maxInFlight      int
	drainTimeout     time.Duration
}

func (o *serveOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "YAML `file` with settings")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "`address` to listen on")
	o.store.add(cmd)
	o.coupons.add(f)
	o.addGuard(f)
	o.addLog(cmd)
	f.IntVar(&o.maxInFlight, "max-in-flight", 4096, "most `requests` under way; more are told to come back")
	f.DurationVar(&o.drainTimeout, "drain-timeout", 10*time.Second, "how long a stop waits for requests under way")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// addGuard adds the flags of what a server asks of its callers.
func (o *serveOptions) addGuard(f *pflag.FlagSet) {
	f.StringVar(&o.tlsCert, "tls-cert", "", "PEM `file` with the certificate; read again when it changes")
	f.StringVar(&o.tlsKey, "tls-key", "", "PEM `file` with its key")
	f.BoolVar(&o.insecureNoTLS, "insecure-no-tls", false, "allow clear text beyond the loopback interface")
	f.BoolVar(&o.insecureNoTokens, "insecure-no-tokens", false, "ask nobody for a token, anywhere")
}

// addLog adds the flags of the log.
func (o *serveOptions) addLog(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.logLevel, "log-level", "info", "least `level` to log: debug|info|warn|error")
	f.StringVar(&o.logFormat, "log-format", "", "`form` of the log: text|json (default: text on a terminal, json elsewhere)")
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// settingNames returns the flags that are settings.
func settingNames(cmd *cobra.Command) []string {
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "config", "print-config", "help":
		default:
			all = append(all, f.Name)
		}
	})
	return all
}

func (o *serveOptions) check() error {
	if err := o.store.check(); err != nil {
		return err
	}
	if info, err := os.Stat(o.store.data); err == nil && !info.IsDir() {
		return &usageError{err: fmt.Errorf("--data %s is a file", o.store.data), field: "data", remedy: "choose another folder"}
	}
	if _, err := newLogger(io.Discard, o.logLevel, o.logFormat); err != nil {
		return err
	}
	if err := o.checkListen(); err != nil {
		return err
	}
	switch {
	case o.maxInFlight < 1:
		return &usageError{err: fmt.Errorf("--max-in-flight %d is out of range", o.maxInFlight), field: "max_in_flight", remedy: "use at least 1"}
	case o.drainTimeout < 0:
		return &usageError{err: fmt.Errorf("--drain-timeout %s is out of range", o.drainTimeout), field: "drain_timeout", remedy: "use 0 or more"}
	}
	return nil
}

// checkListen checks the address and what goes with it.
func (o *serveOptions) checkListen() error {
	switch {
	case !isAddress(o.listen):
		return &usageError{err: fmt.Errorf("--listen %q is no address", o.listen), field: "listen", remedy: "write it like 127.0.0.1:7070, or :7070 for every interface"}
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return &usageError{err: errors.New("--tls-cert and --tls-key go together"), field: "tls_cert", remedy: "give both"}
	}
	return nil
}

// isAddress reports whether a server can be told to listen there.
func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

// exposed refuses to start a server that anybody on the network could read or
// use.
func (o *serveOptions) exposed(tokens access.List) error {
	if o.loopback() {
		return nil
	}
	var missing, remedies []string
	if o.tlsCert == "" && !o.insecureNoTLS {
		missing = append(missing, "TLS")
		remedies = append(remedies, "give --tls-cert and --tls-key, or --insecure-no-tls to do without")
	}
	if !tokens.Exists && !o.insecureNoTokens {
		missing = append(missing, "tokens")
		remedies = append(remedies, fmt.Sprintf("make one with `tallystick token create --scope admin --data %s`, or give --insecure-no-tokens to do without", o.store.data))
	}
	if len(missing) == 0 {
		return nil
	}
	return &usageError{
		err:    fmt.Errorf("--listen %s is beyond the loopback interface and needs %s", o.listen, strings.Join(missing, " and ")),
		field:  "listen",
		remedy: strings.Join(remedies, "; "),
	}
}

// loopback reports whether only this machine can connect.
func (o *serveOptions) loopback() bool {
	host, _, _ := net.SplitHostPort(o.listen)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *storeOptions) tokenFile() string { return filepath.Join(o.data, tokenFileName) }

// certificate opens the certificate; nil means none.
func (o *serveOptions) certificate() (*watched.File[tls.Certificate], error) {
	if o.tlsCert == "" {
		return nil, nil
	}
	return watched.Open(o.tlsCert, func(cert []byte) (tls.Certificate, error) {
		if cert == nil {
			return tls.Certificate{}, errors.New("there is no such file: check --tls-cert")
		}
		key, err := os.ReadFile(o.tlsKey)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("its key: %w: check --tls-key", err)
		}
		return tls.X509KeyPair(cert, key)
	}, o.tlsKey)
}

// newLogger logs to w.
func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, &usageError{err: fmt.Errorf("--log-level %q is not known", level), field: "log_level", remedy: "use debug, info, warn or error"}
	}
	opts := &slog.HandlerOptions{Level: l}
	switch {
	case format == "text" || format == "" && terminal(w):
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case format == "json" || format == "":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, &usageError{err: fmt.Errorf("--log-format %q is not known", format), field: "log_format", remedy: "use text or json"}
}

// printSettings prints the settings in force as the file would have them.
func (c *cli) printSettings(cmd *cobra.Command) error {
	for _, name := range settingNames(cmd) {
		value := cmd.Flags().Lookup(name).Value
		if _, err := fmt.Fprintf(c.out, "%s: %s\n", name, yamlScalar(value)); err != nil {
			return err
		}
	}
	return nil
}

// yamlScalar returns a flag's value as YAML has it.
func yamlScalar(v pflag.Value) string {
	if t := v.Type(); t == "bool" || t == "int" {
		return v.String()
	}
	return string(quoteJSON(v.String()))
}
