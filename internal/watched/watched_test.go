package watched_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tallystick/tallystick/internal/watched"
)

func parse(b []byte) (string, error) {
	if strings.HasPrefix(string(b), "bad") {
		return "", errors.New("does not parse")
	}
	return string(b), nil
}

func TestChangesShow(t *testing.T) { synctest.Test(t, changesShow) }

func changesShow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := watched.Open(path, parse)
	if err != nil || f.Get() != "" {
		t.Fatalf("missing: %q %v", f.Get(), err)
	}
	changes := make(chan error)
	go f.Run(t.Context(), func(err error) { changes <- err })
	for _, step := range []struct {
		write string // "-" removes
		says  string
		want  string
	}{
		{"one", "", "one"},
		{"bad two", "does not parse", "one"},
		{"three3", "", "three3"},
		{"-", "is gone", "three3"},
		{"four", "", "four"},
	} {
		if step.write == "-" {
			os.Remove(path)
		} else {
			replace(t, path, step.write)
		}
		err := <-changes
		if (err == nil) != (step.says == "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("after %q: error %v", step.write, err)
		}
		if f.Get() != step.want {
			t.Errorf("after %q: %q", step.write, f.Get())
		}
	}
}

// replace writes the file in one step, so that nobody sees half of it.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestBadAtTheStartIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	replace(t, path, "bad")
	if _, err := watched.Open(path, parse); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

func TestChangeOfAnotherFileIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, other := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
		replace(t, path, "cert")
		f, err := watched.Open(path, func(b []byte) (string, error) {
			key, _ := os.ReadFile(other)
			return string(b) + string(key), nil
		}, other)
		if err != nil {
			t.Fatal(err)
		}
		changes := make(chan error)
		go f.Run(t.Context(), func(err error) { changes <- err })
		replace(t, other, "+key")
		if err := <-changes; err != nil || f.Get() != "cert+key" {
			t.Errorf("%q %v", f.Get(), err)
		}
	})
}
