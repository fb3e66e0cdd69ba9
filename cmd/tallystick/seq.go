package main

import (
	"github.com/spf13/cobra"
)

func newSeq(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seq",
		Short: "Create sequences, take values from them and manage them",
	}
	c.addRemoteFlags(cmd)
	cmd.AddCommand(
		newSeqCreate(c), newSeqAlter(c), newSeqGet(c), newSeqList(c), newSeqDelete(c), newSeqRestart(c),
		newSeqNext(c), newSeqBench(c), newSeqAdopt(c),
	)
	return group(cmd)
}
