package coupon

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"

	"github.com/tallystick/tallystick/shard"
)

// The form of a code: symbols of Crockford's base32, 13 random ones (65 bits),
// one that carries the shard, two that check the 14 before. All of it is frozen:
// codes are printed. testdata/codes.golden has vectors.
const (
	base          = 32
	alphabet      = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // no I, L, O, U
	randomSymbols = 13
	bodySymbols   = randomSymbols + 1
	codeSymbols   = bodySymbols + 2
)

// ErrMalformedCode tells that a text is not one of the platform's codes: it has
// another form, or a typing error, or was guessed. It never repeats the text.
var ErrMalformedCode = errors.New("coupon: not a code of this platform")

// A Code is what the owner of a coupon shows: 16 symbols that nobody can guess
// and that carry the coupon's shard. Only [Codes] makes one. Codes are
// comparable; the zero Code is none.
//
// Whoever has the code of a bearer coupon has the coupon, so in logs a code shows
// its last four symbols only.
type Code struct {
	symbols string // "", or codeSymbols of the alphabet
}

// ParseStored reads a code that the database holds, without checking it: a code
// outlives the key that made it. It accepts the spellings that [Codes.Parse]
// does, and refuses with [ErrMalformedCode] what is not 16 symbols.
func ParseStored(text string) (Code, error) {
	var symbols [codeSymbols]byte
	n := 0
	for i := range len(text) {
		if text[i] == ' ' || text[i] == '-' {
			continue
		}
		value := values[text[i]]
		if value == 0 || n == codeSymbols {
			return Code{}, ErrMalformedCode
		}
		symbols[n] = alphabet[value-1]
		n++
	}
	if n < codeSymbols {
		return Code{}, ErrMalformedCode
	}
	return Code{string(symbols[:])}, nil
}

// values has, for each byte that may be typed for a symbol, the symbol's value
// plus one; 0 for all others.
var values = func() (v [256]uint8) {
	for i := range base {
		v[alphabet[i]] = uint8(i + 1)
		v[strings.ToLower(alphabet)[i]] = uint8(i + 1)
	}
	v['O'], v['o'] = v['0'], v['0']
	v['I'], v['i'], v['L'], v['l'] = v['1'], v['1'], v['1'], v['1']
	return v
}()

// Shard returns the shard of the code's coupon. The code must not be zero.
func (c Code) Shard() shard.Shard {
	value := values[c.symbols[randomSymbols]] - 1
	return shard.Shard(value ^ mask([]byte(c.symbols[:randomSymbols])))
}

// Bucket returns a bucket of that shard, which makes the code a [shard.Key].
func (c Code) Bucket() shard.Bucket { return c.Shard().Bucket() }

// mask returns the first five bits of the SHA-256 of the random symbols. It
// spreads the shard over the symbol, so that codes do not show which coupons are
// neighbours; it is no secret, as the symbol is needed without a key.
func mask(random []byte) byte {
	sum := sha256.Sum256(random)
	return sum[0] >> 3
}

// IsZero reports whether there is no code.
func (c Code) IsZero() bool { return c.symbols == "" }

// Symbols returns the 16 symbols as they are stored, "" for the zero Code.
func (c Code) Symbols() string { return c.symbols }

// String returns the symbols in fours, as they are shown: 4KQ1-....
func (c Code) String() string {
	if c.IsZero() {
		return ""
	}
	s := c.symbols
	return s[:4] + "-" + s[4:8] + "-" + s[8:12] + "-" + s[12:]
}

// LogValue shows the last four symbols.
func (c Code) LogValue() slog.Value {
	if c.IsZero() {
		return slog.StringValue("")
	}
	return slog.StringValue("..." + c.symbols[codeSymbols-4:])
}
