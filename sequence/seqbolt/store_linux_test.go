package seqbolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
)

func TestOpenSaysWhichRightIsMissing(t *testing.T) {
	dir := t.TempDir()
	readOnly := filepath.Join(dir, "readonly.db")
	open(t, readOnly).Close()
	if err := errors.Join(os.Chmod(readOnly, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	asNobody(t)
	refused(t, filepath.Join(dir, "new.db"), "permission denied", "give this user the right")
	refused(t, readOnly, "permission denied", "give this user the right")
}

// asNobody takes root's right to write everywhere from this test.
func asNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}

// A failed write leaves nobody knowing what the disk holds, so nothing may be
// believed that the store says after it.
func TestFailedWritePoisonsTheStore(t *testing.T) {
	path := file(t)
	store := open(t, path)
	r := create(t, store, "orders")
	breakWrites(t, path)

	next := r
	next.Next, next.Nonce = 500, sequence.NewNonce()
	if _, err := store.Swap(t.Context(), r.Nonce, next); !errors.Is(err, sequence.ErrUnknownOutcome) {
		t.Fatalf("the write that failed: %v, want ErrUnknownOutcome", err)
	}
	_, load := store.Load(t.Context(), "orders")
	_, swap := store.Swap(t.Context(), r.Nonce, next)
	_, generation := store.Generation(t.Context())
	_, _, _, list := store.List(t.Context(), "", "", 10)
	for op, err := range map[string]error{
		"load": load, "swap": swap, "generation": generation, "list": list, "bump": store.Bump(t.Context()),
		"create": store.Create(t.Context(), []sequence.Record{record(t, "b")})[0], "adopt": store.Adopt(t.Context()),
	} {
		e, _ := errors.AsType[*sequence.Error](err)
		if !errors.Is(err, sequence.ErrUnavailable) || e.Remedy != "check the disk, then restart the server" {
			t.Errorf("%s after it: %v, want ErrUnavailable and a remedy", op, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Load(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
}

// breakWrites makes every write to the open file fail, by putting a read-only
// descriptor in the place of the store's.
func breakWrites(t *testing.T, path string) {
	t.Helper()
	broken, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, link := range links {
		var fd int
		if target, err := os.Readlink(link); err != nil || target != path {
			continue
		}
		if _, err := fmt.Sscanf(filepath.Base(link), "%d", &fd); err != nil || fd == int(broken.Fd()) {
			continue
		}
		if err := syscall.Dup3(int(broken.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced != 1 {
		t.Fatalf("%d descriptors of %s, want 1", replaced, path)
	}
}
