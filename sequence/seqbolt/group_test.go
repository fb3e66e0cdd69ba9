package seqbolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

func TestClosedStoreSaysSo(t *testing.T) {
	store := open(t, file(t))
	create(t, store, "orders")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, load := store.Load(t.Context(), "orders")
	_, advance := store.Advance(t.Context(), sequence.Advance{Name: "orders"})
	for op, err := range map[string]error{"load": load, "advance": advance, "bump": store.Bump(t.Context())} {
		if !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("%s = %v, want ErrUnavailable and ErrClosed", op, err)
		}
	}
}

func TestCloseUnderLoadLosesNoWriteThatReturned(t *testing.T) {
	path := file(t)
	store := open(t, path)
	r := create(t, store, "orders")
	var mu sync.Mutex
	var wg sync.WaitGroup
	last := r.Next
	written := make(chan struct{}, 1000)
	for range 8 {
		wg.Go(func() {
			seen, err := r, error(nil)
			for err == nil {
				if _, seen, err = seqtest.Allocate(context.Background(), store, seen, 1); err == nil {
					mu.Lock()
					last = max(last, seen.Next)
					mu.Unlock()
					select {
					case written <- struct{}{}:
					default:
					}
				}
			}
			if !errors.Is(err, sequence.ErrClosed) {
				t.Errorf("error = %v, want ErrClosed", err)
			}
		})
	}
	for range 20 {
		<-written
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	got, err := open(t, path).Load(t.Context(), "orders")
	if err != nil || got.Next != last {
		t.Fatalf("next = %d, %v, want %d", got.Next, err, last)
	}
}

func TestReplacedFileFailsTheGeneration(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			store := open(t, path)
			if _, err := store.Generation(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Generation(t.Context()); !errors.Is(err, sequence.ErrPrecondition) {
				t.Fatalf("error = %v, want ErrPrecondition", err)
			}
		})
	}
}

func TestAdoptRaisesTheGeneration(t *testing.T) {
	store := open(t, file(t))
	if err := store.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := store.Generation(t.Context()); err != nil || g != 1 {
		t.Fatalf("generation = %d, %v, want 1", g, err)
	}
}

func BenchmarkCreate(b *testing.B) {
	const n = 10_000
	b.Run(fmt.Sprint(n), func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			store := open(b, file(b))
			batch := make([]sequence.Record, n)
			for i := range batch {
				batch[i] = record(b, fmt.Sprintf("s%d", i))
			}
			b.StartTimer()
			if err := errors.Join(store.Create(b.Context(), batch)...); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	path := file(b)
	store := open(b, path)
	batch := make([]sequence.Record, 10_000)
	for i := range batch {
		batch[i] = record(b, fmt.Sprintf("s%d", i))
	}
	if err := errors.Join(errors.Join(store.Create(b.Context(), batch)...), store.Close()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		store, err := seqbolt.Open(path, seqbolt.Options{})
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
}

// BenchmarkSwap is one write per operation, by 1 and by 64 goroutines, each on
// its own sequence.
func BenchmarkSwap(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			store := open(b, file(b))
			records := make([]sequence.Record, writers)
			for i := range records {
				records[i] = create(b, store, fmt.Sprintf("s%d", i))
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, r := range records {
				wg.Go(func() {
					for range b.N / writers {
						next := r
						next.Nonce = sequence.NewNonce()
						if _, err := store.Swap(b.Context(), r.Nonce, next); err != nil {
							b.Errorf("%d: %v", i, err)
							return
						}
						r = next
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	store := open(b, file(b))
	create(b, store, "orders")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.Load(b.Context(), "orders"); err != nil {
			b.Fatal(err)
		}
	}
}
