//go:build unix

package coupon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// fileWorkers keeps leases in a file that several processes share.
type fileWorkers string

func (f fileWorkers) Workers(context.Context) (rows []coupon.Worker, now time.Time, err error) {
	err = f.locked(func() error {
		rows, err = f.read()
		return err
	})
	return rows, time.Now(), err
}

func (f fileWorkers) SwapWorker(_ context.Context, old, next coupon.Worker) (won bool, err error) {
	err = f.locked(func() error {
		rows, err := f.read()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rows, func(row coupon.Worker) bool { return row.Number == next.Number })
		switch {
		case i < 0 && old.HighWater == 0:
			rows = append(rows, next)
		case i >= 0 && rows[i] == old:
			rows[i] = next
		default:
			return nil
		}
		won = true
		return f.write(rows)
	})
	return won && err == nil, err
}

// locked runs fn under a lock that the end of the process releases too.
func (f fileWorkers) locked(fn func() error) error {
	lock, err := os.OpenFile(string(f)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return fn()
}

func (f fileWorkers) read() (rows []coupon.Worker, err error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	return rows, err
}

func (f fileWorkers) write(rows []coupon.Worker) error {
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if err := os.WriteFile(string(f)+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(string(f)+".new", string(f))
}

// leaseFrom has others hold all numbers from n on.
func (f fileWorkers) leaseFrom(t *testing.T, n int) {
	t.Helper()
	for ; n < coupon.WorkerNumbers; n++ {
		row := coupon.Worker{Number: uint8(n), Token: "another", HighWater: time.Now().AddDate(1, 0, 0).UnixMilli()}
		if won, err := f.SwapWorker(t.Context(), coupon.Worker{Number: uint8(n)}, row); err != nil || !won {
			t.Fatal(won, err)
		}
	}
}

// What makes the test binary a process that makes ids: the file of leases; its
// high-water, which is renewed in a fifth of the time; and after how many
// readings of the clock it stops itself, 0 for never.
const (
	childFile  = "COUPON_CHILD_FILE"
	childAhead = "COUPON_CHILD_AHEAD"
	childStops = "COUPON_CHILD_STOPS"
)

func init() {
	if os.Getenv(childFile) != "" {
		mintForever()
	}
}

// mintForever prints each id it gets, and "refused" for each refusal, until it
// cannot print.
func mintForever() {
	ahead, err := time.ParseDuration(os.Getenv(childAhead))
	if err != nil {
		panic(err)
	}
	var stops, readings int
	fmt.Sscan(os.Getenv(childStops), &stops)
	m := coupon.OpenMinterSetup(context.Background(), fileWorkers(os.Getenv(childFile)), coupon.MinterOptions{}, coupon.MinterSetup{
		Ahead: ahead, Renew: ahead / 5,
		AfterClock: func() {
			if readings++; readings == stops {
				syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		},
	})
	for i := 0; ; i++ {
		if i%16 == 0 {
			time.Sleep(500 * time.Microsecond) // there are others
		}
		id, err := m.Mint(shard.Bucket(i % 2))
		if err == nil {
			_, err = fmt.Println(int64(id))
		} else {
			_, err = fmt.Println("refused")
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			os.Exit(1)
		}
	}
}

// A child is a process that makes ids.
type child struct {
	cmd     *exec.Cmd
	lines   *bufio.Scanner
	refused int
}

func startChild(t *testing.T, f fileWorkers, ahead time.Duration, stops int) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+string(f), childAhead+"="+ahead.String(), childStops+"="+fmt.Sprint(stops))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &child{cmd: cmd, lines: bufio.NewScanner(out)}
}

// next returns the child's next id, 0 for a refusal, or io.EOF.
func (c *child) next() (coupon.ID, error) {
	if !c.lines.Scan() {
		return 0, io.EOF
	}
	if c.lines.Text() == "refused" {
		c.refused++
		return 0, nil
	}
	return shard.ParseID(c.lines.Text())
}

// first waits for the next id.
func (c *child) first() (id coupon.ID, err error) {
	for id == 0 && err == nil {
		id, err = c.next()
	}
	return id, err
}

// rest returns all ids until the child is dead.
func (c *child) rest() (ids []coupon.ID, err error) {
	for {
		id, err := c.next()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err != nil {
			return ids, err
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
}

// A register notices ids that come twice.
type register struct {
	ids     map[coupon.ID]bool
	workers map[uint8]bool
}

func (r *register) add(t *testing.T, ids ...coupon.ID) {
	t.Helper()
	for _, id := range ids {
		if r.ids[id] {
			t.Fatalf("%+v came twice", coupon.PartsOf(id))
		}
		r.ids[id] = true
		r.workers[coupon.PartsOf(id).Worker] = true
	}
}

func newRegister() *register { return &register{map[coupon.ID]bool{}, map[uint8]bool{}} }

// TestFaultKilledProcessesNeverRepeatAnID kills 20 processes one after the other, that
// have 3 numbers between them and one that lives on. At full size it is 300 and
// all numbers, with the times that are those of production.
func TestFaultKilledProcessesNeverRepeatAnID(t *testing.T) {
	restarts, numbers, ahead := 20, 3, 300*time.Millisecond
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		restarts, numbers, ahead = 300, coupon.WorkerNumbers, time.Minute
	}
	f := fileWorkers(filepath.Join(t.TempDir(), "workers"))
	f.leaseFrom(t, numbers)
	seen := newRegister()
	survivor := startChild(t, f, ahead, 0)
	var survived []coupon.ID
	var reader sync.WaitGroup
	reader.Go(func() {
		var err error
		if survived, err = survivor.rest(); err != nil {
			t.Error(err)
		}
	})
	begin, refused := time.Now(), 0
	for range restarts {
		c := startChild(t, f, ahead, 0)
		first, err := c.first() // a killed one's number is not free at once
		if err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(rand.N(60*time.Millisecond), func() { c.cmd.Process.Kill() })
		rest, err := c.rest()
		if err != nil {
			t.Fatal(err)
		}
		kill.Stop()
		seen.add(t, append(rest, first)...)
		refused += c.refused
	}
	killed := len(seen.ids)
	survivor.cmd.Process.Kill()
	reader.Wait()
	seen.add(t, survived...)
	t.Logf("%d ids of %d processes killed in %v, with %d numbers, and %d of one that lived on; refused %d times",
		killed, restarts, time.Since(begin).Round(time.Millisecond), len(seen.workers), len(survived), refused)
	if killed < 5*restarts || len(survived) < 1000 {
		t.Error("too few ids to tell")
	}
}

// TestFaultStoppedProcessNeverRepeatsAnID stops a process between reading its clock
// and making an id, until another has its number. When it goes on, that id is still
// made, or its other goroutine is faster and finds out first: the one that is meant
// here does not come each time.
func TestFaultStoppedProcessNeverRepeatsAnID(t *testing.T) {
	for range 20 {
		if stopBeforeAnID(t) {
			return
		}
	}
	t.Error("of 20 processes none made the id that it was stopped before")
}

// stopBeforeAnID reports whether the id was made.
func stopBeforeAnID(t *testing.T) (made bool) {
	const ahead, before = 300 * time.Millisecond, 1000
	f := fileWorkers(filepath.Join(t.TempDir(), "workers"))
	f.leaseFrom(t, 1)
	seen := newRegister()
	c := startChild(t, f, ahead, before+1)
	for range before {
		id, err := c.next()
		if err != nil || id == 0 {
			t.Fatalf("got %v, %v before it stopped", id, err)
		}
		seen.add(t, id)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it did not stop: %v, %v", status, err)
	}
	mine := openMinter(t, f, coupon.MinterSetup{Ahead: ahead, Renew: ahead / 5})
	mintMany(t, mine, seen, 5000)
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	late, err := c.next()
	if err != nil {
		t.Fatalf("it went on with %v", err)
	}
	if late != 0 {
		seen.add(t, late)
	}
	for range 100 { // the number is another's
		if id, err := c.next(); err != nil || id != 0 {
			t.Fatalf("it went on with %v, %v", id, err)
		}
	}
	mintMany(t, mine, seen, 5000)
	if err := mine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // and now it is the child's again
		id, err := c.first()
		if err != nil {
			t.Fatal(err)
		}
		seen.add(t, id)
	}
	return late != 0
}

// mintMany makes ids in the buckets of the child, once a number is free.
func mintMany(t *testing.T, m *coupon.Minter, seen *register, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); n > 0; {
		id, err := m.Mint(shard.Bucket(n % 2))
		switch {
		case err == nil:
			seen.add(t, id)
			n--
		case time.Now().After(deadline):
			t.Fatal(err)
		default:
			time.Sleep(time.Millisecond) // until the high-water of the other has passed
		}
	}
}
