package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// walletUser is whose wallet it is.
const walletUser = "collector"

// walletDatabases is how many databases hold the shards, in their order.
const walletDatabases = 8

// walletSize is how large a wallet is.
type walletSize struct {
	coupons, ties int
	pageSize      int
	calls         int // of each kind that are timed
}

func walletSizes() walletSize {
	if full {
		return walletSize{coupons: 20_000, ties: 500, pageSize: 20, calls: 300}
	}
	return walletSize{coupons: 2_000, ties: 100, pageSize: 20, calls: 20}
}

// pages is how many pages the wallet has.
func (s walletSize) pages() int { return (s.coupons + s.pageSize - 1) / s.pageSize }

// A walletWorld is coupons in this process, one user's wallet and whatever moves on
// beside it.
type walletWorld struct {
	*coupontest.World
	walletSize
	platform *couponsql.Platform
	client   *couponrpc.Client // over the wire, to the same service
	relay    *coupon.Relay
	queue    *couponnats.Queue

	first time.Time       // no coupon ends before it
	begun []coupon.Coupon // those in the wallet before anything else happened, in its order
	held  heldCoupons
}

// walletMariaDB returns the databases of an empty MariaDB, which logs slow statements to
// a table.
func walletMariaDB(t *testing.T) (*realtest.MariaDBServer, couponsql.Options) {
	settings := []string{"slow-query-log=1", "long-query-time=100", "log-output=TABLE"}
	if full {
		settings = append(settings, "innodb-buffer-pool-size=1G", "innodb-log-file-size=256M")
	}
	server := realtest.MariaDB(t, settings...)
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: server.CreateDatabase("control")}, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	for i := range walletDatabases {
		name := fmt.Sprint("shard", i)
		o.Shards = append(o.Shards, couponsql.Source{Name: name, At: server.CreateDatabase(name)})
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	return server, o
}

// walletSQLite returns them as files.
func walletSQLite(t *testing.T) couponsql.Options {
	o := couponsql.Options{EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	o.Control, o.Shards = couponsql.Folder(t.TempDir(), walletDatabases)
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
	}
	return o
}

// newWalletWorld opens the databases and fills the wallet.
func newWalletWorld(t *testing.T, size walletSize, o couponsql.Options) *walletWorld {
	t.Helper()
	w := &walletWorld{walletSize: size, platform: openPlatform(t, o), first: time.Now().Add(24 * time.Hour).Truncate(time.Second)}
	var err error
	w.queue, err = couponnats.Open(t.Context(), couponnats.Options{Dir: t.TempDir(), Readers: []string{"wallet"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.queue.Close() })
	w.relay = coupon.NewRelay(couponsql.NewOutbox(w.platform.Cluster), w.queue, nil)
	w.World = coupontest.NewWorld(t, coupon.Announce(w.platform.Store, w.relay.Wake), w.platform.Control, nil, nil)
	w.client = w.serve(t)
	w.fill(t)
	return w
}

func openPlatform(t *testing.T, o couponsql.Options) *couponsql.Platform {
	t.Helper()
	p, err := couponsql.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// serve serves the service and returns a client of it.
func (w *walletWorld) serve(t *testing.T) *couponrpc.Client {
	t.Helper()
	handler, err := couponrpc.New(w.Service, couponrpc.Options{Parse: w.Codes.Parse})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(handler)
	h.Config.Protocols = new(http.Protocols)
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	h.Start()
	t.Cleanup(h.Close)
	c, err := couponrpc.Dial(h.URL, couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// end returns when the coupon at a place of the wallet ends: each a minute after the
// one before it, but for those in the middle, which end together.
func (s walletSize) end(i int) time.Duration {
	from := (s.coupons - s.ties) / 2
	if i > from && i < from+s.ties {
		i = from
	}
	return time.Duration(i) * time.Minute
}

// fill writes the wallet's coupons as flows would have written them, each with its
// ledger and event, with ids that rise in another order than ends, on all shards.
func (w *walletWorld) fill(t *testing.T) {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	ids := rand.Perm(w.coupons)
	var on [shard.Count][]coupon.Coupon
	for i := range w.coupons {
		id := coupon.ID(ids[i]+1)<<22 | coupon.ID(ids[i]%shard.Buckets) // of the epoch's first ms, before all that are minted
		c := coupon.Coupon{
			ID: id, Code: w.Codes.New(id.Shard()), Campaign: 1, Kind: coupon.FixedAmount, Value: coupon.Amount{Minor: 500, Currency: "EUR"},
			VoidPolicy: coupon.VoidPolicy{Kind: coupon.Restore}, Version: 1, Created: now, Updated: now,
			Valid: coupon.Window{From: now.Add(-time.Hour), Until: w.first.Add(w.end(i))},
		}
		on[id.Shard()] = append(on[id.Shard()], c)
	}
	for at := range on {
		for some := range slices.Chunk(on[at], 20) {
			w.put(t, some)
		}
	}
	w.forget(t)
	w.begun = w.held.all()
	slices.SortFunc(w.begun, byWallet)
}

// forget removes the events of the wallet's coupons, which it has.
func (w *walletWorld) forget(t *testing.T) {
	t.Helper()
	outbox := couponsql.NewOutbox(w.platform.Cluster)
	for _, at := range shard.All() {
		lease, _, err := outbox.Lease(t.Context(), at, "test", time.Millisecond)
		for n := 200; err == nil && n == 200; {
			var rows []coupon.OutboxRow
			if rows, err = outbox.Oldest(t.Context(), at, n); err == nil && len(rows) > 0 {
				err = outbox.Remove(t.Context(), at, lease, rows, time.Millisecond)
			}
			n = len(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// put writes coupons of one shard, and then into the wallet.
func (w *walletWorld) put(t *testing.T, coupons []coupon.Coupon) {
	t.Helper()
	stock := slices.Clone(coupons)
	for i := range stock {
		stock[i].Valid = coupon.Window{}
	}
	w.write(t, coupons[0].ID, func(tx coupon.Tx) error {
		if err := tx.Add(stock); err != nil {
			return err
		}
		for i := range coupons {
			c := &coupons[i]
			c.Version, c.Status, c.User, c.IssuedAt = 2, coupon.Issued, walletUser, c.Created
			if err := tx.Change(*c, coupon.Event{Coupon: c.ID, Version: 2, Type: coupon.WasIssued, At: c.Created, User: walletUser}); err != nil {
				return err
			}
		}
		return nil
	})
	w.write(t, shard.Text(walletUser), func(tx coupon.Tx) error {
		for _, c := range coupons {
			if err := tx.Keep(c); err != nil {
				return err
			}
		}
		return nil
	})
	w.held.add(coupons...)
}

// write writes, again where a database took too long for that.
func (w *walletWorld) write(t *testing.T, key shard.Key, fn func(coupon.Tx) error) {
	t.Helper()
	err := w.platform.Store.Write(t.Context(), key, fn)
	for try := 1; errors.Is(err, shard.ErrUnavailable) && try < 10; try++ {
		err = w.platform.Store.Write(t.Context(), key, fn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// move runs the relay and the projection until the returned function is called.
func (w *walletWorld) move(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- w.relay.Run(ctx) }()
	go func() { ended <- w.queue.Read(ctx, "wallet", coupon.NewProjector(w.platform.Store).Apply) }()
	return func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}
