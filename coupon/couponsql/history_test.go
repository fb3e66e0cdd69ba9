package couponsql_test

import (
	"testing"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

func platformOf(p *couponsql.Platform) coupontest.Platform {
	return coupontest.Platform{Store: p.Store, Control: p.Control}
}

func TestRacesOnMariaDB(t *testing.T) {
	o := mariadb(t).options(2)
	coupontest.TestRaces(t, [2]coupontest.Platform{platformOf(open(t, o)), platformOf(open(t, o))})
}

func TestLivesOnSQLite(t *testing.T) {
	coupontest.TestLives(t, platformOf(open(t, sqlite(t).options(2))))
}
