package coupon

import (
	"testing"
	"time"
)

func TestSeldomWritesOneLineInTenSecondsAndCountsTheOthers(t *testing.T) {
	var s seldom
	now := time.Now()
	var lines, told int
	for range 30_000 { // a call a millisecond
		if held, due := s.due(now); due {
			lines, told = lines+1, told+held
		}
		now = now.Add(time.Millisecond)
	}
	if lines != 3 || told != 2*9_999 {
		t.Errorf("%d lines, %d others told of", lines, told)
	}
}
