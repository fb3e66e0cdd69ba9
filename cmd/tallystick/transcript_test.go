package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTranscripts types the commands of each file in testdata, the lines that
// begin with "$ ", in a shell beside a fresh server and compares what they
// print with what is written below them. `go test -update` writes it anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var args []string
			if filepath.Base(file) == "coupons.txt" {
				args = []string{"--coupons", "embedded"}
			}
			got := replay(t, string(want), args...)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s differs:\n%s", file, firstDifference(string(want), got))
			}
		})
	}
}

// replay runs the commands of a transcript and returns it anew.
func replay(t *testing.T, transcript string, args ...string) string {
	t.Helper()
	p := start(t, args...)
	dir := t.TempDir()
	var b strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "# "):
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			b.WriteString(line)
			out, code := shell(t, dir, strings.TrimPrefix(line, "$ "), "TALLYSTICK_SERVER="+p.url)
			b.WriteString(strings.NewReplacer(p.url, "http://SERVER", dir, "DIR").Replace(out))
			if code != 0 {
				fmt.Fprintf(&b, "[exit %d]\n", code)
			}
		}
	}
	return b.String()
}

// firstDifference shows where two texts part.
func firstDifference(want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d: want %sgot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}
