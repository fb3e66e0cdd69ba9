package coupon_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// checkKey returns a key whose secret is 32 times the byte.
func checkKey(t testing.TB, id string, day int, secret byte) coupon.CheckKey {
	t.Helper()
	key, err := coupon.NewCheckKey(id, time.Date(2024, 1, day, 0, 0, 0, 0, time.UTC), bytes.Repeat([]byte{secret}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newCodes(t testing.TB, keys ...coupon.CheckKey) *coupon.Codes {
	t.Helper()
	codes, err := coupon.NewCodes(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// TestCodeVectors has what another implementation needs to check its own.
func TestCodeVectors(t *testing.T) {
	secrets := []string{
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		"ffffffffffffffffffffffffffffffff",
	}
	randoms := []string{
		"00000000000000000000000000", "1f1f1f1f1f1f1f1f1f1f1f1f1f", "000102030405060708090a0b0c",
		"0d0e0f10111213141516171819", "1a1b1c1d1e1f20406080a0c0e0", "ffeeddccbbaa99887766554433",
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "secret\trandom bytes\tshard\tcode")
	for _, secret := range secrets {
		codes := newCodes(t, hexKey(t, secret))
		for i, random := range randoms {
			for _, s := range []shard.Shard{0, shard.Shard(5*i + 6)} {
				code := codes.FromRandom([13]byte(unhex(t, random)), s)
				if code.Shard() != s {
					t.Errorf("%s is of shard %d, want %d", code, code.Shard(), s)
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", secret, random, s, code)
			}
		}
	}
	w.Flush()
	golden(t, "codes.golden", b.String())
}

func hexKey(t *testing.T, secret string) coupon.CheckKey {
	t.Helper()
	key, err := coupon.NewCheckKey("vectors", time.Unix(1, 0), unhex(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewCodesAreRandomAndCarryTheirShard(t *testing.T) {
	codes := newCodes(t, checkKey(t, "a", 1, 'a'))
	var shown [16][32]int // how often each symbol stands at each place
	seen := map[coupon.Code]bool{}
	const n = 32_000
	for i := range n {
		s := shard.Shard(i % shard.Count)
		code := codes.New(s)
		if code.Shard() != s || code.Bucket().Shard() != s {
			t.Fatalf("%s is of shard %d, want %d", code, code.Shard(), s)
		}
		if read, err := codes.Parse(code.String()); err != nil || read != code {
			t.Fatalf("%s is read as %s, %v", code, read, err)
		}
		if stored, err := coupon.ParseStored(code.Symbols()); err != nil || stored != code {
			t.Fatalf("%s is read from the store as %s, %v", code, stored, err)
		}
		seen[code] = true
		for place, symbol := range code.Symbols() {
			shown[place][strings.IndexRune(crockford, symbol)]++
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d codes differ", len(seen), n)
	}
	for place, counts := range shown { // by chance, once in 60,000 runs
		if c := chiSquare(counts[:]); c > 84 {
			t.Errorf("symbols at place %d have a chi-square of %.0f: %v", place, c, counts)
		}
	}
}

func TestParseReadsWhatPeopleType(t *testing.T) {
	codes := newCodes(t, checkKey(t, "a", 1, 'a'))
	var code coupon.Code // with both digits that letters look like
	for !strings.Contains(code.Symbols(), "0") || !strings.Contains(code.Symbols(), "1") {
		code = codes.New(7)
	}
	for name, text := range map[string]string{
		"as shown":      code.String(),
		"as stored":     code.Symbols(),
		"small letters": strings.ToLower(code.String()),
		"O for 0":       strings.ReplaceAll(code.String(), "0", "O"),
		"o for 0":       strings.ReplaceAll(code.String(), "0", "o"),
		"I for 1":       strings.ReplaceAll(code.String(), "1", "I"),
		"l for 1":       strings.ReplaceAll(code.String(), "1", "l"),
		"L for 1":       strings.ReplaceAll(code.String(), "1", "L"),
		"i for 1":       strings.ReplaceAll(code.String(), "1", "i"),
		"spaces":        "  " + strings.ReplaceAll(code.String(), "-", " ") + " ",
		"odd hyphens":   "-" + strings.Join(strings.Split(code.Symbols(), ""), "--") + "-",
	} {
		if got, err := codes.Parse(text); err != nil || got != code {
			t.Errorf("%s: %q is read as %v, %v", name, text, got, err)
		}
	}
}

func TestParseRefusesOtherForms(t *testing.T) {
	codes := newCodes(t, checkKey(t, "a", 1, 'a'))
	symbols := codes.New(7).Symbols()
	for name, text := range map[string]string{
		"nothing":           "",
		"spaces":            "                ",
		"15 symbols":        symbols[1:],
		"17 symbols":        symbols + "0",
		"code twice":        symbols + symbols,
		"letter U":          "U" + symbols[1:],
		"other hyphen":      symbols[:8] + "\u2010" + symbols[8:],
		"tab":               symbols + "\t",
		"NUL":               symbols + "\x00",
		"full-width digit":  "０" + symbols[1:],
		"Kelvin sign for K": "\u212a" + symbols[1:],
	} {
		if got, err := codes.Parse(text); !errors.Is(err, coupon.ErrMalformedCode) || !got.IsZero() {
			t.Errorf("%s: %q is read as %v, %v", name, text, got, err)
		}
	}
}

// TestTypingErrorsAndGuessesAreRefused measures how many are, with one to three
// live keys.
func TestTypingErrorsAndGuessesAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	keys := []coupon.CheckKey{checkKey(t, "a", 1, 'a'), checkKey(t, "b", 2, 'b'), checkKey(t, "c", 3, 'c')}
	for n := 1; n <= len(keys); n++ {
		codes := newCodes(t, keys[:n]...)
		for name, spoil := range map[string]func(code []byte) bool{
			"substitutions":  func(code []byte) bool { return substitute(rng, code) },
			"transpositions": func(code []byte) bool { return transpose(rng, code) },
			"guesses":        func(code []byte) bool { return guess(rng, code) },
		} {
			t.Run(fmt.Sprintf("%s with keys: %d", name, n), func(t *testing.T) {
				tried, accepted := 0, 0
				for tried < 40_000 {
					code := codes.New(shard.Shard(rng.IntN(shard.Count)))
					spoiled := []byte(code.Symbols())
					if !spoil(spoiled) {
						continue
					}
					tried++
					if _, err := codes.Parse(string(spoiled)); err == nil {
						accepted++
					}
				}
				t.Logf("accepted %d of %d, %.2f of 1,024", accepted, tried, 1024*float64(accepted)/float64(tried))
				// n of 1,024 are by chance, fewer where check symbols are spoiled.
				if mean := float64(n*tried) / 1024; float64(accepted) > mean+6*math.Sqrt(mean) {
					t.Errorf("accepted %d of %d, want about %.0f at most", accepted, tried, mean)
				}
			})
		}
	}
}

// substitute changes one symbol.
func substitute(rng *rand.Rand, code []byte) bool {
	i := rng.IntN(len(code))
	was := code[i]
	code[i] = crockford[rng.IntN(len(crockford))]
	return code[i] != was
}

// transpose exchanges two neighbours that differ.
func transpose(rng *rand.Rand, code []byte) bool {
	i := rng.IntN(len(code) - 1)
	code[i], code[i+1] = code[i+1], code[i]
	return code[i] != code[i+1]
}

// guess makes all of it up.
func guess(rng *rand.Rand, code []byte) bool {
	for i := range code {
		code[i] = crockford[rng.IntN(len(crockford))]
	}
	return true
}

func TestEverySubstitutedCheckSymbolIsRefused(t *testing.T) {
	codes := newCodes(t, checkKey(t, "a", 1, 'a'))
	for range 100 {
		code := codes.New(3)
		for place := 14; place < 16; place++ {
			for _, symbol := range []byte(crockford) {
				spoiled := []byte(code.Symbols())
				spoiled[place] = symbol
				if got, err := codes.Parse(string(spoiled)); (err == nil) != (got == code) {
					t.Fatalf("%s is read as %v, %v", spoiled, got, err)
				}
			}
		}
	}
}

func TestKeysChange(t *testing.T) {
	a, b, c := checkKey(t, "a", 1, 'a'), checkKey(t, "b", 2, 'b'), checkKey(t, "c", 3, 'c')
	old := newCodes(t, a)
	all := newCodes(t, b, c, a)
	if all.Newest().ID() != "c" || all.Newest().Created() != c.Created() {
		t.Errorf("the newest is %v", all.Newest())
	}
	retired := newCodes(t, b, c)
	lost := 0
	for range 100 {
		fresh, printed := all.New(9), old.New(9)
		if _, err := all.Parse(printed.String()); err != nil {
			t.Fatalf("a code of the oldest live key is refused: %v", err)
		}
		if _, err := all.Parse(fresh.String()); err != nil {
			t.Fatalf("a new code is refused: %v", err)
		}
		if _, err := newCodes(t, c).Parse(fresh.String()); err != nil {
			t.Fatalf("a new code was not made with the newest key: %v", err)
		}
		if _, err := retired.Parse(printed.String()); err != nil {
			lost++
		}
		if stored, err := coupon.ParseStored(printed.Symbols()); err != nil || stored.Shard() != 9 {
			t.Fatalf("a stored code is not read without its key: %v", err)
		}
	}
	if lost < 98 { // by chance 2 of 1,024 pass
		t.Errorf("only %d of 100 codes of a retired key are refused", lost)
	}
}

func TestNewCodesRefuses(t *testing.T) {
	a := checkKey(t, "a", 1, 'a')
	for name, keys := range map[string][]coupon.CheckKey{
		"no key":       nil,
		"four keys":    {a, checkKey(t, "b", 2, 'b'), checkKey(t, "c", 3, 'c'), checkKey(t, "d", 4, 'd')},
		"same id":      {a, checkKey(t, "a", 2, 'b')},
		"same time":    {a, checkKey(t, "b", 1, 'b')},
		"no real key":  {{}},
		"one not real": {a, {}},
	} {
		if _, err := coupon.NewCodes(keys...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, c := range map[string]struct {
		id     string
		at     time.Time
		secret int
	}{
		"no id":            {"", time.Unix(1, 0), 32},
		"no time":          {"a", time.Time{}, 32},
		"15 bytes":         {"a", time.Unix(1, 0), 15},
		"65 bytes":         {"a", time.Unix(1, 0), 65},
		"no secret at all": {"a", time.Unix(1, 0), 0},
	} {
		if _, err := coupon.NewCheckKey(c.id, c.at, make([]byte, c.secret)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNothingPrintsASecret prints keys, and what holds them, in every way there
// is.
func TestNothingPrintsASecret(t *testing.T) {
	const secret = "correct horse battery staple"
	key, err := coupon.NewCheckKey("2024a", time.Unix(1, 0), []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	codes := newCodes(t, key)
	var out bytes.Buffer
	for _, v := range []any{key, &key, []coupon.CheckKey{key}, codes, *codes, struct{ hidden coupon.CheckKey }{key}, struct{ hidden coupon.Codes }{*codes}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		text, _ := json.Marshal(v)
		out.Write(text)
		slog.New(slog.NewTextHandler(&out, nil)).Info("test", "value", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("test", "value", v)
	}
	var numbers []string
	for _, b := range []byte(secret)[:4] {
		numbers = append(numbers, fmt.Sprint(b))
	}
	for _, form := range []string{secret[:7], hex.EncodeToString([]byte(secret[:4])), strings.Join(numbers, " "), strings.Join(numbers, ", ")} {
		if strings.Contains(strings.ToLower(out.String()), form) {
			t.Errorf("%q was printed", form)
		}
	}
	if !strings.Contains(out.String(), "check key 2024a") {
		t.Error("the key's id was not printed")
	}
}

func TestLogsShowTheEndOfACodeOnly(t *testing.T) {
	code := newCodes(t, checkKey(t, "a", 1, 'a')).New(1)
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("test", "code", code, "none", coupon.Code{})
	if strings.Contains(out.String(), code.String()[:4]) || !strings.Contains(out.String(), "code=..."+code.Symbols()[12:]) {
		t.Errorf("logged %s", &out)
	}
	if (coupon.Code{}).String() != "" || !(coupon.Code{}).IsZero() || code.IsZero() {
		t.Error("the zero code is not empty")
	}
}

func FuzzParse(f *testing.F) {
	codes := newCodes(f, checkKey(f, "a", 1, 'a'))
	good := codes.FromRandom([13]byte{}, 17)
	f.Add(good.String())
	f.Add(strings.ToLower(good.Symbols()))
	f.Add("oOiI lL10-0000-0000")
	f.Add(good.Symbols() + "0")
	f.Add("\xff\xfe-")
	f.Fuzz(func(t *testing.T, text string) {
		stored, err := coupon.ParseStored(text)
		if (err == nil) == stored.IsZero() {
			t.Fatalf("%q is read as %v, %v", text, stored, err)
		}
		code, err := codes.Parse(text)
		if err != nil {
			if !errors.Is(err, coupon.ErrMalformedCode) || !code.IsZero() {
				t.Fatalf("%q is read as %v, %v", text, code, err)
			}
			return
		}
		if code != stored || code.Shard() >= shard.Count {
			t.Fatalf("%q is read as %v and stored as %v", text, code, stored)
		}
		if again, err := codes.Parse(code.String()); err != nil || again != code {
			t.Fatalf("%v is read as %v, %v", code, again, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	codes := newCodes(b, checkKey(b, "a", 1, 'a'), checkKey(b, "b", 2, 'b'), checkKey(b, "c", 3, 'c'))
	text := codes.New(3).String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codes.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// chiSquare returns how unevenly the counts are spread; about as many as there
// are where they are random.
func chiSquare(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	mean := float64(total) / float64(len(counts))
	var sum float64
	for _, n := range counts {
		sum += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	return sum
}
