package coupon

import (
	"fmt"
	"time"
)

// clocks are the times, in ms since 1970, that this machine and the database
// show at the same moment.
type clocks struct{ own, db int64 }

// passed reports whether both are beyond a high-water.
func (c clocks) passed(highWater int64) bool { return min(c.own, c.db) > highWater }

// highWater returns the high-water to write. It lies ahead by both clocks: a
// process whose own is behind would else lose its number at once.
func (c clocks) highWater(ahead time.Duration) int64 {
	return max(c.own, c.db) + ahead.Milliseconds()
}

// pickWorker returns the row of a number that nobody can be making ids with, at
// random, so that processes that start together seldom choose the same.
func pickWorker(rows []Worker, now clocks, intN func(int) int) (Worker, error) {
	all := make([]Worker, WorkerNumbers)
	for i := range all {
		all[i].Number = uint8(i)
	}
	for _, row := range rows {
		all[row.Number] = row
	}
	free, first := all[:0], int64(0)
	for _, row := range all {
		if now.passed(row.HighWater) {
			free = append(free, row)
		} else if first == 0 || row.HighWater < first {
			first = row.HighWater
		}
	}
	if len(free) == 0 {
		return Worker{}, obstacleError(fmt.Sprintf("all %d worker numbers are leased; the first may be free in %v",
			WorkerNumbers, time.Duration(first-min(now.own, now.db)+1)*time.Millisecond))
	}
	return free[intN(len(free))], nil
}

// rowOf returns the row of a number; its own if there is none.
func rowOf(rows []Worker, number uint8) Worker {
	for _, row := range rows {
		if row.Number == number {
			return row
		}
	}
	return Worker{Number: number}
}
