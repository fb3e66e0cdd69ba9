package seqrpc_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// A server and an application that takes values from it.
func Example() {
	service := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	mux := http.NewServeMux()
	mux.Handle(seqrpc.Handler(service))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()

	ctx := context.Background()
	remote, err := seqrpc.Dial(server.URL, seqrpc.Options{})
	if err != nil {
		panic(err)
	}
	defer remote.Close()
	_, err = remote.Create(ctx, sequence.CreateRequest{Specs: []sequence.Spec{{Name: "orders_seq", Start: new(int64(1001))}}})
	if err != nil {
		panic(err)
	}
	client := sequence.NewClient(remote, sequence.ClientOptions{})
	defer client.Close(ctx)
	for range 3 {
		id, err := client.Next(ctx, "orders_seq")
		fmt.Println(id, err)
	}
	_, err = client.Next(ctx, "unknown_seq")
	fmt.Println(err)
	// Output:
	// 1001 <nil>
	// 1002 <nil>
	// 1003 <nil>
	// sequence: sequence "unknown_seq" does not exist (`tallystick seq list` shows which there are, `tallystick seq create` makes one)
}

func BenchmarkLease(b *testing.B) {
	for _, count := range []int64{1, 500} {
		b.Run(fmt.Sprintf("%d values", count), func(b *testing.B) {
			service := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
			if _, err := service.Create(b.Context(), sequence.CreateRequest{Specs: []sequence.Spec{{Name: "a"}}}); err != nil {
				b.Fatal(err)
			}
			c := dial(b, serve(b, service).URL)
			req := sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "a", Count: count}}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Lease(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
