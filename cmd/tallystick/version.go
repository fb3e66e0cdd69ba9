package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  names(),
		RunE: func(*cobra.Command, []string) error {
			if c.output == jsonForm {
				return json.NewEncoder(c.out).Encode(map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintln(c.out, "tallystick", version)
			return err
		},
	}
	c.addOutputFlag(cmd)
	return cmd
}
