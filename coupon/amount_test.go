package coupon_test

import (
	"errors"
	"math"
	"testing"

	"github.com/tallystick/tallystick/coupon"
)

func TestAmountValidate(t *testing.T) {
	for name, c := range map[string]struct {
		amount coupon.Amount
		field  string // at fault; "": none
	}{
		"some":                {coupon.Amount{Minor: 1250, Currency: "EUR"}, ""},
		"nothing":             {coupon.Amount{Minor: 0, Currency: "JPY"}, ""},
		"the most":            {coupon.Amount{Minor: math.MaxInt64, Currency: "USD"}, ""},
		"zero value":          {coupon.Amount{}, "value.currency"},
		"negative":            {coupon.Amount{Minor: -1, Currency: "EUR"}, "value.amount_minor"},
		"small letters":       {coupon.Amount{Minor: 1, Currency: "eur"}, "value.currency"},
		"two letters":         {coupon.Amount{Minor: 1, Currency: "EU"}, "value.currency"},
		"four letters":        {coupon.Amount{Minor: 1, Currency: "EURO"}, "value.currency"},
		"digits":              {coupon.Amount{Minor: 1, Currency: "978"}, "value.currency"},
		"three bytes, no Ä":   {coupon.Amount{Minor: 1, Currency: "ÄA"}, "value.currency"},
		"surrounded by space": {coupon.Amount{Minor: 1, Currency: " EUR"}, "value.currency"},
	} {
		t.Run(name, func(t *testing.T) {
			checkField(t, c.amount.Validate(), c.field)
		})
	}
}

// checkField expects err to be an ErrInvalid of the field, or nil for "".
func checkField(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	r, ok := errors.AsType[*coupon.Refusal](err)
	if !ok || !errors.Is(err, coupon.ErrInvalid) || r.Field != field {
		t.Errorf("got %v, want it to be about %s", err, field)
	}
}
