package seqbolt_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
)

// Sequences without a server, in a file of the application's own.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	defer os.Chdir(filepath.Dir(dir))
	take := func(ctx context.Context) error {
		store, err := seqbolt.Open("sequence.db", seqbolt.Options{})
		if err != nil {
			return err
		}
		defer store.Close()
		service := sequence.NewService(store, sequence.ServiceOptions{})
		defer service.Close(ctx) // gives unused values back
		client := sequence.NewClient(service, sequence.ClientOptions{})
		defer client.Close(ctx)
		id, err := client.Next(ctx, "orders_seq")
		if err != nil {
			return err
		}
		fmt.Println(id)
		return nil
	}
	fmt.Println(take(context.Background()))
	// Output:
	// sequence: sequence "orders_seq" does not exist (create it with `tallystick seq create`)
}
