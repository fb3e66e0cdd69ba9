package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// The stores to choose from.
const (
	storeBolt   = "bolt"
	storeDynamo = "dynamodb"
)

// storeOptions says where sequences are kept.
type storeOptions struct {
	data     string
	kind     string
	table    string
	region   string
	endpoint string
	create   bool
}

func (o *storeOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "./data", "data `folder`, held by one process at a time")
	f.StringVar(&o.kind, "store", storeBolt, "where sequences are kept: `bolt|dynamodb`; bolt is a file in the data folder")
	f.StringVar(&o.table, "dynamodb-table", "tallystick_sequences", "`name` of the DynamoDB table")
	f.StringVar(&o.region, "dynamodb-region", "", "AWS `region` of the table (default: the environment's)")
	f.StringVar(&o.endpoint, "dynamodb-endpoint", "", "`URL` of DynamoDB, where it is not AWS's own")
	f.BoolVar(&o.create, "dynamodb-create", false, "create the table if there is none")
	_ = cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions([]string{storeBolt, storeDynamo}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *storeOptions) check() error {
	if o.kind != storeBolt && o.kind != storeDynamo {
		return &usageError{err: fmt.Errorf("--store %q is not known", o.kind), field: "store", remedy: "use bolt or dynamodb"}
	}
	return nil
}

// describe says where sequences are kept, for people.
func (o *storeOptions) describe() string {
	if o.kind == storeDynamo {
		return "DynamoDB table " + o.table
	}
	return "a file in " + o.data
}
