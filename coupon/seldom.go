package coupon

import (
	"sync"
	"time"
)

// seldomEvery is the least time between two lines of the same kind in the log.
const seldomEvery = 10 * time.Second

// A seldom keeps what happens to hundreds of calls a second from filling the log.
// The zero value is ready; it is safe for concurrent use.
type seldom struct {
	mu     sync.Mutex
	logged time.Time
	held   int // lines that were not written since
}

// due reports whether a line is to be written now, and how many were not since the
// one before.
func (s *seldom) due(now time.Time) (held int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.logged.IsZero() && now.Sub(s.logged) < seldomEvery {
		s.held++
		return 0, false
	}
	held, s.held, s.logged = s.held, 0, now
	return held, true
}
