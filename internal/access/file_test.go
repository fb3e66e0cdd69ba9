package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/access"
)

// TestUnusableFilesSayWhatToDo, in one line that names the file.
func TestUnusableFilesSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		make func(folder string) error // what is in the way of folder/tokens.json
		want string
	}{
		"the folder is a file":    {func(folder string) error { return os.WriteFile(folder, nil, 0o600) }, "not a directory (name the server's data folder)"},
		"the file is a folder":    {func(folder string) error { return os.MkdirAll(filepath.Join(folder, "tokens.json"), 0o700) }, "is a directory (name the server's data folder)"},
		"the file is a lost link": {func(folder string) error { return loop(folder) }, "too many levels of symbolic links (name the server's data folder)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "tokens.json")
			if err := c.make(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			_, read := access.Read(path)
			_, _, create := access.Create(path, access.Lease, "")
			for what, err := range map[string]error{"read": read, "create": create, "revoke": access.Revoke(path, "a")} {
				if err == nil || err.Error() != "token file "+path+": "+c.want {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// loop makes a token file that is a link to itself.
func loop(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(folder, "tokens.json")
	return os.Symlink(path, path)
}

func TestRevokeMakesNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "misspelt", "tokens.json")
	if err := access.Revoke(path, "abc"); err == nil || !strings.Contains(err.Error(), `no token has the id "abc": there is no `+path) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}
