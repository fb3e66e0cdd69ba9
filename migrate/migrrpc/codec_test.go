package migrrpc

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/migrate"
)

// TestNothingIsLostOnTheWire: every field of what crosses it, also one that is
// added later, comes back.
func TestNothingIsLostOnTheWire(t *testing.T) {
	report := full[migrate.Report](t)
	line := full[migrate.LedgerLine](t)
	outlook := full[Outlook](t)
	for name, c := range map[string]struct{ want, got any }{
		"report":  {report, decodeReport(encodeReport(report))},
		"line":    {line, decodeLine(encodeLine(line))},
		"outlook": {outlook, decodeOutlook(encodeOutlook(outlook))},
		"verdict": {*report.Verdict, decodeVerdict(encodeVerdict(*report.Verdict))},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-sent +received):\n%s", name, diff)
		}
	}
}

// full returns a T none of whose fields is zero.
func full[T any](t *testing.T) T {
	t.Helper()
	var v T
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(1<<53 + 1)
	case reflect.Uint64:
		v.SetUint(1<<53 + 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 123_456_789).UTC()))
			return
		}
		for _, f := range v.Fields() {
			fill(t, f)
		}
	default:
		t.Fatalf("a %s is not known here", v.Type())
	}
}
