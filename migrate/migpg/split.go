package migpg

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// splitSteps bounds how often a range is halved in search of a key with work
// on both sides.
const splitSteps = 12

// Split implements [migrate.Source]. Less than two pages are too little. The
// key is the one at half of the time, or the number, between the ends of what
// is left, moved until a page lies on either side; where all begin with the
// same time, the one after the next page.
func (s *Source) Split(ctx context.Context, r migrate.Range, after migrate.Key) (migrate.Key, bool, error) {
	page := s.plan.PageRows
	if _, enough, err := s.probe(ctx, s.query.probe(r, after, s.query.oldest, 2*page-1)); err != nil || !enough {
		return nil, false, err
	}
	least, _, err := s.probe(ctx, s.query.probe(r, after, true, 0))
	if err != nil || least == nil {
		return nil, false, err
	}
	greatest, _, err := s.probe(ctx, s.query.probe(r, after, false, 0))
	if err != nil || greatest == nil {
		return nil, false, err
	}
	k, found, err := s.bisect(ctx, r, after, least[0], greatest[0])
	if err != nil || found {
		return k, found, err
	}
	return s.beyondPage(ctx, r, after)
}

// bisect looks for a key, by its first part between lo and hi, with a page on
// either side.
func (s *Source) bisect(ctx context.Context, r migrate.Range, after migrate.Key, lo, hi string) (migrate.Key, bool, error) {
	for range splitSteps {
		middle, ok := between(s.plan.Axis(), lo, hi)
		if !ok {
			return nil, false, nil
		}
		above, below := s.halves(r, after, migrate.Key{middle})
		k, some, err := s.probe(ctx, s.query.probe(above.Range, above.after, true, 0))
		if err != nil {
			return nil, false, err
		}
		some, err = s.holdsPage(ctx, above, some, err)
		if err != nil {
			return nil, false, err
		}
		if !some {
			hi = before(s.plan.Axis(), middle)
			continue
		}
		if some, err = s.holdsPage(ctx, below, true, nil); err != nil || some {
			return k, some, err
		}
		lo = middle
	}
	return nil, false, nil
}

// A half is what is left of a range on one side of a key.
type half struct {
	migrate.Range
	after migrate.Key
}

// halves cuts what is left of r beyond after at k.
func (s *Source) halves(r migrate.Range, after, k migrate.Key) (above, below half) {
	above, below = half{migrate.Range{Lo: k, Hi: r.Hi}, nil}, half{migrate.Range{Lo: r.Lo, Hi: k}, nil}
	if s.query.oldest {
		below.after = after
	} else {
		above.after = after
	}
	return above, below
}

func (s *Source) holdsPage(ctx context.Context, h half, some bool, err error) (bool, error) {
	if err != nil || !some {
		return false, err
	}
	_, some, err = s.probe(ctx, s.query.probe(h.Range, h.after, s.query.oldest, s.plan.PageRows-1))
	return some, err
}

// beyondPage returns the key that leaves the next page to the owner.
func (s *Source) beyondPage(ctx context.Context, r migrate.Range, after migrate.Key) (migrate.Key, bool, error) {
	skip := s.plan.PageRows - 1
	if s.query.oldest {
		skip++
	}
	return s.probe(ctx, s.query.probe(r, after, s.query.oldest, skip))
}

// between returns the text half-way from lo to hi, above lo, and false where
// there is none.
func between(axis migrate.Axis, lo, hi string) (string, bool) {
	a, err := ordinal(axis.By, lo)
	b, err2 := ordinal(axis.By, hi)
	if err != nil || err2 != nil || a.Cmp(b) >= 0 {
		return "", false
	}
	sum := a.Add(a, b)
	return ordinalText(axis, sum.Rsh(sum.Add(sum, big.NewInt(1)), 1)), true
}

// before returns the text just below.
func before(axis migrate.Axis, s string) string {
	n, err := ordinal(axis.By, s)
	if err != nil {
		return s
	}
	return ordinalText(axis, n.Sub(n, big.NewInt(1)))
}

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ordinal returns the number that a key's first part stands for.
func ordinal(by migrate.By, s string) (*big.Int, error) {
	n := new(big.Int)
	switch by {
	case migrate.ByULID:
		for _, c := range strings.ToUpper(s) {
			digit := strings.IndexRune(crockford, c)
			if digit < 0 {
				return nil, fmt.Errorf("%q is no ULID", s)
			}
			n.Or(n.Lsh(n, 5), big.NewInt(int64(digit)))
		}
		return n, nil
	case migrate.ByUUIDv7:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		return n.SetBytes(b), err
	case migrate.ByTimestamp:
		t, err := parseInstant(s)
		return n.SetInt64(t.UnixMicro()), err
	}
	i, err := strconv.ParseInt(s, 10, 64)
	return n.SetInt64(i), err
}

// ordinalText is the inverse of [ordinal].
func ordinalText(axis migrate.Axis, n *big.Int) string {
	switch axis.By {
	case migrate.ByULID:
		var b [26]byte
		five, digit := big.NewInt(31), new(big.Int)
		for i := 25; i >= 0; i-- {
			b[i] = crockford[digit.And(n, five).Int64()]
			n.Rsh(n, 5)
		}
		if axis.Lower {
			return strings.ToLower(string(b[:]))
		}
		return string(b[:])
	case migrate.ByUUIDv7:
		h := fmt.Sprintf("%032x", n)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	case migrate.ByTimestamp:
		return time.UnixMicro(n.Int64()).UTC().Format(time.RFC3339Nano)
	}
	return n.String()
}
