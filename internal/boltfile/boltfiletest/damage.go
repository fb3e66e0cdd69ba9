// Package boltfiletest damages bbolt files in many ways and looks what a program
// that opens them does.
package boltfiletest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// proberFlag makes the test binary a prober.
const proberFlag = "BOLTFILE_PROBER"

// ProbeIfAsked is called first by TestMain. In a process that is a prober it
// answers, for each path it reads, with what probe says, a line each, and then
// ends the process. probe returns "refused: " and the error of opening the file;
// or what stands in one that is accepted; or "broken: " and what went wrong with
// it.
func ProbeIfAsked(probe func(path string) string) {
	if os.Getenv(proberFlag) == "" {
		return
	}
	for paths := bufio.NewScanner(os.Stdin); paths.Scan(); {
		fmt.Println(strings.ReplaceAll(probe(paths.Text()), "\n", `\n`))
	}
	os.Exit(0)
}

// A prober is a child process that opens files, so that a hang or a crash is
// an answer too.
type prober struct {
	t     *testing.T
	cmd   *exec.Cmd
	paths io.WriteCloser
	lines chan string // closed when the process has ended
	said  bytes.Buffer
}

func (p *prober) start() {
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), proberFlag+"=1", "GOMEMLIMIT=1GiB")
	p.said.Reset()
	p.cmd.Stderr = &p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.paths, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines := make(chan string)
	p.lines = lines
	go func() {
		defer close(lines)
		for answers := bufio.NewReader(out); ; {
			line, err := answers.ReadString('\n')
			if err != nil {
				return
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
}

func (p *prober) stop() {
	if p.cmd == nil {
		return
	}
	p.paths.Close()
	p.cmd.Process.Kill()
	for range p.lines {
	}
	p.cmd.Wait()
	p.cmd = nil
}

const probeTime = 8 * time.Second

// probe returns what the child says of the file at path.
func (p *prober) probe(path string) string {
	if p.cmd == nil {
		p.start()
	}
	fmt.Fprintln(p.paths, path)
	select {
	case line, ok := <-p.lines:
		if ok {
			return line
		}
		p.stop()
		first, _, _ := strings.Cut(p.said.String(), "\n")
		return "broken: the process died: " + first
	case <-time.After(probeTime):
		p.stop()
		return "broken: it hangs"
	}
}

// page is the size of bbolt's pages.
const page = 4096

// A damage changes the content of a file. old is what the file held some
// writes ago.
type damage struct {
	name string
	do   func(r *rand.Rand, content, old []byte) []byte
}

var damages = []damage{
	{"flipped bits", func(r *rand.Rand, content, _ []byte) []byte {
		for range 1 + r.IntN(4) {
			content[r.IntN(len(content))] ^= 1 << r.IntN(8)
		}
		return content
	}},
	{"noise in a page's head", func(r *rand.Rand, content, _ []byte) []byte {
		for range 1 + r.IntN(3) {
			pageOf(r, content)[r.IntN(64)] = byte(r.Uint32())
		}
		return content
	}},
	{"one small number in a page's head", func(r *rand.Rand, content, _ []byte) []byte {
		binary.LittleEndian.PutUint16(pageOf(r, content)[2*r.IntN(40):], uint16(r.IntN(64)))
		return content
	}},
	{"a link to another page", func(r *rand.Rand, content, _ []byte) []byte {
		p := pageOf(r, content)
		binary.LittleEndian.PutUint64(p[8*r.IntN(40):], uint64(r.IntN(len(content)/page)))
		return content
	}},
	{"a branch to another page", func(r *rand.Rand, content, _ []byte) []byte {
		for p := range slices.Chunk(content, page) { // some of these branches may be free pages
			if p[8] == 1 && p[10] > 0 {
				binary.LittleEndian.PutUint64(p[16+16*r.IntN(int(p[10]))+8:], uint64(r.IntN(len(content)/page)))
			}
		}
		return content
	}},
	{"one element fewer or more", func(r *rand.Rand, content, _ []byte) []byte {
		pageOf(r, content)[10] += byte(1 - 2*r.IntN(2))
		return content
	}},
	{"swapped pages", func(r *rand.Rand, content, _ []byte) []byte {
		a, b := pageOf(r, content), pageOf(r, content)
		saved := bytes.Clone(a)
		copy(a, b)
		copy(b, saved)
		return content
	}},
	{"a page in another's place, with its number", func(r *rand.Rand, content, _ []byte) []byte {
		a, b := pageOf(r, content), pageOf(r, content)
		copy(a[8:], b[8:])
		return content
	}},
	{"a zeroed page", func(r *rand.Rand, content, _ []byte) []byte {
		clear(pageOf(r, content))
		return content
	}},
	{"an old page", func(r *rand.Rand, content, old []byte) []byte {
		at := page * r.IntN(len(old)/page)
		copy(content[at:at+page], old[at:])
		return content
	}},
	{"a meta page", func(r *rand.Rand, content, _ []byte) []byte {
		content[page*r.IntN(2)+r.IntN(80)] ^= 1 << r.IntN(8)
		return content
	}},
	{"cut short", func(r *rand.Rand, content, _ []byte) []byte {
		return content[:r.IntN(len(content))]
	}},
	{"the end zeroed", func(r *rand.Rand, content, _ []byte) []byte {
		clear(content[r.IntN(len(content)):])
		return content
	}},
}

func pageOf(r *rand.Rand, content []byte) []byte {
	at := page * r.IntN(len(content)/page)
	return content[at : at+page]
}

// TestDamagedFileIsRefusedOrWhole damages a file in many ways. The process
// that opens it lives, answers soon, and either refuses it in one line and
// leaves it as it is, or finds in it all that it had.
//
// The process is this test binary, whose TestMain calls [ProbeIfAsked]. old is
// what the file held some writes ago. At full size each damage is done 2,000
// times.
func TestDamagedFileIsRefusedOrWhole(t *testing.T, content, old []byte) {
	t.Helper()
	rounds := 60
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		rounds = 2000
	}
	child := &prober{t: t}
	defer child.stop()
	path := filepath.Join(t.TempDir(), "file.db")
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(content)
	whole := child.probe(path)
	for n, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			refusals := 0
			for seed := range uint64(rounds) {
				damaged := d.do(rand.New(rand.NewPCG(seed, uint64(n))), bytes.Clone(content), old)
				write(damaged)
				answer := child.probe(path)
				if answer == whole {
					continue
				}
				refusals++
				after, _ := os.ReadFile(path)
				if !strings.HasPrefix(answer, "refused: ") || strings.Contains(answer, "in use") {
					t.Errorf("seed %d: %.200s", seed, answer)
				} else if strings.Contains(answer, `\n`) || !bytes.Equal(after, damaged) {
					t.Errorf("seed %d: the file was changed, or more than a line: %.200s", seed, answer)
				}
			}
			t.Logf("%d of %d refused", refusals, rounds)
			if refusals < rounds/10 {
				t.Errorf("only %d of %d files were refused", refusals, rounds)
			}
		})
	}
}
