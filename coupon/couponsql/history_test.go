package couponsql_test

import (
	"testing"

	"github.com/tallystick/tallystick/coupon/coupontest"
)

func TestRacesOnMariaDB(t *testing.T) {
	o := mariadb(t).options(2)
	p, q := open(t, o), open(t, o)
	coupontest.TestRaces(t, [2]coupontest.Platform{{Store: p.Store, Control: p.Control}, {Store: q.Store, Control: q.Control}})
}
