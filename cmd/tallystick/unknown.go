package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/internal/spelling"
)

// What people type that nobody knows: flags, variables, words.

// flagError adds to an unknown flag the one that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	wrong := &usageError{err: fmt.Errorf("unknown flag --%s", name)}
	if similar := spelling.Nearest(name, known); similar != "" {
		wrong.remedy = fmt.Sprintf("did you mean --%s?", similar)
	}
	return wrong
}

// warnUnknown names the variables that look like settings and are none, which
// are misspelt ones or those of another version.
func (c *cli) warnUnknown(root *cobra.Command, environ []string) {
	if c.output == jsonForm {
		return // what reads it expects nothing but JSON
	}
	known := variables(root)
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, settings.Prefix) || known[name] || fromKubernetes(name) {
			continue
		}
		var all []string
		for k := range known {
			all = append(all, k)
		}
		line := failure{Message: name + " is set and no setting"}
		if similar := spelling.Nearest(name, all); similar != "" {
			line.Remedy = fmt.Sprintf("did you mean %s?", similar)
		}
		fmt.Fprintf(c.err, "tallystick: warning: %s\n", line.line())
	}
}

// variables returns the names of all variables that some command knows.
func variables(root *cobra.Command) map[string]bool {
	known := map[string]bool{
		settings.EnvName("token"): true,
		"TALLYSTICK_FULL":         true, // of the tests
	}
	add := func(f *pflag.Flag) { known[settings.EnvName(f.Name)] = true }
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return known
}

// fromKubernetes reports whether Kubernetes sets the variable in every pod
// beside a service called tallystick.
func fromKubernetes(name string) bool {
	return name == "TALLYSTICK_PORT" || strings.HasPrefix(name, "TALLYSTICK_PORT_") || strings.HasPrefix(name, "TALLYSTICK_SERVICE_")
}

// newHelp is `help COMMAND`; of a word that is no command it fails.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			switch {
			case found == nil || err != nil && len(rest) == 0:
				return usagef("%w", err)
			case len(rest) > 0:
				return notCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// withoutGlobals leaves flags that cmd inherits and does not use out of its
// help.
func withoutGlobals(cmd *cobra.Command, names ...string) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for _, name := range names {
			if f := cmd.InheritedFlags().Lookup(name); f != nil {
				f.Hidden = true
			}
		}
		cmd.Parent().HelpFunc()(cmd, args)
	})
}
