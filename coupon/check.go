package coupon

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// check refuses a target or a call that is malformed. Those fields must be
// given; the others may be.
func check(t Target, call Call, required ...string) error {
	if t.ID < 0 || t.ID == 0 && t.Code == (Code{}) {
		return invalidField("id", "neither id nor code is given")
	}
	return call.check(required...)
}

// check refuses a call with a malformed number, or without one of the fields
// that must be given.
func (c Call) check(required ...string) error {
	fields := []struct{ name, value string }{{"user_id", c.User}, {"order_no", c.Order}, {"request_no", c.Request}}
	for _, f := range fields {
		if f.value == "" && !slices.Contains(required, f.name) {
			continue
		}
		if err := CheckNumber(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// CheckNumber refuses, as [ErrInvalid], a user, order, batch or request number
// that is not 1 to 64 printable ASCII characters without spaces. They are
// compared byte for byte.
func CheckNumber(field, number string) error {
	if number == "" {
		return invalidField(field, "%s is missing", field)
	}
	odd := strings.IndexFunc(number, func(r rune) bool { return r < 0x21 || r > 0x7e })
	if len(number) > maxNumber || odd >= 0 {
		return invalidField(field, "%s is %.70q: want 1 to %d characters from ! to ~", field, number, maxNumber)
	}
	return nil
}

// refusal turns what shards and ids say into what callers are told. It is the only
// place that does.
func (s *Service) refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, shard.ErrMoved):
		return ErrShardMoving
	case errors.Is(err, shard.ErrUnavailable), errors.Is(err, shard.ErrUnknown), errors.Is(err, shard.ErrBusy):
		if held, due := s.away.due(time.Now()); due {
			s.log.Warn("shard unavailable", "error", err, "not_logged", held)
		}
		return ErrShardUnavailable
	case errors.Is(err, ErrNoIDs):
		s.log.Warn("no ids", "error", err)
		return ErrShardUnavailable.With("no coupon can be made now: try again")
	}
	return err
}
