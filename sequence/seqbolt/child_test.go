package seqbolt_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/boltfile/boltfiletest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// childPath makes the test binary a process that allocates from that file.
const childPath = "SEQBOLT_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		fmt.Println(allocateForever(path))
		os.Exit(1)
	}
	boltfiletest.ProbeIfAsked(probe)
	os.Exit(m.Run())
}

// allocateForever takes blocks in a few goroutines and prints each one once it
// is durable.
func allocateForever(path string) error {
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	failed := make(chan error)
	var out sync.Mutex
	for range 4 {
		go func() {
			seen, err := store.Load(context.Background(), "orders")
			for err == nil {
				var block sequence.Block
				block, seen, err = seqtest.Allocate(context.Background(), store, seen, rand.Int64N(100)+1)
				out.Lock()
				fmt.Println(block.First, block.Count)
				out.Unlock()
			}
			failed <- err
		}()
	}
	return <-failed
}

// startChild starts a process that allocates, and returns its output from
// after its file is open.
func startChild(t *testing.T, path string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return cmd, out
}

func TestKilledProcessNeverRepeatsABlock(t *testing.T) {
	path := file(t)
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, store, "orders")
	store.Close()

	issued := map[int64]bool{}
	for range 20 {
		cmd, out := startChild(t, path)
		kill := time.AfterFunc(rand.N(60*time.Millisecond), func() { cmd.Process.Kill() })
		readBlocks(t, out, issued)
		cmd.Wait()
		kill.Stop()
	}
	if len(issued) < 1000 {
		t.Fatalf("only %d values were issued", len(issued))
	}
	final, err := open(t, path).Load(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for v := range issued {
		if v >= final.Next {
			t.Fatalf("%d was issued and the counter stands at %d", v, final.Next)
		}
	}
}

// readBlocks adds the blocks a child printed to issued, until it is dead.
func readBlocks(t *testing.T, out io.Reader, issued map[int64]bool) {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var first, count int64
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &first, &count); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		for v := first; v < first+count; v++ {
			if issued[v] {
				t.Fatalf("%d was issued twice", v)
			}
			issued[v] = true
		}
	}
}

func TestFileInUseIsRefusedToOthers(t *testing.T) {
	path := file(t)
	store := open(t, path)
	create(t, store, "orders")
	inUse := "in use by another process"
	begin := time.Now()
	refused(t, path, inUse, "stop that process or choose another data folder")
	if waited := time.Since(begin); waited < 900*time.Millisecond {
		t.Errorf("it waited %v, want about 1s for a process that is about to end", waited)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	cmd, _ := startChild(t, path)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if store, err := seqbolt.Open(path, seqbolt.Options{LockWait: 100 * time.Millisecond}); err == nil {
		store.Close()
		t.Fatal("it was opened")
	}
}
