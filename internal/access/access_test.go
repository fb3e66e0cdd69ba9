package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/internal/access"
)

func TestTokenIsGoodUntilItIsRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "tokens.json")
	lease, leaseToken, err := access.Create(path, access.Lease, "orders team")
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := access.Create(path, access.Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	l := read(t, path)
	for _, tc := range []struct {
		name, secret string
		needed       access.Scope
		want         error
	}{
		{"lease leases", lease, access.Lease, nil},
		{"lease does not manage", lease, access.Admin, access.ErrForbidden},
		{"admin leases", admin, access.Lease, nil},
		{"admin manages", admin, access.Admin, nil},
		{"none", "", access.Lease, access.ErrNoToken},
		{"unknown", "tally_x", access.Lease, access.ErrNotKnown},
		{"its hash is no token", leaseToken.Hash, access.Lease, access.ErrNotKnown},
	} {
		if _, err := l.Check(tc.secret, tc.needed); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := access.Revoke(path, leaseToken.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, path).Check(lease, access.Lease); !errors.Is(err, access.ErrNotKnown) {
		t.Errorf("revoked: %v", err)
	}
	if err := access.Revoke(path, leaseToken.ID); err == nil || !strings.Contains(err.Error(), leaseToken.ID) {
		t.Errorf("revoked twice: %v", err)
	}
}

func read(t *testing.T, path string) access.List {
	t.Helper()
	l, err := access.Read(path)
	if err != nil || !l.Exists {
		t.Fatalf("%+v %v", l, err)
	}
	return l
}

func TestFileIsPrivateAndHoldsNoToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	secret, _, err := access.Create(path, access.Lease, "a")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	b, _ := os.ReadFile(path)
	if strings.Contains(string(b), secret) || strings.Contains(string(b), strings.TrimPrefix(secret, "tally_")) {
		t.Error("the file holds the token itself")
	}
}

func TestNoFileAsksForNoToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	if l, err := access.Read(path); err != nil || l.Exists {
		t.Errorf("%+v %v", l, err)
	}
	_, token, err := access.Create(path, access.Lease, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := access.Revoke(path, token.ID); err != nil {
		t.Fatal(err)
	}
	if l := read(t, path); len(l.Tokens) != 0 {
		t.Errorf("%+v", l)
	}
}

func TestChangesDoNotGetLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := access.Create(path, access.Lease, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if l := read(t, path); len(l.Tokens) != 20 {
		t.Errorf("%d tokens", len(l.Tokens))
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	for _, content := range []string{"", "{", "[]", `{"tokens":[{"id":"a","scope":"root","sha256":""}]}`, `{"tokens":[{"id":"a","scope":"lease","sha256":"00"}]}`} {
		path := filepath.Join(t.TempDir(), "tokens.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := access.Read(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "token create") {
			t.Errorf("%q: %v, want the file and what to do", content, err)
		}
		if _, _, err := access.Create(path, access.Lease, ""); err == nil {
			t.Errorf("%q was overwritten", content)
		}
	}
}

func TestBearerIsReadFromItsHeaderOnly(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer  abc ": "abc", "Basic abc": "", "abc": "", "": "", "Bearer": "", "Bearer ": "",
	} {
		if got := access.Bearer(header); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

func TestLabelsAreText(t *testing.T) {
	for label, want := range map[string]string{
		"a\nb":                   "the label has a control character, like the end of a line (write it as one line of text)",
		strings.Repeat("x", 256): "the label has 256 bytes (use at most 255)",
	} {
		if _, _, err := access.Create(filepath.Join(t.TempDir(), "t"), access.Lease, label); err == nil || err.Error() != want {
			t.Errorf("%q: %v", label, err)
		}
	}
}

// TestDamagedFilesSayHow, in one line.
func TestDamagedFilesSayHow(t *testing.T) {
	const remedy = " (put a sound copy in its place, or move it away and make new tokens with `tallystick token create`)"
	for content, want := range map[string]string{
		"{":                                      "is not a token file: unexpected end of JSON input" + remedy,
		`{"tokens":[{"id":"a","scope":"root"}]}`: `token "a": scope "root" is not known` + remedy,
		`{"tokens":[{"id":"a","scope":"lease","sha256":"0"}]}`: `token "a": its sha256 is not 64 hexadecimal digits` + remedy,
	} {
		if _, err := access.Parse([]byte(content)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", content, err)
		}
	}
}
