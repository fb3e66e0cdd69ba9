package realtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// A DynaliteServer speaks DynamoDB's API. Any credentials and region will do;
// requests have to be signed, but nobody looks at the signature.
//
// It is as AWS in conditions, item and batch sizes, numbers and pages. It never
// throttles, writes every batch whole (see [DynamoProxy] for both) and has no
// transactions.
type DynaliteServer struct {
	*Process
	URL string
}

// Dynalite starts a server of the test's own, whose tables live in memory:
// they are gone after Stop or Kill.
func Dynalite(t testing.TB) *DynaliteServer {
	t.Helper()
	return dynalite(t, dynaliteOptions{})
}

// DurableDynalite starts a server of the test's own that keeps its tables in a
// file: what it answered is still there after Stop, Kill and Start.
func DurableDynalite(t testing.TB) *DynaliteServer {
	t.Helper()
	return dynalite(t, dynaliteOptions{durable: true})
}

// LargeDynalite is DurableDynalite with room for millions of items: each takes
// about 3 KB of the server's memory even so, and Node's own bound is 2 to 4 GB.
func LargeDynalite(t testing.TB) *DynaliteServer {
	t.Helper()
	return dynalite(t, dynaliteOptions{durable: true, heapMB: 12288})
}

// DynaliteURL returns the URL of a server that all tests of the process share.
// So each names its tables by [TableName].
func DynaliteURL(t testing.TB) string {
	t.Helper()
	s, err := sharedDynalite()
	if err != nil {
		t.Fatal(err)
	}
	return s.URL
}

// TableName returns a name that no other table has.
func TableName() string { return "t-" + rand.Text() }

var sharedDynalite = sync.OnceValues(func() (*DynaliteServer, error) { return startDynalite(dynaliteOptions{}) })

type dynaliteOptions struct {
	durable bool // tables in a file
	heapMB  int  // that Node may use; 0: as much as it finds right
}

func dynalite(t testing.TB, o dynaliteOptions) *DynaliteServer {
	t.Helper()
	s, err := startDynalite(o)
	if err != nil {
		t.Fatal(err)
	}
	s.bind(t)
	return s
}

func startDynalite(o dynaliteOptions) (*DynaliteServer, error) {
	c, err := dynaliteCommand()
	if err != nil {
		return nil, err
	}
	if o.heapMB > 0 {
		c.Args = slices.Insert(c.Args, 0, fmt.Sprintf("--max-old-space-size=%d", o.heapMB))
	}
	s := &DynaliteServer{}
	s.Process, err = onFreePort(func(port int) (*Process, error) {
		s.URL = "http://" + loopback(port)
		c := c
		c.Args = append(c.Args, fmt.Sprint(port))
		if o.durable {
			c.Args = append(c.Args, "tables") // in the folder of the process
		}
		p, err := newProcess(c)
		if err != nil {
			return nil, err
		}
		return p, p.up()
	})
	return s, err
}

// dynaliteCommand returns the command without a port.
func dynaliteCommand() (Command, error) {
	module, err := moduleDir()
	if err != nil {
		return Command{}, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return Command{}, missing("node")
	}
	modules := filepath.Join(module, ".cache", "dynalite", "node_modules")
	_, err = os.Stat(filepath.Join(modules, "dynalite"))
	if errors.Is(err, fs.ErrNotExist) {
		return Command{}, missing("dynalite")
	} else if err != nil {
		return Command{}, err
	}
	return Command{
		Name: "dynalite",
		Path: node,
		Args: []string{filepath.Join(module, "internal", "realtest", "dynalite", "serve.js")},
		Env:  []string{"NODE_PATH=" + modules},
		Says: "listening",
	}, nil
}
