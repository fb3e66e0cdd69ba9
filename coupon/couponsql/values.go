package couponsql

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// millis returns a time as the database has it: ms since 1970, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant returns the time of what the database has.
func instant(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// A timeColumn is scanned into a time.
type timeColumn struct{ t *time.Time }

// Scan takes what the driver has.
func (c timeColumn) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("couponsql: a time is %T in the database", value)
	}
	*c.t = instant(n)
	return nil
}

// A codeColumn is scanned into a code.
type codeColumn struct{ code *coupon.Code }

// Scan takes what the driver has.
func (c codeColumn) Scan(value any) (err error) {
	switch v := value.(type) {
	case string:
		*c.code, err = coupon.ParseStored(v)
	case []byte:
		*c.code, err = coupon.ParseStored(string(v))
	default:
		err = fmt.Errorf("couponsql: a code is %T in the database", value)
	}
	return err
}

// document returns JSON as an argument, NULL for none.
func document(j json.RawMessage) any {
	if j == nil {
		return nil
	}
	return string(j)
}

// documentColumn is what to scan a column of JSON into.
func documentColumn(j *json.RawMessage) *[]byte { return (*[]byte)(j) }

// unless returns an argument, NULL for the zero value.
func unless[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
