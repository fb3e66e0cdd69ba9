package migrate

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A Key is a row's key in the source: one text per key column, in the order of
// the index. Its order is the database's and is compared only there; here keys
// are equal or not. The nil Key stands for an open end of a [Range].
type Key []string

// Equal reports whether two keys are the same.
func (k Key) Equal(l Key) bool { return slices.Equal(k, l) && (k == nil) == (l == nil) }

// String returns the key as one word: its parts, escaped, joined by "~".
func (k Key) String() string {
	parts := make([]string, len(k))
	for i, p := range k {
		parts[i] = strings.ReplaceAll(url.QueryEscape(p), "~", "%7E")
	}
	return strings.Join(parts, "~")
}

// ParseKey is the inverse of [Key.String].
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "~")
	k := make(Key, len(parts))
	for i, p := range parts {
		text, err := url.QueryUnescape(p)
		if err != nil {
			return nil, fmt.Errorf("migrate: key %q: %w", s, err)
		}
		k[i] = text
	}
	return k, nil
}

// A Range is the half-open range of keys [Lo, Hi). A nil end is open.
type Range struct {
	Lo Key
	Hi Key
}
