package main

import (
	"github.com/spf13/cobra"
)

func newMigrate(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Copy a table into another database while both are in use",
		Long: `Copy a table of any size from PostgreSQL to DynamoDB while both are in use, by
any number of pods, and prove that nothing is missing.

A plan, a YAML file, says what is copied, whence, where to and how; every command
takes it by -f. ${NAME} in it is replaced from the environment.

  tallystick migrate plan -f plan.yaml             look before anything is written
  tallystick migrate run -f plan.yaml --start      copy; run more pods without --start
  tallystick migrate verify -f plan.yaml --mode full

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 differences, unsettled rows or rows
in quarantine.`,
	}
	p := &planFile{c: c}
	cmd.PersistentFlags().StringVarP(&p.path, "file", "f", "", "`file` with the plan; - is standard input")
	_ = cmd.MarkPersistentFlagFilename("file", "yaml", "yml")
	c.addOutputFlag(cmd)
	cmd.AddCommand(
		newMigratePlan(p), newMigrateRun(p), newMigrateStart(p), newMigrateStop(p), newMigrateStatus(p),
		newMigrateVerify(p), newMigrateReport(p), newMigrateReplay(p), newMigrateCleanup(p), newMigrateReset(p),
	)
	return group(cmd)
}
