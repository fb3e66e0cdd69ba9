package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

// A longestWrite is the longest write transaction of the databases it watches, from
// its first statement to the answer to its commit.
type longestWrite struct{ ns atomic.Int64 }

func (l *longestWrite) reset()             { l.ns.Store(0) }
func (l *longestWrite) get() time.Duration { return time.Duration(l.ns.Load()) }

func (l *longestWrite) watch(db couponsql.Database) couponsql.Database {
	return watchedDatabase{db, l}
}

// A watchedDatabase times its write transactions.
type watchedDatabase struct {
	couponsql.Database
	longest *longestWrite
}

func (d watchedDatabase) Write(ctx context.Context, fn func(shard.Conn) error) error {
	var begin time.Time
	err := d.Database.Write(ctx, func(c shard.Conn) error {
		begin = time.Now() // of the last one, if a deadlock ended others
		return fn(c)
	})
	if begin.IsZero() {
		return err
	}
	took := int64(time.Since(begin))
	for old := d.longest.ns.Load(); took > old && !d.longest.ns.CompareAndSwap(old, took); {
		old = d.longest.ns.Load()
	}
	return err
}

// logged is what the server's binary log says about transactions.
type logged struct {
	most   int   // rows that one changed, of all tables
	issued int64 // rows of coupons, of those that wrote a chunk too
}

// newBinlog begins a new file of the server's binary log and returns its name.
func (w *couponWorld) newBinlog(t *testing.T) string {
	t.Helper()
	if _, err := w.plain.ExecContext(t.Context(), "flush binary logs"); err != nil {
		t.Fatal(err)
	}
	files := w.binlogs(t)
	return files[len(files)-1]
}

func (w *couponWorld) binlogs(t *testing.T) (files []string) {
	t.Helper()
	rows, err := w.plain.QueryContext(t.Context(), "show binary logs")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return files
}

// transactionsSince counts what transactions changed since a file of the binary log
// was begun, by the server's own tool.
func (w *couponWorld) transactionsSince(t *testing.T, file string) logged {
	t.Helper()
	end := w.newBinlog(t)
	host, port, err := net.SplitHostPort(w.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--no-defaults", "--read-from-remote-server", "--base64-output=decode-rows", "--verbose", "-h", host, "-P", port, "-u", "root"}
	for _, f := range w.binlogs(t) {
		if f >= file && f < end {
			args = append(args, f)
		}
	}
	cmd := exec.CommandContext(t.Context(), "mariadb-binlog", args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	var l logged
	l.read(lines)
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatal(err, lines.Err(), said.String())
	}
	return l
}

// read counts the rows of each transaction. A row begins with a line like
// "### UPDATE `shard0`.`coupon_03`".
func (l *logged) read(lines *bufio.Scanner) {
	var rows int
	var coupons int64
	chunk := false
	for lines.Scan() {
		line := lines.Bytes()
		if row, ok := bytes.CutPrefix(line, []byte("### ")); ok && isRow(row) {
			rows++
			switch {
			case bytes.Contains(row, []byte("`coupon_")):
				coupons++
			case bytes.Contains(row, []byte("`chunk_")):
				chunk = true
			}
		}
		if !bytes.HasPrefix(line, []byte("COMMIT")) {
			continue
		}
		l.most = max(l.most, rows)
		if chunk {
			l.issued += coupons
		}
		rows, coupons, chunk = 0, 0, false
	}
}

func isRow(text []byte) bool {
	for _, verb := range []string{"INSERT INTO `", "UPDATE `", "DELETE FROM `"} {
		if bytes.HasPrefix(text, []byte(verb)) {
			return true
		}
	}
	return false
}

// rowsByShard returns how many coupons of the order each shard has.
func (w *orderWorld) rowsByShard(t *testing.T) (rows []int64) {
	t.Helper()
	for s := range shard.Count {
		var n int64
		text := fmt.Sprintf("select count(*) from shard%d.coupon_%02d where json_value(body, '$.order') = ?", s/shardsPerDatabase, s)
		if err := w.plain.QueryRowContext(t.Context(), text, w.order).Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, n)
	}
	return rows
}
