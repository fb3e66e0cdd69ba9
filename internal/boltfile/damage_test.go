package boltfile_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
)

// proberFlag makes the test binary a prober.
const proberFlag = "BOLTFILE_PROBER"

func TestMain(m *testing.M) {
	if os.Getenv(proberFlag) == "" {
		os.Exit(m.Run())
	}
	for paths := bufio.NewScanner(os.Stdin); paths.Scan(); {
		fmt.Println(strings.ReplaceAll(probe(paths.Text()), "\n", `\n`))
	}
}

var bucket, sum = []byte("b"), []byte("sum")

// kind is a kind of file that has, beside its keys, a checksum of them.
var kind = boltfile.Kind{
	LayOut: func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	},
	Verify: func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return boltfile.ErrForeign
		}
		if want := b.Get(sum); want != nil && !bytes.Equal(want, sumOf(b)) {
			return boltfile.Damaged(errors.New("the sum is wrong"))
		}
		return nil
	},
}

func sumOf(b *bolt.Bucket) []byte {
	h := crc32.NewIEEE()
	b.ForEach(func(k, v []byte) error {
		if !bytes.Equal(k, sum) {
			fmt.Fprintf(h, "%q %q\n", k, v)
		}
		return nil
	})
	return h.Sum(nil)
}

// probe returns "refused: " and the error of Open; or what stands in the file
// that it accepts, after it was written to; or "broken: " and what went wrong
// with one it accepted.
func probe(path string) string {
	db, _, err := kind.Open(path, boltfile.Options{LockWait: time.Second})
	if err != nil {
		return "refused: " + err.Error()
	}
	defer db.Close()
	h := crc32.NewIEEE()
	err = boltfile.Guarded(func() error {
		return db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			h.Write(sumOf(b))
			return b.Put([]byte("one more"), make([]byte, 3000))
		})
	})
	if err != nil {
		return "broken: " + err.Error()
	}
	return fmt.Sprintf("%x", h.Sum(nil))
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
		for range 100 {
			if p := pageOf(r, content); p[8] == 1 && p[10] > 0 {
				binary.LittleEndian.PutUint64(p[16+16*r.IntN(int(p[10]))+8:], uint64(r.IntN(len(content)/page)))
				break
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
func TestDamagedFileIsRefusedOrWhole(t *testing.T) {
	rounds := 60
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		rounds = 2000
	}
	content, old := grown(t)
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

// grown returns the content of a file with some hundred keys, some of which are
// large, that was written to often, and what it was before the last writes.
func grown(t *testing.T) (content, old []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.db")
	db, _, err := kind.Open(path, boltfile.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		if i == 300 {
			old = contentAt(t, path)
		}
		err := db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			size := 50 + 13*i%200
			if i%100 == 7 {
				size = 20_000
			}
			return errors.Join(b.Put(fmt.Appendf(nil, "key %03d", i*77%250), bytes.Repeat([]byte{byte(i)}, size)), b.Put(sum, sumOf(b)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return contentAt(t, path), old
}

func contentAt(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
