package rollout

import (
	"errors"
	"fmt"
)

// The sentinels, to be used with errors.Is.
var (
	// ErrConflict: in new-only, others changed the row whenever it was tried.
	// Nothing was written.
	ErrConflict = errors.New("rollout: changed by others all the time")
	// ErrUnknownOutcome: a write was sent and no answer came, so it may have
	// happened or may happen yet. It was not tried again, because a second one
	// could replace what somebody wrote in between.
	ErrUnknownOutcome = errors.New("rollout: outcome unknown")
)

// failed adds to an error what was done with which key.
func failed(op string, key any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rollout: %s %v: %w", op, key, err)
}
