package shardsql

import (
	"context"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/shard"
)

// A verdict says which shard's tables a text names.
type verdict struct {
	names int // 0: none; 1: those of shard; 2: of more than one
	shard int // 0 to 99
	word  string
}

// check returns why a statement must not run for the caller of ctx, or nil.
func (v verdict) check(ctx context.Context) error {
	if v.names == 0 {
		return nil
	}
	if v.names > 1 {
		return fmt.Errorf("%w: it names tables of several shards, one of them %s", shard.ErrUnrouted, v.word)
	}
	route, routed := shard.Route(ctx)
	switch {
	case !routed:
		return fmt.Errorf("%w: it names %s and did not come through a cluster", shard.ErrUnrouted, v.word)
	case int(route) != v.shard:
		return fmt.Errorf("%w: it names %s and is for shard %d", shard.ErrUnrouted, v.word, route)
	}
	return nil
}

// judge looks for words that end in an underscore and two digits. Quotes,
// comments and strings are not told apart: a value belongs into an argument, and
// what is refused without need is better than what slips through. It costs less
// than to look up what it said of the same text before.
func judge(text string) verdict {
	var v verdict
	for at := 0; v.names < 2; at++ {
		next := strings.IndexByte(text[at:], '_')
		if next < 0 {
			break
		}
		at += next
		s, is := suffix(text, at)
		if is && (v.names == 0 || s != v.shard) {
			v = verdict{names: v.names + 1, shard: s, word: text[wordBegin(text, at) : at+3]}
		}
	}
	return v
}

// suffix returns the number that the word with an underscore at i ends in right
// after it.
func suffix(text string, i int) (int, bool) {
	if i == 0 || !inWord[text[i-1]] || i+3 > len(text) || !isDigit(text[i+1]) || !isDigit(text[i+2]) {
		return 0, false
	}
	if i+3 < len(text) && inWord[text[i+3]] {
		return 0, false
	}
	return int(text[i+1]-'0')*10 + int(text[i+2]-'0'), true
}

func wordBegin(text string, i int) int {
	for i > 0 && inWord[text[i-1]] {
		i--
	}
	return i
}

// inWord tells what an unquoted name may consist of. Beyond ASCII that is
// everything.
var inWord = func() (in [256]bool) {
	for b := range in {
		c := byte(b)
		in[b] = 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) || c == '_' || c == '$' || c >= 0x80
	}
	return in
}()

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
