package coupontest_test

import (
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

func TestWorkersInMemory(t *testing.T) {
	coupontest.TestWorkers(t, func(*testing.T) coupon.Workers { return new(coupontest.Workers) })
}
