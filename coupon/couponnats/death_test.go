package couponnats_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

const (
	childDir   = "COUPONNATS_CHILD_DIR"
	childPoint = "COUPONNATS_CHILD_POINT"
)

// openPlatform opens coupons in files.
func openPlatform(ctx context.Context, dir string) (*couponsql.Platform, error) {
	control, shards := couponsql.Folder(dir, 2)
	return couponsql.Open(ctx, couponsql.Options{
		Control: control, Shards: shards, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced,
		Open: func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
		},
	})
}

func openQueue(ctx context.Context, dir string) (*couponnats.Queue, error) {
	return couponnats.Open(ctx, couponnats.Options{Dir: filepath.Join(dir, "events"), Readers: []string{"wallet"}})
}

// die ends the process as kill -9 does.
func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// relayAndDie relays what is in a folder until it comes to a point.
func relayAndDie(dir, point string) {
	ctx := context.Background()
	p, err := openPlatform(ctx, dir)
	if err == nil {
		var q *couponnats.Queue
		if q, err = openQueue(ctx, dir); err == nil {
			m := mortal{couponsql.NewOutbox(p.Cluster), q, point}
			err = coupon.NewRelay(m, m, nil).Run(ctx)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A mortal dies at a point.
type mortal struct {
	coupon.Outbox
	queue *couponnats.Queue
	point string
}

func (m mortal) Publish(ctx context.Context, at shard.Shard, rows []coupon.OutboxRow) ([]coupon.OutboxRow, error) {
	switch m.point {
	case "before publishing":
		die()
	case "half of a batch published":
		m.queue.Publish(ctx, at, rows[:len(rows)/2+1])
		die()
	}
	return m.queue.Publish(ctx, at, rows)
}

func (m mortal) Remove(ctx context.Context, at shard.Shard, lease coupon.RelayLease, rows []coupon.OutboxRow, ttl time.Duration) error {
	if m.point == "published, not removed" {
		die()
	}
	err := m.Outbox.Remove(ctx, at, lease, rows, ttl)
	if m.point == "removed" {
		die()
	}
	return err
}

// TestProcessDiesBetweenPublishAndRemove kills the relaying process, with the
// queue's server in it, at each point. Another goes on: every message is read, and
// none twice, since the queue knows the names.
func TestProcessDiesBetweenPublishAndRemove(t *testing.T) {
	t.Parallel() // it waits most of the time
	points := []string{"before publishing", "half of a batch published", "published, not removed", "removed"}
	dirs, wants := map[string]string{}, map[string][]string{}
	for _, point := range points { // all first: the next one waits until the lease of the dead is over
		dirs[point] = t.TempDir()
		wants[point] = writeEvents(t, dirs[point])
		killChild(t, dirs[point], point)
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			dir, want := dirs[point], wants[point]
			p, err := openPlatform(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			q, err := openQueue(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			ctx, cancel := context.WithCancel(t.Context())
			relayed := make(chan error, 1)
			go func() { relayed <- coupon.NewRelay(couponsql.NewOutbox(p.Cluster), q, nil).Run(ctx) }()
			log := newReaderLog()
			stop := read(t, q, "wallet", log.handle)
			log.await(t, len(want))
			awaitEmpty(t, couponsql.NewOutbox(p.Cluster))
			cancel()
			<-relayed
			stop()
			if got := log.await(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("%d messages read, want the %d that were written", len(got), len(want))
			}
		})
	}
}

// writeEvents makes coupons in a folder and returns the names of their messages,
// sorted.
func writeEvents(t *testing.T, dir string) (names []string) {
	t.Helper()
	p, err := openPlatform(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range 40 {
		id := coupon.ID((i+1)<<10 + i%5)
		code, err := coupon.ParseStored(fmt.Sprintf("%016d", id))
		if err != nil {
			t.Fatal(err)
		}
		c := coupon.Coupon{ID: id, Code: code, Version: 1, Created: time.UnixMilli(1)}
		if err := p.Store.Write(t.Context(), id, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{c}) }); err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%d:1", id))
	}
	slices.Sort(names)
	return names
}

// killChild runs a process on a folder that has to die at a point.
func killChild(t *testing.T, dir, point string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childPoint+"="+point)
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL || ctx.Err() != nil {
		t.Fatalf("the process ended with %v: %s", err, out)
	}
}

func awaitEmpty(t *testing.T, o coupon.Outbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, at := range shard.All() {
		for {
			n, err := o.Waiting(ctx, at, 10)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			<-tick.C
		}
	}
}
