package realtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// moduleDir returns the folder of this module's go.mod: the working folder of
// a test is that of its package.
var moduleDir = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = parent
	}
})

// missing is the error of a server that is not installed.
func missing(program string) error {
	return fmt.Errorf("%s is not installed: run make setup", program)
}
