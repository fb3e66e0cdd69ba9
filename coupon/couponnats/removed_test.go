package couponnats_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
)

// TestRemovedFolderIsMadeAnew: the server would acknowledge what is on no disk.
func TestRemovedFolderIsMadeAnew(t *testing.T) {
	for name, removed := range map[string]string{"all of it": "", "what the server keeps": "jetstream"} {
		t.Run(name, func(t *testing.T) {
			dir, said := filepath.Join(t.TempDir(), "events"), new(logBuffer)
			q := open(t, couponnats.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(said, nil))})
			log := newReaderLog()
			read(t, q, "wallet", log.handle)
			publish(t, q, row(1, 2))
			log.await(t, 1)
			if err := os.Rename(filepath.Join(dir, removed), filepath.Join(t.TempDir(), "bin")); err != nil {
				t.Fatal(err)
			}
			for limit := time.Now().Add(time.Minute); ; {
				acked, err := q.Publish(t.Context(), 5, []coupon.OutboxRow{row(2, 2)})
				if err == nil && len(acked) == 1 {
					break
				}
				if time.Now().After(limit) {
					t.Fatal("nothing is published any more:", err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "jetstream")); err != nil {
				t.Error("it was acknowledged and is on no disk:", err)
			}
			log.await(t, 2)
			if !strings.Contains(said.String(), "removed") {
				t.Error("the log does not say so")
			}
			if _, err := couponnats.Open(t.Context(), couponnats.Options{Dir: dir, Readers: []string{"wallet"}}); err == nil || errors.Is(err, os.ErrNotExist) {
				t.Errorf("another process may have the folder, too: %v", err)
			}
		})
	}
}
