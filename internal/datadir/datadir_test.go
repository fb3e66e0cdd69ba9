package datadir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/datadir"
)

func TestSecondHolderIsToldWhoTheFirstIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	first, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = datadir.Open(path)
	if !errors.Is(err, datadir.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("second: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
	again.Close()
}

func TestFolderIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestFileInItsPlaceIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), "there is a file in its place: choose another") {
		t.Error(err)
	}
}
