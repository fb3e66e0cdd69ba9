package couponnats_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
)

func TestStuckServer(t *testing.T) {
	stuck, begin := couponnats.Stuck(), time.Unix(1_000, 0)
	for _, c := range []struct {
		at       time.Duration // from the begin on
		answered bool
		restart  bool
	}{
		{0, false, false}, {5 * time.Second, false, false}, {6 * time.Second, true, false}, {10 * time.Second, false, false},
		{17 * time.Second, false, false}, {18 * time.Second, false, true}, {20 * time.Second, false, false}, {40 * time.Second, false, false},
		{48 * time.Second, false, true}, {49 * time.Second, true, false}, {100 * time.Second, false, false},
	} {
		if got := stuck(c.answered, begin.Add(c.at)); got != c.restart {
			t.Errorf("after %v: %v, want %v", c.at, got, c.restart)
		}
	}
}

// TestDiskThatIsFullForAWhile holds that the queue has all that it acknowledged,
// acknowledges nothing that it has not, and goes on by itself once there is room.
func TestDiskThatIsFullForAWhile(t *testing.T) {
	t.Parallel() // it waits most of the time
	if os.Geteuid() != 0 {
		asRootOfItsOwn(t)
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	var out logBuffer
	q := open(t, couponnats.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 11_500<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	var left []coupon.OutboxRow
	var want []string
	for i := range 4_000 {
		left = append(left, row(i+1, 2))
		want = append(want, left[i].Name())
	}
	slices.Sort(want)
	send := func() bool {
		acked, _ := q.Publish(t.Context(), 5, left[:min(1_000, len(left))])
		left = slices.DeleteFunc(left, func(r coupon.OutboxRow) bool {
			return slices.ContainsFunc(acked, func(a coupon.OutboxRow) bool { return a.Name() == r.Name() })
		})
		return len(acked) > 0
	}
	for send() {
	}
	if len(left) == 0 {
		t.Fatal("the disk never was full")
	}
	if send() {
		t.Error("a full disk took the same messages the second time")
	}
	log := newReaderLog()
	read(t, q, "wallet", log.handle)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); len(left) > 0; {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("%d messages are not published:\n%s", len(left), &out)
		}
		if !send() {
			time.Sleep(200 * time.Millisecond) // as the relay backs off
		}
	}
	log.awaitEach(t, want)
	if !strings.Contains(out.String(), "it is started again") {
		t.Errorf("log %s", &out)
	}
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
