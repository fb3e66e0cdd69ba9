package migbolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migbolt"
	"github.com/tallystick/tallystick/migrate/migtest"
)

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "events.state") }

func open(t testing.TB, path string) *migbolt.State {
	t.Helper()
	s, err := migbolt.Open(path, migtest.StateAxis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestState(t *testing.T) {
	migtest.TestState(t, func(t testing.TB) migtest.StateFixture {
		s, err := migbolt.OpenUnsynced(file(t), migtest.StateAxis)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		replace := func(t testing.TB, contents map[string]string) {
			if err := s.Replace(contents); err != nil {
				t.Fatal(err)
			}
		}
		return migtest.StateFixture{
			Pod:  func(testing.TB) migrate.State { return s.Pod() },
			Lose: func(t testing.TB) { replace(t, nil) },
			Backup: func(t testing.TB) func() {
				contents := s.Contents()
				return func() { replace(t, contents) }
			},
		}
	})
}

// childPath makes the test binary a process that works on slots of that file.
const childPath = "MIGBOLT_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		fmt.Println(workForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var record = migrate.PlanRecord{Name: "events", Hash: "h", Slots: migrate.Span{Lo: 0, Hi: 1 << 40}}

func request() migrate.ClaimRequest {
	return migrate.ClaimRequest{Pass: migrate.Copying, Worker: "w", TTL: time.Hour, Within: record.Slots, Oldest: true}
}

// workForever prints each row it was told is saved: "epoch slot rows".
func workForever(path string) error {
	ctx := context.Background()
	s, err := migbolt.Open(path, migtest.StateAxis)
	if err != nil {
		return err
	}
	if err := s.Open(ctx, record); err != nil {
		return err
	}
	fmt.Println("open")
	for {
		c, err := s.Claim(ctx, request())
		if err != nil {
			return err
		}
		p := c.Progress
		fmt.Println("claim", c.Epoch, c.Slot.Index, p.Counts.Read)
		for range 5 {
			p.Counts.Read++
			p.Last = migrate.Key{fmt.Sprint(p.Counts.Read)}
			if _, err := s.Save(ctx, c, p); err != nil {
				return err
			}
			fmt.Println("saved", c.Epoch, c.Slot.Index, p.Counts.Read)
		}
		if err := s.Finish(ctx, c, p, migrate.Span{}); err != nil {
			return err
		}
	}
}

// TestKilledProcessGoesOnFromWhatWasSaved: the next process gets the slot at
// once, though its claim would last an hour, with all that was acknowledged.
func TestKilledProcessGoesOnFromWhatWasSaved(t *testing.T) {
	path := file(t)
	s := open(t, path)
	err := errors.Join(s.Open(t.Context(), record), s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart),
		s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	saved, last := map[int64]int64{}, uint64(0)
	for range 15 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childPath+"="+path)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, kill := bufio.NewScanner(pipe), (*time.Timer)(nil)
		for lines.Scan() {
			if lines.Text() == "open" {
				kill = time.AfterFunc(rand.N(200*time.Millisecond), func() { cmd.Process.Kill() })
				continue
			}
			last = checkLine(t, lines.Text(), saved, last)
		}
		cmd.Wait()
		kill.Stop()
	}
	if len(saved) < 10 {
		t.Fatalf("only %d slots were worked on", len(saved))
	}
}

// checkLine checks what a child says against what was saved before.
func checkLine(t *testing.T, line string, saved map[int64]int64, last uint64) uint64 {
	t.Helper()
	var what string
	var epoch uint64
	var slot, rows int64
	if _, err := fmt.Sscan(line, &what, &epoch, &slot, &rows); err != nil {
		t.Fatalf("the child says %q", line)
	}
	if what == "claim" {
		if epoch <= last {
			t.Fatalf("epoch %d after %d", epoch, last)
		}
		if _, ok := saved[slot-1]; slot > 0 && (!ok || saved[slot-1] < 5) {
			t.Fatalf("slot %d was claimed and the one before has %d rows", slot, saved[slot-1])
		}
		if rows < saved[slot] {
			t.Fatalf("slot %d goes on from %d rows, %d were saved", slot, rows, saved[slot])
		}
	}
	saved[slot] = max(saved[slot], rows)
	return epoch
}

func TestFileInUseIsRefusedInOneLine(t *testing.T) {
	path := file(t)
	open(t, path)
	_, err := migbolt.Open(path, migtest.StateAxis)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("error %v", err)
	}
}

func BenchmarkSave(b *testing.B) {
	s := open(b, file(b))
	err := errors.Join(s.Open(b.Context(), record), s.Move(b.Context(), 0, migrate.NotStarted, migrate.ToStart),
		s.Move(b.Context(), 1, migrate.ToStart, migrate.InProgress))
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.Claim(b.Context(), request())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	p := c.Progress
	for b.Loop() {
		p.Counts.Read++
		if _, err := s.Save(b.Context(), c, p); err != nil {
			b.Fatal(err)
		}
	}
}
