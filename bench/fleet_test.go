package bench

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// A server is a running `tallystick serve`.
type server struct {
	*realtest.Process
	URL string
}

// startServer runs the program with args, listening on a free port; without
// coupons, unless args want them.
func startServer(t testing.TB, args ...string) server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address := realtest.FreeAddr(t)
	url := "http://" + address
	return server{URL: url, Process: realtest.Start(t, realtest.Command{
		Name: "tallystick", Path: path,
		Args: append([]string{"serve", "--listen", address, "--data", t.TempDir(), "--coupons", "off"}, args...),
		Env:  []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"},
		Ready: func() error {
			resp, err := http.Get(url + "/readyz")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("readyz: %s", resp.Status)
			}
			return nil
		},
	})}
}

// onDynamo returns the flags that point a server at a table.
func onDynamo(endpoint string) []string {
	return []string{"--store", "dynamodb", "--dynamodb-table", "sequences", "--dynamodb-region", "us-east-1",
		"--dynamodb-endpoint", endpoint, "--dynamodb-create"}
}

func dial(t testing.TB, url string) *seqrpc.Client {
	t.Helper()
	c, err := seqrpc.Dial(url, seqrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
