// Package access decides who may call: bearer tokens of a scope each, kept as
// hashes in one file.
//
// A token is 256 random bits and shown once, when it is made; the file holds
// its SHA-256. (A fast hash is enough: there is nothing to guess in 256 random
// bits.) The server reads the file again when it changes, so a token that is
// revoked stops working within seconds, without a restart.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Scope says what a token is good for.
type Scope string

// The scopes.
const (
	Lease  Scope = "lease"  // take and return values of sequences
	Issue  Scope = "issue"  // generate coupons and issue them to orders
	Claim  Scope = "claim"  // claim and bind coupons, see wallets
	Redeem Scope = "redeem" // reserve, redeem, release, void and look up coupons
	Admin  Scope = "admin"  // everything
)

// Scopes returns all of them.
func Scopes() []Scope { return []Scope{Lease, Issue, Claim, Redeem, Admin} }

// ParseScope returns the scope of that name.
func ParseScope(s string) (Scope, error) {
	if slices.Contains(Scopes(), Scope(s)) {
		return Scope(s), nil
	}
	return "", fmt.Errorf("scope %q is not known (use lease, issue, claim, redeem or admin)", s)
}

// Any is what needs no scope in particular. No token has it.
const Any Scope = ""

// Covers reports whether a token of scope s may do what needs scope needed.
func (s Scope) Covers(needed Scope) bool { return s == Admin || s == needed || needed == Any }

// A Token is what is kept of a token: all but itself.
type Token struct {
	ID      string    `json:"id"`    // names it in lists, logs and Revoke
	Label   string    `json:"label"` // who uses it; free text
	Scope   Scope     `json:"scope"`
	Created time.Time `json:"created"`
	Hash    string    `json:"sha256"`
}

// prefix makes a token recognisable where it does not belong, to secret
// scanners too.
const prefix = "tally_"

// newToken returns a new token and what is kept of it.
func newToken(scope Scope, label string, now time.Time) (secret string, t Token) {
	var bits [32]byte
	rand.Read(bits[:])
	secret = prefix + base64.RawURLEncoding.EncodeToString(bits[:])
	return secret, Token{
		ID: strings.ToLower(rand.Text()[:8]), Label: label, Scope: scope,
		Created: now.UTC().Truncate(time.Second), Hash: hash(secret),
	}
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// A List is the tokens in force, and whether any are needed: a list that was
// never written asks for none, one whose last token was revoked lets nobody in.
type List struct {
	Exists bool
	Tokens []Token
}

// Errors of [List.Check].
var (
	ErrNoToken   = errors.New("no token was given")
	ErrNotKnown  = errors.New("the token is not known")
	ErrForbidden = errors.New("the scope of the token does not reach")
)

// Check returns the token of secret, if it is known and covers needed. It
// looks at every token, in the same time whichever it is.
func (l List) Check(secret string, needed Scope) (Token, error) {
	if secret == "" {
		return Token{}, ErrNoToken
	}
	sum := []byte(hash(secret))
	found := -1
	for i, t := range l.Tokens {
		if subtle.ConstantTimeCompare(sum, []byte(t.Hash)) == 1 {
			found = i
		}
	}
	switch {
	case found < 0:
		return Token{}, ErrNotKnown
	case !l.Tokens[found].Scope.Covers(needed):
		return l.Tokens[found], ErrForbidden
	}
	return l.Tokens[found], nil
}

// Bearer returns the token of an Authorization header, "" if it has none.
func Bearer(header string) string {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// Parse reads a token file. nil means that there is none.
func Parse(b []byte) (List, error) {
	if b == nil {
		return List{}, nil
	}
	var content struct {
		Tokens []Token `json:"tokens"`
	}
	if err := json.Unmarshal(b, &content); err != nil {
		return List{}, fmt.Errorf("is not a token file: %w (%s)", err, repair)
	}
	for _, t := range content.Tokens {
		if err := t.check(); err != nil {
			return List{}, fmt.Errorf("%w (%s)", err, repair)
		}
	}
	return List{Exists: true, Tokens: content.Tokens}, nil
}

// repair is what to do about a file that cannot be understood. Without one a
// server on the loopback interface asks for no token.
const repair = "put a sound copy in its place, or move it away and make new tokens with `tallystick token create`"

func (t Token) check() error {
	if !slices.Contains(Scopes(), t.Scope) {
		return fmt.Errorf("token %q: scope %q is not known", t.ID, t.Scope)
	}
	if b, err := hex.DecodeString(t.Hash); err != nil || len(b) != sha256.Size {
		return fmt.Errorf("token %q: its sha256 is not 64 hexadecimal digits", t.ID)
	}
	return nil
}

// checkLabel refuses what would garble a list.
func checkLabel(label string) error {
	if len(label) > 255 {
		return fmt.Errorf("the label has %d bytes (use at most 255)", len(label))
	}
	if strings.ContainsFunc(label, unicode.IsControl) {
		return errors.New("the label has a control character, like the end of a line (write it as one line of text)")
	}
	return nil
}

// without returns tokens without the one called id.
func without(tokens []Token, id string) ([]Token, bool) {
	i := slices.IndexFunc(tokens, func(t Token) bool { return t.ID == id })
	if i < 0 {
		return tokens, false
	}
	return slices.Delete(slices.Clone(tokens), i, i+1), true
}
