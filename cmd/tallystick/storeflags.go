package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/internal/datadir"
	"github.com/tallystick/tallystick/sequence"
)

// The stores to choose from.
const (
	storeBolt   = "bolt"
	storeDynamo = "dynamodb"
)

// storeFileName is the name of the store in the data folder.
const storeFileName = "sequence.db"

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
	f.StringVar(&o.kind, "store", storeBolt, "`kind` of store for sequences: bolt, a file in the data folder, or dynamodb")
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
	if u, err := url.Parse(o.endpoint); o.endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return &usageError{err: fmt.Errorf("--dynamodb-endpoint %q is no URL", o.endpoint), field: "dynamodb_endpoint", remedy: "write it like http://127.0.0.1:8000"}
	}
	return nil
}

// file returns the path of the store that is a file.
func (o *storeOptions) file() string { return filepath.Join(o.data, storeFileName) }

// present fails if the store is a file that is not there.
func (o *storeOptions) present() error {
	if o.kind != storeBolt {
		return nil // a table says so itself
	}
	if _, err := os.Stat(o.file()); errors.Is(err, fs.ErrNotExist) {
		return failed("--data, TALLYSTICK_DATA or --config says where the server keeps it", "there is no store %s", o.file())
	}
	return nil
}

// hold takes the data folder for this process. If another one has it, remedy
// says what to do.
func hold(path, remedy string) (*datadir.Dir, error) {
	dir, err := datadir.Open(path)
	if errors.Is(err, datadir.ErrInUse) {
		return nil, failed(remedy, "%v", err)
	}
	return dir, err
}

// unopened returns the error of opening the store, with the flags that may
// help.
func (o *storeOptions) unopened(err error) error {
	e, ok := errors.AsType[*sequence.Error](err)
	if o.kind != storeDynamo || !ok {
		return err
	}
	whole := *e
	where := cmp.Or(o.endpoint, "AWS")
	switch {
	case e.Field == "region":
		whole.Remedy = "give --dynamodb-region, or set AWS_REGION"
	case e.Field == "table" && errors.Is(e, sequence.ErrPrecondition):
		whole.Message = fmt.Sprintf("DynamoDB %s at %s", e.Message, where)
		whole.Remedy = "check --dynamodb-table, --dynamodb-region and --dynamodb-endpoint; --dynamodb-create makes it"
	case e.Remedy == "":
		whole.Message = fmt.Sprintf("cannot use DynamoDB table %q at %s: %s", o.table, where, e.Message)
		whole.Remedy = "check --dynamodb-endpoint, --dynamodb-region and the network"
	}
	return &whole
}

// describe says where sequences are kept, for people.
func (o *storeOptions) describe() string {
	if o.kind == storeDynamo {
		return "DynamoDB table " + o.table
	}
	return "a file in " + o.data
}
