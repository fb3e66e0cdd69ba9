package seqbolt_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// proberFlag makes the test binary a prober.
const proberFlag = "SEQBOLT_PROBER"

// probeForever opens each file whose path it reads, a line each, and answers
// what is in it in one line.
func probeForever() {
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		fmt.Println(strings.ReplaceAll(probe(paths.Text()), "\n", `\n`))
	}
}

// probe returns "refused: " and the error of Open; or what stands in the file
// that it accepts; or "broken: " and what went wrong with one it accepted.
func probe(path string) string {
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		if e, ok := errors.AsType[*sequence.Error](err); !ok || e.Remedy == "" {
			return "broken: no remedy: " + err.Error()
		}
		return "refused: " + err.Error()
	}
	defer store.Close()
	content, err := contentOf(store)
	if err != nil {
		return "broken: " + err.Error()
	}
	return content
}

// contentOf returns all counters, by List and by Load, and the first value of
// a block.
func contentOf(store *seqbolt.Store) (string, error) {
	ctx := context.Background()
	records, _, _, err := store.List(ctx, "", "", 1<<30)
	if err != nil {
		return "", err
	}
	var content strings.Builder
	for _, r := range records {
		same, err := store.Load(ctx, r.Definition.Name)
		if err != nil || same.Nonce != r.Nonce {
			return "", fmt.Errorf("%q is listed and not loaded: %v", r.Definition.Name, err)
		}
		fmt.Fprintf(&content, "%s=%d ", r.Definition.Name, r.Next)
	}
	if len(records) > 0 {
		block, _, err := seqtest.Allocate(ctx, store, records[len(records)/2], 10)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&content, "block from %d", block.First)
	}
	return content.String(), nil
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
// leaves it as it is, or finds in it every sequence where it stood.
func TestDamagedFileIsRefusedOrWhole(t *testing.T) {
	rounds := 60
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		rounds = 2000
	}
	content, old := grown(t)
	child := &prober{t: t}
	defer child.stop()
	path := filepath.Join(t.TempDir(), "tallystick.db")
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

// grown returns the content of a file with a few hundred sequences, all of
// which have moved, and what it was before the last hundred writes.
func grown(t *testing.T) (content, old []byte) {
	path := file(t)
	store := open(t, path)
	var batch []sequence.Record
	for i := range 200 {
		batch = append(batch, record(t, fmt.Sprintf("s%03d", i)))
	}
	if err := errors.Join(store.Create(t.Context(), batch)...); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if i == 100 {
			old = contentAt(t, path)
		}
		if _, _, err := seqtest.Allocate(t.Context(), store, batch[i*77%200], int64(1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return contentAt(t, path), old
}

func contentAt(t *testing.T, path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestOlderMetaPageIsNotGoneBackTo: bbolt would, where the newer of the two is
// damaged, and hand the last block out again.
func TestOlderMetaPageIsNotGoneBackTo(t *testing.T) {
	content, _ := grown(t)
	for n := range 2 {
		damaged := bytes.Clone(content)
		damaged[n*page+70]++ // its transaction
		path := file(t)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "damaged", fmt.Sprintf("meta page %d", n))
	}
}

// TestMissingAndOldRecordsAreNoticed changes whole records behind the store's
// back: no checksum of a record can tell.
func TestMissingAndOldRecordsAreNoticed(t *testing.T) {
	for name, change := range map[string]func(*bolt.Bucket, []byte) error{
		"missing": func(items *bolt.Bucket, _ []byte) error { return items.Delete([]byte("orders")) },
		"old":     func(items *bolt.Bucket, line []byte) error { return items.Put([]byte("orders"), line) },
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			store := open(t, path)
			r := create(t, store, "orders")
			create(t, store, "other")
			old := lineOf(t, store, path, "orders")
			store = open(t, path)
			if _, _, err := seqtest.Allocate(t.Context(), store, r, 10); err != nil {
				t.Fatal(err)
			}
			store.Close()
			edit(t, path, func(tx *bolt.Tx) error { return change(tx.Bucket([]byte("sequences")), old) })
			refused(t, path, "damaged", "missing, or older")
		})
	}
}

// lineOf closes a store and returns a record's line.
func lineOf(t *testing.T, store *seqbolt.Store, path, name string) (line []byte) {
	t.Helper()
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error {
		line = bytes.Clone(tx.Bucket([]byte("sequences")).Get([]byte(name)))
		return nil
	})
	return line
}

func TestFileWithoutCensusGetsOne(t *testing.T) {
	path := file(t)
	store := open(t, path)
	create(t, store, "orders")
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error { // as the first format was
		meta := tx.Bucket([]byte("tallystick"))
		return errors.Join(meta.Delete([]byte("census")), meta.Put([]byte("format"), []byte("1")))
	})
	store = open(t, path)
	create(t, store, "other")
	store.Close()
	store = open(t, path)
	if records, _, _, err := store.List(t.Context(), "", "", 9); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("sequences")).Delete([]byte("orders")) })
	refused(t, path, "damaged", "missing")
}
