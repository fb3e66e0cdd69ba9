package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Create adds a new token to the file at path and returns it. This is the only
// time that it can be seen.
func Create(path string, scope Scope, label string) (secret string, t Token, err error) {
	if err := checkLabel(label); err != nil {
		return "", Token{}, err
	}
	secret, t = newToken(scope, label, time.Now())
	err = change(path, func(tokens []Token) ([]Token, error) { return append(tokens, t), nil })
	return secret, t, err
}

// Revoke removes the token called id from the file at path.
func Revoke(path, id string) error {
	if l, err := Read(path); err != nil || !l.Exists {
		return cmp.Or(err, fmt.Errorf("no token has the id %q: there is no %s (name the server's data folder)", id, path))
	}
	return change(path, func(tokens []Token) ([]Token, error) {
		rest, found := without(tokens, id)
		if !found {
			return nil, fmt.Errorf("no token has the id %q (`tallystick token list` shows them)", id)
		}
		return rest, nil
	})
}

// Read returns the tokens in the file at path.
func Read(path string) (List, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return List{}, nil
	}
	if err != nil {
		return List{}, unusable(path, err)
	}
	l, err := Parse(b)
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// change rewrites the file in one step, one change at a time.
func change(path string, f func([]Token) ([]Token, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unusable(path, err)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return unusable(path, err)
	}
	defer lock.Close()
	old, err := Read(path)
	if err != nil {
		return err
	}
	tokens, err := f(old.Tokens)
	if err != nil {
		return err
	}
	return write(path, tokens)
}

// write writes the file in one step: whatever goes wrong, the one before stays.
func write(path string, tokens []Token) error {
	b, err := json.MarshalIndent(map[string][]Token{"tokens": tokens}, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*") // mode 0600
	if err != nil {
		return unusable(path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	return unusable(path, err)
}

// unusable says in one line why the file at path cannot be read or written, and
// what to do; nil for nil.
func unusable(path string, err error) error {
	remedy := "name the server's data folder"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrPermission):
		remedy = "do it as the user that the server runs as, or name another data folder"
	case errors.Is(err, syscall.ENOSPC):
		remedy = "make room; nothing was changed"
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("token file %s: %w (%s)", path, err, remedy)
}
