package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// coupons are servers of coupons, each with a client, and their databases as this
// process has them open; nil if they are embedded.
type coupons struct {
	servers []server
	clients []*couponrpc.Client
	direct  *couponsql.Platform
}

// embeddedCoupons starts one server that keeps coupons in its data folder.
func embeddedCoupons(t *testing.T) *coupons {
	c := &coupons{}
	c.start(t, "--coupons", "embedded")
	return c
}

// mariadbCoupons starts servers on one MariaDB with eight databases for shards,
// with sequences in one table.
func mariadbCoupons(t *testing.T, servers int) *coupons {
	db := realtest.MariaDB(t, "innodb-file-per-table=0")
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: db.CreateDatabase("control")}, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	text := fmt.Sprintf("control: %q\nshards:\n", o.Control.At)
	for i := range 8 {
		s := couponsql.Source{Name: fmt.Sprint("db", i)}
		s.At = db.CreateDatabase(s.Name)
		o.Shards = append(o.Shards, s)
		text += fmt.Sprintf("  - {name: %s, dsn: %q}\n", s.Name, s.At)
	}
	text += "check_keys:\n  - {id: k1, created: 2026-01-01T00:00:00Z, secret: \"00112233445566778899aabbccddeeff\"}\n"
	file := filepath.Join(t.TempDir(), "coupons.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	c := &coupons{}
	var err error
	if c.direct, err = couponsql.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.direct.Close(); err != nil {
			t.Error(err)
		}
	})
	sequences := onDynamo(realtest.DynaliteURL(t))
	for range servers {
		c.start(t, append([]string{"--coupons", file}, sequences...)...)
	}
	return c
}

func (c *coupons) start(t *testing.T, args ...string) {
	t.Helper()
	s := startServer(t, args...)
	client, err := couponrpc.Dial(s.URL, couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	c.servers, c.clients = append(c.servers, s), append(c.clients, client)
}

// campaign makes a campaign with all its coupons.
func (c *coupons) campaign(t *testing.T, total int64, limit int) coupon.Campaign {
	t.Helper()
	s := c.clients[0]
	made, err := s.CreateCampaign(t.Context(), coupon.Campaign{
		Name: "bench", Total: total, PerUserLimit: limit, TimeZone: "UTC", ValidDays: 30, Value: coupon.Amount{Minor: 500, Currency: "EUR"},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	op, err := s.Generate(t.Context(), made.ID)
	for err == nil && !op.Done {
		time.Sleep(20 * time.Millisecond)
		op, err = s.Operation(t.Context(), op.ID)
	}
	if err != nil || op.Succeeded != total {
		t.Fatalf("%+v, %v", op, err)
	}
	return made
}

// couponCalls are the calls of a server.
type couponCalls struct{ *couponrpc.Client }

func ref(id coupon.ID) couponrpc.Ref { return couponrpc.Ref{ID: int64(id)} }

func (c couponCalls) Bind(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return c.Client.Bind(ctx, ref(id), call)
}

func (c couponCalls) Reserve(ctx context.Context, id coupon.ID, call coupon.Call, ttl time.Duration) (coupon.Result, error) {
	return c.Client.Reserve(ctx, ref(id), call, ttl)
}

func (c couponCalls) Release(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return c.Client.Release(ctx, ref(id), call)
}

func (c couponCalls) Redeem(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return c.Client.Redeem(ctx, ref(id), call)
}

func (c couponCalls) Get(ctx context.Context, id coupon.ID) (coupon.Result, error) {
	got, err := c.Client.Get(ctx, ref(id), "")
	return coupon.Result{Coupon: got}, err
}
