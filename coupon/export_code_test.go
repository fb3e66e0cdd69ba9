package coupon

import "github.com/tallystick/tallystick/shard"

// FromRandom returns the code whose random symbols are the low five bits of each
// byte.
func (c *Codes) FromRandom(random [13]byte, s shard.Shard) Code { return c.code(random, s) }
