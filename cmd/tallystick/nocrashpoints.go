//go:build !crashpoints

package main

import "github.com/tallystick/tallystick/coupon"

// crashPoints does nothing; see the file of the build tag crashpoints.
func crashPoints(*coupon.Options) {}
