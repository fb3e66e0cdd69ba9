package couponsql_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard/shardsql"
)

func platform(t *testing.T, o couponsql.Options) coupontest.Platform {
	t.Helper()
	o.EnsureFence, o.Fenced = shardsql.EnsureFence, shardsql.Fenced
	p, err := couponsql.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return coupontest.Platform{Store: p.Store, Control: p.Control}
}

func TestFlowsOnSQLite(t *testing.T) {
	control, shards := couponsql.Folder(t.TempDir(), 8)
	p := platform(t, couponsql.Options{Control: control, Shards: shards, Open: func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
	}})
	coupontest.TestFlows(t, [2]coupontest.Platform{p, p}) // the files are one process's, which has two services
}

func TestFlowsOnMariaDB(t *testing.T) {
	server := realtest.MariaDB(t)
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: server.CreateDatabase("control")}}
	for i := range 8 {
		name := fmt.Sprint("shard", i)
		o.Shards = append(o.Shards, couponsql.Source{Name: name, At: server.CreateDatabase(name)})
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	coupontest.TestFlows(t, [2]coupontest.Platform{platform(t, o), platform(t, o)})
}
