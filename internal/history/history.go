// Package history judges what callers of sequences saw: each value they got,
// with the time their call began and ended. Callers write it themselves, into
// files that survive kill -9 of the process, so that nothing of the code under
// test can embellish it.
package history

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// An Event is one call that returned a value.
type Event struct {
	Start, End time.Duration // since the process began; comparable within one client only
	Value      int64
}

// eventSize is what an event takes in a log: its three numbers. An End of 0
// marks what was not written.
const eventSize = 24

// A Log is written by one goroutine. Its file is mapped into memory, so that
// an event is safe from the death of the process once Append has returned.
type Log struct {
	mem  []byte
	next int
}

// Create makes a log of up to capacity events for one goroutine of a client.
// All logs of a client and sequence lie in the same folder, dir.
func Create(dir, caller string, capacity int) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, caller+".log"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(capacity) * eventSize); err != nil { // a sparse file
		return nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, capacity*eventSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return &Log{mem: mem}, nil
}

// Append writes an event and reports whether there was room for it.
func (l *Log) Append(e Event) bool {
	if l.next+eventSize > len(l.mem) {
		return false
	}
	at := l.mem[l.next : l.next+eventSize]
	binary.LittleEndian.PutUint64(at[0:], uint64(e.Start))
	binary.LittleEndian.PutUint64(at[8:], uint64(e.Value))
	binary.LittleEndian.PutUint64(at[16:], uint64(e.End)) // last: it makes the event count
	l.next += eventSize
	return true
}

// Read returns the events of all logs in dir, those of one client and
// sequence.
func Read(dir string) ([]Event, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var events []Event
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for ; len(b) >= eventSize; b = b[eventSize:] {
			e := Event{
				Start: time.Duration(binary.LittleEndian.Uint64(b[0:])),
				Value: int64(binary.LittleEndian.Uint64(b[8:])),
				End:   time.Duration(binary.LittleEndian.Uint64(b[16:])),
			}
			if e.End != 0 {
				events = append(events, e)
			}
		}
	}
	return events, nil
}
