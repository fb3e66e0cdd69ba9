package migdynamo

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits of DynamoDB's numbers.
const (
	maxDigits  = 38
	maxExpo    = 125  // of the first digit: 9.99E+125
	minExpo    = -130 // 1E-130
	plainZeros = 40   // most zeros that a plain number is padded with
)

// A decimal is a number as DynamoDB keeps it: digits without zeros at either
// end, times a power of ten. Zero has no digits and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int // of the last digit
}

// parseDecimal reads a number as PostgreSQL and JSON print it.
func parseDecimal(s string) (decimal, error) {
	if allDigits(s) { // most are
		return newDecimal(false, s, 0), nil
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent > 1e6 || exponent < -1e6 {
			return decimal{}, fmt.Errorf("%.50q is not a number that DynamoDB can hold", s)
		}
		mantissa = s[:i]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, frac, pointed := strings.Cut(mantissa, ".")
	if !allDigits(whole) || pointed && !allDigits(frac) {
		return decimal{}, fmt.Errorf("%.50q is not a number", s)
	}
	return newDecimal(negative, whole+frac, exponent-len(frac)), nil
}

func newDecimal(negative bool, digits string, exponent int) decimal {
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	short = strings.TrimLeft(short, "0")
	if short == "" {
		return decimal{}
	}
	return decimal{negative, short, exponent}
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// first returns the exponent of the first digit.
func (d decimal) first() int { return d.exponent + len(d.digits) - 1 }

// check returns why DynamoDB cannot hold d.
func (d decimal) check() error {
	switch {
	case d.digits == "":
		return nil
	case len(d.digits) > maxDigits:
		return fmt.Errorf("the number has %d significant digits, at most %d", len(d.digits), maxDigits)
	case d.first() > maxExpo:
		return fmt.Errorf("the number has magnitude 1E%+d, at most 9.99E+%d", d.first(), maxExpo)
	case d.first() < minExpo:
		return fmt.Errorf("the number has magnitude 1E%+d, at least 1E%d", d.first(), minExpo)
	}
	return nil
}

// size returns the bytes that DynamoDB counts.
func (d decimal) size() int {
	n := 1 + (len(d.digits)+1)/2
	if d.digits != "" && len(d.digits)%2 == 0 && d.first()%2 == 0 {
		n++ // digits lie in pairs, and these begin in the middle of one
	}
	if d.negative {
		n++
	}
	return n
}

// append adds the normal form of d: equal numbers give equal bytes.
func (d decimal) append(b []byte) []byte {
	if d.digits == "" {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	b = append(b, d.digits...)
	if d.exponent != 0 {
		b = strconv.AppendInt(append(b, 'e'), int64(d.exponent), 10)
	}
	return b
}

// plain returns d as people write it, if that does not need many zeros, and
// else its normal form.
func (d decimal) plain() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	switch before := len(d.digits) + d.exponent; {
	case d.digits == "" || d.exponent > plainZeros || before < -plainZeros:
		return string(d.append(nil))
	case d.exponent >= 0:
		return sign + d.digits + strings.Repeat("0", d.exponent)
	case before > 0:
		return sign + d.digits[:before] + "." + d.digits[before:]
	default:
		return sign + "0." + strings.Repeat("0", -before) + d.digits
	}
}

// int64 returns d, and false if it is no integer of 64 bits.
func (d decimal) int64() (int64, bool) {
	v, err := strconv.ParseInt(d.plain(), 10, 64)
	return v, err == nil
}
