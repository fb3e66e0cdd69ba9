package shardsql_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// The pages of a transaction are written at its COMMIT, so it is COMMIT that
// finds the disk full.
func TestADiskThatIsFullFailsTheWholeGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		asRootOfItsOwn(t)
		return
	}
	path := filepath.Join(smallDisk(t), "a.db")
	db := control(t, openSQLite(t, path))
	release := hold(t, db, 0)
	const writers, size = 6, 300_000
	results := make(chan error, 1+writers)
	for i := range writers {
		go func() {
			results <- execute(t.Context(), db, "INSERT INTO thing (id, n) VALUES (?, zeroblob(?))", 1+i, size)
		}()
	}
	results <- release()
	committed := 0
	for range 1 + writers {
		switch err := <-results; {
		case err == nil:
			committed++
		case !errors.Is(err, shard.ErrUnavailable):
			t.Errorf("%v, want ErrUnavailable", err)
		}
	}
	if committed == 1+writers {
		t.Fatal("the disk never was full")
	}
	if n := count(t, db); n != committed {
		t.Errorf("%d rows, %d were committed", n, committed)
	}
	if n := count(t, openSQLite(t, path)); n != committed {
		t.Errorf("opened again it has %d rows, %d were committed", n, committed)
	}
}

// smallDisk returns a folder on a file system of 1 MiB.
func smallDisk(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// asRootOfItsOwn runs the test again where it may mount.
func asRootOfItsOwn(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
