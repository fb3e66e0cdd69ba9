package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/internal/settings"
)

func flags(args ...string) *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String("listen", "127.0.0.1:7070", "")
	f.Int("max-in-flight", 1000, "")
	f.Duration("drain-timeout", 10*time.Second, "")
	f.Bool("insecure-no-tls", false, "")
	f.StringSlice("metrics-sequence", nil, "")
	if err := f.Parse(args); err != nil {
		panic(err)
	}
	return f
}

var keys = []string{"listen", "max-in-flight", "drain-timeout", "insecure-no-tls", "metrics-sequence"}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tallystick.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLineGoesBeforeEnvironmentBeforeFile(t *testing.T) {
	path := write(t, "# all from the file\nlisten: file\nmax-in-flight: 7\ndrain-timeout: 7s\ninsecure-no-tls: true\nmetrics-sequence: [a, b]\n")
	environ := []string{"TALLYSTICK_LISTEN=env", "TALLYSTICK_MAX_IN_FLIGHT=8", "TALLYSTICK_TOKEN=unknown here", "HOME=/"}
	f := flags("--listen", "flag")
	if err := settings.Apply(f, keys, path, environ); err != nil {
		t.Fatal(err)
	}
	listen, _ := f.GetString("listen")
	inFlight, _ := f.GetInt("max-in-flight")
	drain, _ := f.GetDuration("drain-timeout")
	insecure, _ := f.GetBool("insecure-no-tls")
	names, _ := f.GetStringSlice("metrics-sequence")
	if listen != "flag" || inFlight != 8 || drain != 7*time.Second || !insecure || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q %d %v %t %q", listen, inFlight, drain, insecure, names)
	}
}

func TestNothingSaidLeavesDefaults(t *testing.T) {
	for _, content := range []string{"", "# only a comment\n", "metrics-sequence: []\n"} {
		f := flags()
		if err := settings.Apply(f, keys, write(t, content), nil); err != nil {
			t.Errorf("%q: %v", content, err)
		}
		if listen, _ := f.GetString("listen"); listen != "127.0.0.1:7070" {
			t.Errorf("%q: %q", content, listen)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		environ       []string
		says          []string
	}{
		{"unknown key", "listen: a\n\nlisen: b\n", nil, []string{"line 3", `"lisen"`, "known are listen"}},
		{"nested", "listen:\n  host: a\n", nil, []string{"line 1", "listen takes a value"}},
		{"no settings", "- a\n", nil, []string{"line 1", "NAME: VALUE"}},
		{"no YAML", "a: b: c", nil, []string{"mapping values are not allowed"}},
		{"bad value in the file", "# so\nmax-in-flight: many\n", nil, []string{"line 2: max-in-flight", `"many"`, "invalid syntax"}},
		{"bad value in the environment", "", []string{"TALLYSTICK_DRAIN_TIMEOUT=soon"}, []string{"TALLYSTICK_DRAIN_TIMEOUT", `"soon"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := settings.Apply(flags(), keys, write(t, tc.content), tc.environ)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
		})
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	if err := settings.Apply(flags(), keys, filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("no error")
	}
}
