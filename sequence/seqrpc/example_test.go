package seqrpc_test

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// An application asks for a value where it asked its database before.
func Example() {
	insert := func(ctx context.Context) error {
		servers, err := seqrpc.Dial("http://127.0.0.1:7070", seqrpc.Options{})
		if err != nil {
			return err
		}
		client := sequence.NewClient(servers, sequence.ClientOptions{})
		defer client.Close(ctx) // gives unused values back

		id, err := client.Next(ctx, "orders_seq") // was: SELECT nextval('orders_seq')
		if err != nil {
			return err
		}
		fmt.Println(id)
		return nil
	}
	_ = insert
}

// Several servers, a token, warming up, and more than one value at a time.
func ExampleDial() {
	insert := func(ctx context.Context, token string) error {
		servers, err := seqrpc.Dial("http://10.0.0.1:7070,http://10.0.0.2:7070", seqrpc.Options{Token: token})
		if err != nil {
			return err
		}
		client := sequence.NewClient(servers, sequence.ClientOptions{})
		defer client.Close(ctx) // gives unused values back

		if err := client.Warm(ctx, "orders_seq", "invoices_seq"); err != nil { // before traffic comes
			return err
		}
		id, err := client.Next(ctx, "orders_seq")
		orders := client.Sequence("orders_seq") // saves the look-up by name
		id, err = orders.Next(ctx)
		ids, err := orders.NextN(ctx, 1000) // all or none, in order
		if err != nil {
			return err
		}
		fmt.Println(id, len(ids))
		return nil
	}
	_ = insert
}
