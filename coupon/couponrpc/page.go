package couponrpc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// tokenSize is the size of a page token: 8 bytes of its query's digest, an
// instant in ms and an id.
const tokenSize = 24

// A pageEnd is where a page ended, and the next one begins.
type pageEnd struct {
	until time.Time
	id    int64
}

// token returns it as an opaque text that only the same query takes.
func (p pageEnd) token(query ...string) string {
	b := append(make([]byte, 0, tokenSize), digest(query)...)
	var ms int64
	if !p.until.IsZero() {
		ms = p.until.UnixMilli()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(ms))
	b = binary.BigEndian.AppendUint64(b, uint64(p.id))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken returns what a token stands for; "" is the beginning. It refuses what
// is no token of the query.
func parseToken(token string, query ...string) (pageEnd, error) {
	if token == "" {
		return pageEnd{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != tokenSize || string(b[:8]) != string(digest(query)) {
		return pageEnd{}, coupon.ErrPageToken
	}
	p := pageEnd{id: int64(binary.BigEndian.Uint64(b[16:]))}
	if ms := int64(binary.BigEndian.Uint64(b[8:])); ms != 0 {
		p.until = time.UnixMilli(ms).UTC()
	}
	return p, nil
}

// digest returns 8 bytes that tell queries apart.
func digest(query []string) []byte {
	h := sha256.New()
	for _, q := range query {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(q))))
		h.Write([]byte(q))
	}
	return h.Sum(nil)[:8]
}

// pageSize returns the size a caller asks for, or the default.
func pageSize(asked uint32, otherwise int) int {
	if asked == 0 {
		return otherwise
	}
	return int(asked)
}
