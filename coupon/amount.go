package coupon

// An Amount is money in the smallest unit of its currency: 1250 EUR is 12.50
// euros, 1250 JPY is 1250 yen. The zero Amount is not valid.
type Amount struct {
	Minor    int64  // not negative
	Currency string // ISO 4217, like EUR
}

// Validate reports what is wrong with the amount, as [ErrInvalid]. It checks the
// shape of the currency, not that it exists: the list changes.
func (a Amount) Validate() error {
	if a.Minor < 0 {
		return invalidField("value.amount_minor", "value.amount_minor is %d: want 0 or more, in the currency's smallest unit", a.Minor)
	}
	if !isCurrency(a.Currency) {
		return invalidField("value.currency", "value.currency is %.20q: want the three capital letters of ISO 4217, like EUR", a.Currency)
	}
	return nil
}

func isCurrency(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) == 3
}
