package migdynamo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/migrate"
)

// BenchmarkExpect encodes rows and digests them, with JSON as its text and as a
// map; beside it Go's own decoding of the same JSON.
func BenchmarkExpect(b *testing.B) {
	sink, _ := newSink(b, migrate.Guarded)
	for name, asMap := range map[string]bool{"string": false, "map": true} {
		b.Run(name, func(b *testing.B) {
			r := row("k", 1, migrate.Field{Name: "data", Map: asMap, Value: migrate.Value{Kind: migrate.JSON, Text: benchJSON}})
			b.SetBytes(int64(len(benchJSON)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sink.Expect(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(benchJSON)))
		b.ReportAllocs()
		for b.Loop() {
			dec := json.NewDecoder(strings.NewReader(benchJSON))
			dec.UseNumber()
			var v any
			if err := dec.Decode(&v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
