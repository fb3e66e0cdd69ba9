package couponrpc

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/internal/rpcwire"
)

// MarshalJSON returns what a call came to as the wire has it: a campaign, coupon,
// result, operation or event. It fails for anything else.
func MarshalJSON(v any) ([]byte, error) {
	var m proto.Message
	switch v := v.(type) {
	case coupon.Campaign:
		m = encodeCampaign(v)
	case coupon.Coupon:
		m = encodeCoupon(v, time.Now())
	case coupon.Result:
		m = encodeResult(v)
	case coupon.Operation:
		m = encodeOperation(v)
	case coupon.Event:
		m = encodeEvent(v)
	default:
		return nil, fmt.Errorf("couponrpc: no JSON of %T", v)
	}
	return rpcwire.MarshalJSON(m)
}
