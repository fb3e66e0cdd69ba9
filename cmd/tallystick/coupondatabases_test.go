package main

import (
	"os"
	"path/filepath"
	"strings"
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

// TestCheckKeyThatIsLostIsNotReplaced: another one would refuse all codes.
func TestCheckKeyThatIsLostIsNotReplaced(t *testing.T) {
	for _, file := range []string{"control.db", "shard-7.db"} {
		dir := filepath.Join(t.TempDir(), "coupons")
		first, err := embeddedCoupons(dir)
		if err != nil {
			t.Fatal(err)
		}
		key := filepath.Join(dir, "check.key")
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if again, err := embeddedCoupons(dir); err != nil || again.Keys[0].Secret != first.Keys[0].Secret {
			t.Errorf("with its key: %v", err)
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		if _, err := embeddedCoupons(dir); err == nil || !strings.Contains(err.Error(), "check.key is missing") {
			t.Errorf("%s without its key: %v", file, err)
		}
		if _, err := os.Stat(key); err == nil {
			t.Error("a key was made")
		}
	}
}
