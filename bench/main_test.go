package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// full reports whether tests run at the sizes of the promises, rather than at
// sizes that show within seconds that they work.
var full = os.Getenv("TALLYSTICK_FULL") == "1"

// binary builds the program once and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tallystick-bench-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "tallystick")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/tallystick").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	for name, main := range map[string]func() int{loadEnv: loadMain, writerEnv: writerMain, claimerEnv: claimerMain} {
		if os.Getenv(name) != "" { // this process is a part of a fault test
			os.Exit(main())
		}
	}
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}
