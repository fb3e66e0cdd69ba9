package shard_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/shard"
)

// The vectors were computed by another program. If this fails, the code is
// wrong: rows are where the rule once put them.
func TestTextGoesToItsFrozenBucket(t *testing.T) {
	f, err := os.Open("testdata/buckets.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vectors := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var text string
		var bucket shard.Bucket
		var s shard.Shard
		if _, err := fmt.Sscan(lines.Text(), &text, &bucket, &s); err != nil {
			t.Fatal(lines.Text(), err)
		}
		key, err := hex.DecodeString(strings.TrimPrefix(text, "-"))
		if err != nil {
			t.Fatal(err)
		}
		if got := shard.Text(key).Bucket(); got != bucket || got.Shard() != s {
			t.Errorf("%q: bucket %d, shard %d; want %d, %d", key, got, got.Shard(), bucket, s)
		}
		vectors++
	}
	if vectors < 10 {
		t.Errorf("%d vectors", vectors)
	}
}

func TestShardOfAnIDIsTheIDMod32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Int64Range(1, 1<<63-1).Draw(t, "id")
		if got, want := shard.ID(id).Shard(), id%32; int64(got) != want {
			t.Fatalf("shard %d, want %d", got, want)
		}
		if got, want := shard.ID(id).Bucket(), id%1024; int64(got) != want {
			t.Fatalf("bucket %d, want %d", got, want)
		}
	})
}

func TestEveryKeyHasOneOf32Shards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, key := range []shard.Key{
			shard.ID(rapid.Int64().Draw(t, "any number")),
			shard.Text(rapid.String().Draw(t, "text")),
			shard.Shard(rapid.Uint8Range(0, 31).Draw(t, "shard")),
		} {
			if b := key.Bucket(); b >= shard.Buckets || b.Shard() >= shard.Count {
				t.Fatalf("%v: bucket %d, shard %d", key, b, b.Shard())
			}
		}
	})
}

func TestTextSpreadsEvenly(t *testing.T) {
	const perShard = 1000
	var counts [shard.Count]int
	for i := range shard.Count * perShard {
		counts[shard.Text(fmt.Sprintf("user-%d", i)).Bucket().Shard()]++
	}
	for s, n := range counts {
		if n < perShard*85/100 || n > perShard*115/100 { // 5 standard deviations
			t.Errorf("shard %d has %d of %d", s, n, perShard)
		}
	}
}

func TestAShardIsAKeyOfItself(t *testing.T) {
	for i, s := range shard.All() {
		if int(s) != i || s.Bucket().Shard() != s {
			t.Errorf("shard %d of All is %d and routes to %d", i, s, s.Bucket().Shard())
		}
	}
}

func TestParseIDReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := shard.ID(rapid.Int64Range(1, 1<<63-1).Draw(t, "id"))
		if got, err := shard.ParseID(id.String()); got != id || err != nil {
			t.Fatal(got, err)
		}
	})
	for _, text := range []string{"", "0", "-1", "+1", "01", " 1", "1 ", "1e3", "0x1", "１", "9223372036854775808"} {
		if id, err := shard.ParseID(text); err == nil {
			t.Errorf("%q is %d", text, id)
		}
	}
}
