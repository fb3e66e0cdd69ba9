package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/settings"
)

// tokenFileName is the name of the token file in the data folder.
const tokenFileName = "tokens.json"

// tokenFile returns the path of the token file that a command is about.
type tokenFile func(*cobra.Command) (string, error)

func newToken(c *cli) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens a server accepts",
		Long: `Make, list and revoke the tokens that a server accepts. They are kept, as hashes,
in tokens.json in the server's data folder; a running server takes changes over
within seconds. Without that file a server on the loopback interface asks for no
token; with the first token every call needs one. To ask for none again, remove
tokens.json and restart the server, or start it with --insecure-no-tokens.`,
	}
	cmd.PersistentFlags().StringVar(&data, "data", "./data", "data `folder` of the server")
	c.addOutputFlag(cmd)
	file := func(cmd *cobra.Command) (string, error) {
		if err := settings.Apply(cmd.Flags(), nil, "", os.Environ()); err != nil {
			return "", unset(err)
		}
		return filepath.Join(data, tokenFileName), nil
	}
	cmd.AddCommand(newTokenCreate(c, file), newTokenList(c, file), newTokenRevoke(c, file))
	return group(cmd)
}

func newTokenCreate(c *cli, file tokenFile) *cobra.Command {
	var scope, label string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, this once",
		Long: `Make a token and print it. It cannot be shown again: only its hash is kept.

Scope lease lets an application take and return values of sequences. Of coupons,
scope issue generates and issues them, claim gives them to users and shows
wallets, redeem reserves, redeems, voids and looks them up. Scope admin lets do
everything.`,
		Example: `  tallystick token create --scope admin --label me
  TALLYSTICK_TOKEN=$(tallystick token create --scope lease --label orders)`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := access.ParseScope(scope)
			if err != nil {
				return &usageError{err: fmt.Errorf("--scope %q is not known", scope), field: "scope", remedy: "use lease, issue, claim, redeem or admin"}
			}
			path, err := file(cmd)
			if err != nil {
				return err
			}
			before, err := access.Read(path)
			if err != nil {
				return err
			}
			secret, t, err := access.Create(path, s, label)
			if err != nil {
				return err
			}
			if err := c.printToken(secret, t); err != nil {
				return err
			}
			c.hintFirst(before, t, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&scope, "scope", string(access.Lease), "`what` it is good for: lease, issue, claim, redeem or admin")
	cmd.Flags().StringVar(&label, "label", "", "`who` uses it")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"lease", "issue", "claim", "redeem", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// tokenView is a token as it is printed.
type tokenView struct {
	ID      string       `json:"id"`
	Scope   access.Scope `json:"scope"`
	Label   string       `json:"label"`
	Created time.Time    `json:"created"`
	Token   string       `json:"token,omitempty"`
}

func viewOf(t access.Token, secret string) tokenView {
	return tokenView{ID: t.ID, Scope: t.Scope, Label: t.Label, Created: t.Created, Token: secret}
}

func (c *cli) printToken(secret string, t access.Token) error {
	if c.output == jsonForm {
		return c.printJSON(viewOf(t, secret))
	}
	fmt.Fprintf(c.err, "Token %s of scope %s. Keep it: it is not shown again.\n", t.ID, t.Scope)
	_, err := fmt.Fprintln(c.out, secret)
	return err
}

// hintFirst says what the first token changes.
func (c *cli) hintFirst(before access.List, t access.Token, path string) {
	if before.Exists || c.output == jsonForm {
		return
	}
	hint := "This is the first token: from now on every client needs one, in TALLYSTICK_TOKEN or --token-file"
	if t.Scope != access.Admin {
		hint += ";\nmake an admin token too, to manage sequences: " + c.makeAdmin(path)
	}
	fmt.Fprintf(c.err, "%s.\n", hint)
}

// makeAdmin returns the command that makes an admin token.
func (c *cli) makeAdmin(path string) string {
	return "tallystick token create --scope admin --data " + filepath.Dir(path)
}

// warnLast says what is lost with the token that was revoked.
func (c *cli) warnLast(path string) {
	rest, err := access.Read(path)
	if err != nil || c.output == jsonForm {
		return
	}
	admin := slices.ContainsFunc(rest.Tokens, func(t access.Token) bool { return t.Scope == access.Admin })
	switch {
	case len(rest.Tokens) == 0:
		fmt.Fprintf(c.err, "That was the last token: nobody gets in any more. Make one: %s;\nor ask for none: remove %s and restart the server.\n", c.makeAdmin(path), path)
	case !admin:
		fmt.Fprintf(c.err, "That was the last admin token: nobody can manage sequences any more. Make one: %s\n", c.makeAdmin(path))
	}
}

// completeIDs completes the id of a token.
func (c *cli) completeIDs(file tokenFile) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		path, err := file(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		l, err := access.Read(path)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, t := range l.Tokens {
			ids = append(ids, cobra.CompletionWithDesc(t.ID, strings.TrimSpace(string(t.Scope)+" "+t.Label)))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func newTokenList(c *cli, file tokenFile) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens, not what they are",
		Example: "  tallystick token list",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := file(cmd)
			if err != nil {
				return err
			}
			l, err := access.Read(path)
			if err != nil {
				return err
			}
			if c.output == jsonForm {
				views := []tokenView{}
				for _, t := range l.Tokens {
					views = append(views, viewOf(t, ""))
				}
				return c.printJSON(map[string]any{"tokens": views})
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSCOPE\tCREATED\tLABEL")
			for _, t := range l.Tokens {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.ID, t.Scope, t.Created.Format(time.RFC3339), t.Label)
			}
			return w.Flush()
		},
	}
}

func newTokenRevoke(c *cli, file tokenFile) *cobra.Command {
	return &cobra.Command{
		Use:               "revoke ID",
		Short:             "Make a token worthless",
		Example:           "  tallystick token revoke abcd2345",
		Args:              names("ID"),
		ValidArgsFunction: c.completeIDs(file),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := file(cmd)
			if err != nil {
				return err
			}
			if err := access.Revoke(path, args[0]); err != nil {
				return err
			}
			c.warnLast(path)
			if c.output == jsonForm {
				return c.printJSON(map[string]string{"revoked": args[0]})
			}
			_, err = fmt.Fprintf(c.out, "revoked %s: running servers refuse it within seconds\n", args[0])
			return err
		},
	}
}
