package sequence_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// benchClient returns a client of n sequences with large leases, warmed.
func benchClient(b *testing.B, n int, leases int64) (*sequence.Client, []string) {
	b.Helper()
	svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	names := make([]string, n)
	specs := make([]sequence.Spec, n)
	for i := range names {
		names[i] = fmt.Sprintf("bench_%d_seq", i)
		specs[i] = sequence.Spec{Name: names[i], ClientCacheMin: &leases, ClientCacheMax: &leases}
	}
	if _, err := svc.Create(b.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		b.Fatal(err)
	}
	c := sequence.NewClient(svc, sequence.ClientOptions{})
	if err := c.Warm(b.Context(), names...); err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		c.Sequence(name)
	}
	return c, names
}

func BenchmarkNext(b *testing.B) {
	ctx := context.Background()
	b.Run("atomic add", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
		}
	})
	for _, leases := range []int64{500, 65_536} {
		b.Run(fmt.Sprintf("handle, leases of %d", leases), func(b *testing.B) {
			c, names := benchClient(b, 1, leases)
			s := c.Sequence(names[0])
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("by name, 10000 names", func(b *testing.B) {
		c, names := benchClient(b, 10_000, 65_536)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := c.Next(ctx, names[i]); err != nil {
				b.Fatal(err)
			}
			if i++; i == len(names) {
				i = 0
			}
		}
	})
}

func BenchmarkNextParallel(b *testing.B) {
	ctx := context.Background()
	b.Run("atomic add", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("handle", func(b *testing.B) {
		c, names := benchClient(b, 1, 65_536)
		s := c.Sequence(names[0])
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Next(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
