package couponsql

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/coupon"
)

var (
	insertCoupons = worded(`INSERT INTO coupon_# (id, code, campaign_id, status, version, created_at, body)
		SELECT list.id, list.code, ?, ?, ?, ?, ? FROM {list} AS list WHERE 1 = 1`)

	selectAvailable = worded(`SELECT c.id FROM {list} AS list JOIN coupon_# AS c ON c.id = list.id WHERE c.status = 0 ORDER BY c.id {lock}`)
	issueListed     = updatingListed("coupon_#", "status = ?, version = ?, body = ?", "status = 0")
)

// Add adds new coupons, which are alike but for id and code, and one message for
// all.
func (t tx) Add(coupons []coupon.Coupon) error {
	if len(coupons) == 0 {
		return nil
	}
	c := coupons[0]
	refs := make([]coupon.Ref, len(coupons))
	for i, other := range coupons {
		if other.Campaign != c.Campaign || other.Status != c.Status || other.User != c.User || other.Order != c.Order {
			return fmt.Errorf("couponsql: coupons %d and %d are not alike: add them one after the other", c.ID, other.ID)
		}
		refs[i] = coupon.Ref{ID: other.ID, Code: other.Code}
	}
	body, err := bodyOf(c)
	if err != nil {
		return err
	}
	_, err = t.write.Exec(t.in(insertCoupons), c.Campaign, c.Status, c.Version, millis(c.Created), body, list(refs))
	if err != nil {
		return err
	}
	e := coupon.Event{Coupon: c.ID, Version: c.Version, Type: coupon.WasGenerated, At: c.Created}
	return t.addLine(coupon.Message{Event: e, Coupon: c, IDs: idsOf(refs)})
}

// IssueAll gives those of refs that are available to an order or a user, as c
// says, and returns them.
func (t tx) IssueAll(refs []coupon.Ref, c coupon.Coupon) ([]coupon.Ref, error) {
	free, err := t.available(refs)
	if err != nil || len(free) == 0 {
		return nil, err
	}
	body, err := bodyOf(c)
	if err != nil {
		return nil, err
	}
	n, err := t.write.Exec(t.in(issueListed), listedArgs(t.Dialect(), list(free), c.Status, c.Version, body)...)
	if err == nil && int(n) != len(free) {
		err = fmt.Errorf("couponsql: %d of %d locked coupons were issued", n, len(free))
	}
	if err != nil {
		return nil, err
	}
	c.ID = free[0].ID
	e := coupon.Event{Coupon: c.ID, Version: c.Version, Type: coupon.WasIssued, At: c.Updated, User: c.User, Order: c.Order}
	return free, t.addLine(coupon.Message{Event: e, Coupon: c, IDs: idsOf(free)})
}

// available locks those of refs that are available and returns them.
func (t tx) available(refs []coupon.Ref) ([]coupon.Ref, error) {
	scan := func(row scanner) (id coupon.ID, err error) {
		err = row.Scan(&id)
		return id, err
	}
	ids, err := all(t.rows, scan, t.in(selectAvailable), list(refs))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r coupon.Ref) bool {
		_, free := slices.BinarySearch(ids, r.ID)
		return !free
	}), nil
}

// list returns refs as the argument of a {list}, by rising id: everybody locks in
// the same order.
func list(refs []coupon.Ref) string {
	sorted := slices.SortedFunc(slices.Values(refs), func(a, b coupon.Ref) int { return cmp.Compare(a.ID, b.ID) })
	rows := make([][2]any, len(sorted))
	for i, r := range sorted {
		rows[i] = [2]any{r.ID, r.Code.Symbols()}
	}
	text, _ := json.Marshal(rows) // numbers and strings: cannot fail
	return string(text)
}

func idsOf(refs []coupon.Ref) []coupon.ID {
	ids := make([]coupon.ID, len(refs))
	for i, r := range refs {
		ids[i] = r.ID
	}
	return ids
}
