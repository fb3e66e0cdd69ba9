package sequence

import "github.com/tallystick/tallystick/internal/refill"

// UsePlainMean makes c estimate its consumption by the mean of the last minute,
// for comparison. Call it before the first value.
func (c *Client) UsePlainMean() { c.estimate = (*refill.Window).Mean }

// UsePlainMean makes s estimate its consumption by the mean of the last minute,
// for comparison. Call it before the first lease.
func (s *Service) UsePlainMean() { s.estimate = (*refill.Window).Mean }
