package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// A screen has a line that is drawn in place, if it is a terminal, and passes
// on what the log prints above it.
type screen struct {
	out, err io.Writer
	live     bool
	mu       sync.Mutex
	line     string
}

func (c *cli) newScreen() *screen {
	return &screen{out: c.out, err: c.err, live: terminal(c.out) && c.output == table}
}

// clearLine takes back what was drawn.
const clearLine = "\r\x1b[K"

// draw draws the line anew.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = cutTo(line, s.width())
	fmt.Fprint(s.out, clearLine+s.line)
}

// width returns how many characters a line of the terminal has.
func (s *screen) width() int {
	if f, ok := s.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return w - 1
		}
	}
	return 79
}

// cutTo returns the first n characters of a line of ASCII.
func cutTo(line string, n int) string { return line[:min(n, len(line))] }

// end leaves the line where it is.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != "" {
		fmt.Fprintln(s.out)
	}
	s.line = ""
}

// Write prints lines of the log.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.err.Write(p)
	}
	var b bytes.Buffer
	b.WriteString(clearLine)
	b.Write(p)
	if _, err := s.err.Write(b.Bytes()); err != nil {
		return 0, err
	}
	fmt.Fprint(s.out, s.line)
	return len(p), nil
}
