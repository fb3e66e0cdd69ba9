package sequence_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// realServer builds the program, runs `tallystick serve` on a local file and
// returns a connection to it.
func realServer(t testing.TB) system {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tallystick")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/tallystick").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	addr := realtest.FreeAddr(t)
	realtest.Start(t, realtest.Command{
		Name: "tallystick", Path: path, Args: []string{"serve", "--listen", addr, "--data", t.TempDir()},
		Says: "is ready at http://" + addr,
	})
	conn, err := seqrpc.Dial("http://"+addr, seqrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
