package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCheckKeyIsMadeOnceAndWhole: without it no code that it made is good.
func TestCheckKeyIsMadeOnceAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "check.key")
	first, err := ownCheckKey(path)
	if err != nil || len(first.Secret) != 64 {
		t.Fatalf("%d digits, %v", len(first.Secret), err)
	}
	if again, err := ownCheckKey(path); err != nil || again.Secret != first.Secret {
		t.Errorf("another key was made: %v", err)
	}
	if err := writeOnce(path, []byte("other")); err == nil {
		t.Error("the key was overwritten")
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	info, err := os.Stat(path)
	if len(left) != 1 || err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", left, info)
	}
}
