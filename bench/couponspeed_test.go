package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// couponCallers is how many call at the same time.
const couponCallers = 16

// A couponWorld is coupons in this process on a MariaDB of 8 databases.
type couponWorld struct {
	*coupontest.World
	server *realtest.MariaDBServer
	plain  *sql.DB // a ninth database, for what others would do

	mu      sync.Mutex
	claimed []coupon.Coupon
	serial  atomic.Int64 // of users who claim
	used    atomic.Int64 // coupons of others that are
	reads   atomic.Int64

	url  string
	http *http.Client
}

// newCouponWorld starts one whose databases are what the last argument makes of them,
// if there is one.
func newCouponWorld(t *testing.T, as ...func(couponsql.Database) couponsql.Database) *couponWorld {
	t.Helper()
	w := &couponWorld{server: realtest.MariaDB(t, "innodb-flush-log-at-trx-commit=1", "log-bin=bin", "sync-binlog=1", "binlog-format=ROW",
		"innodb-buffer-pool-size=2G", "innodb-log-file-size=512M", "innodb-file-per-table=0")}
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: w.server.CreateDatabase("control")}, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	for i := range 8 {
		name := fmt.Sprint("shard", i)
		o.Shards = append(o.Shards, couponsql.Source{Name: name, At: w.server.CreateDatabase(name)})
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		db, err := shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
		if err != nil || len(as) == 0 {
			return db, err
		}
		return as[0](db), nil
	}
	p, err := couponsql.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	w.World = coupontest.NewWorld(t, p.Store, p.Control, nil, nil)
	w.plain, err = sql.Open("mysql", w.server.CreateDatabase("plain")+"?interpolateParams=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.plain.Close() })
	w.plain.SetMaxOpenConns(couponCallers)
	w.plain.SetMaxIdleConns(couponCallers)
	return w
}

// plainRows fills the tables of what others would do.
func (w *couponWorld) plainRows(t *testing.T, n int) {
	t.Helper()
	for _, text := range []string{
		"create table pool (id bigint primary key, campaign bigint not null, status tinyint not null, user varchar(64) not null, key free (campaign, status, id)) engine=innodb",
		"create table coupon (id bigint primary key, status tinyint not null, order_no varchar(64) not null) engine=innodb",
		"create table ledger (coupon bigint not null, at bigint not null, order_no varchar(64) not null, primary key (coupon, at)) engine=innodb",
		"create table claim (id bigint primary key, user varchar(64) not null, key (user)) engine=innodb",
		"create table history (id bigint primary key, user varchar(64) not null) engine=innodb",
		"create table outbox (id bigint primary key, user varchar(64) not null) engine=innodb",
		"create table wallet (id bigint, user varchar(64) not null, primary key (user, id)) engine=innodb",
		fmt.Sprintf("insert into pool select seq, 1, 0, '' from seq_1_to_%d", n),
		fmt.Sprintf("insert into coupon select seq, 1, '' from seq_1_to_%d", n),
	} {
		if _, err := w.plain.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// past gives all tables that grow rows of before, n for each shard and as many in
// all for what others would do: a server recounts a table whenever it has grown by a
// tenth, which of an empty one is every few moments.
func (w *couponWorld) past(t *testing.T, n int) {
	t.Helper()
	texts := []string{
		fmt.Sprintf("insert into ledger select -seq, 1, '' from seq_1_to_%d", shard.Count*n),
	}
	for _, table := range []string{"claim", "history", "outbox", "wallet"} {
		texts = append(texts, fmt.Sprintf("insert into %s (id, user) select -seq, concat('past-', seq) from seq_1_to_%d", table, shard.Count*n))
	}
	for at := range shard.Count {
		on := func(table, columns, values string) {
			texts = append(texts, fmt.Sprintf("insert into shard%d.%s_%02d (%s) select %s from seq_1_to_%d", at/shardsPerDatabase, table, at, columns, values, n))
		}
		id := fmt.Sprintf("seq * 1024 + %d", at)
		on("ledger", "coupon_id, version, waiting, at, event", id+`, 2, 0, 1, '{"type":"CLAIMED","at":1}'`)
		on("claim", "user_id, campaign_id, request_no, number, coupon_id, done, at", "concat('past-', seq), 1, 'r', 1, "+id+", 1, 1")
		on("user_coupon", "user_id, coupon_id, valid_until, status, version, campaign_id, code, value_minor, currency, valid_from",
			"concat('past-', seq), "+id+", 1, 1, 2, 1, concat('P', lpad(seq, 15, '0')), 500, 'EUR', 0")
	}
	for _, text := range texts {
		if _, err := w.plain.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// claim claims for a user nobody had before.
func (w *couponWorld) claim(ctx context.Context, campaign int64) error {
	user := fmt.Sprint("user-", w.serial.Add(1))
	r, err := w.Claim(ctx, campaign, coupon.Call{User: user, Request: "r"})
	if err == nil {
		w.keep(r.Coupon)
	}
	return err
}

// errNoneLeft ends a round early.
var errNoneLeft = errors.New("no claimed coupon is left")

// keep remembers a claimed coupon, and last returns and forgets one.
func (w *couponWorld) keep(c coupon.Coupon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed = append(w.claimed, c)
}

func (w *couponWorld) last() (c coupon.Coupon, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.claimed)
	if n == 0 {
		return c, errNoneLeft
	}
	c, w.claimed = w.claimed[n-1], w.claimed[:n-1]
	return c, nil
}

// redeem redeems a coupon that was claimed.
func (w *couponWorld) redeem(ctx context.Context) error {
	c, err := w.last()
	if err != nil {
		return err
	}
	_, err = w.Redeem(ctx, coupon.Target{ID: c.ID}, coupon.Call{User: c.User, Order: fmt.Sprint("order-", c.ID)})
	return err
}

// page reads the first page of the wallet of somebody who has claimed.
func (w *couponWorld) page(ctx context.Context) error {
	user := fmt.Sprint("user-", 1+w.reads.Add(1)%w.serial.Load())
	_, err := w.Wallet(ctx, coupon.WalletQuery{User: user, Size: 20})
	return err
}

// serve makes the service reachable by HTTP, from a client in this process.
func (w *couponWorld) serve(t *testing.T) {
	t.Helper()
	handler, err := couponrpc.New(w.Service, couponrpc.Options{Parse: w.Codes.Parse})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: couponCallers}}
}

// postTries is how often a call is made that the server says to repeat.
const postTries = 5

// post calls the service by HTTP as curl would.
func (w *couponWorld) post(ctx context.Context, path, body string, answer any) (err error) {
	for range postTries {
		var again bool
		if again, err = w.postOnce(ctx, path, body, answer); !again {
			return err
		}
	}
	return err
}

// postOnce reports whether the call is to be made again.
func (w *couponWorld) postOnce(ctx context.Context, path, body string, answer any) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, "POST", w.url+path, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := w.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 1_000))
		return res.StatusCode == http.StatusServiceUnavailable, fmt.Errorf("%s: %s: %s", path, res.Status, why)
	}
	return false, json.NewDecoder(res.Body).Decode(answer)
}

// claimByHTTP is claim over the network.
func (w *couponWorld) claimByHTTP(ctx context.Context, campaign int64) error {
	user := fmt.Sprint("user-", w.serial.Add(1))
	var got struct {
		Coupon struct {
			ID coupon.ID `json:",string"`
		}
	}
	err := w.post(ctx, fmt.Sprintf("/v1/campaigns/%d:claim", campaign), fmt.Sprintf(`{"user_id":%q,"request_no":"r"}`, user), &got)
	if err == nil {
		w.keep(coupon.Coupon{ID: got.Coupon.ID, User: user})
	}
	return err
}

// redeemByHTTP is redeem over the network.
func (w *couponWorld) redeemByHTTP(ctx context.Context) error {
	c, err := w.last()
	if err != nil {
		return err
	}
	var got struct{ Replayed bool }
	return w.post(ctx, "/v1/coupons:redeem", fmt.Sprintf(`{"id":"%d","user_id":%q,"order_no":"order-%d"}`, c.ID, c.User, c.ID), &got)
}

// limitOne claims as one would on one table without a pool: the first free row is
// taken in the transaction that writes the rest.
func (w *couponWorld) limitOne(ctx context.Context) error {
	user := fmt.Sprint("user-", w.serial.Add(1))
	tx, err := w.plain.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	took, err := tx.ExecContext(ctx, "update pool set status = 1, user = ?, id = last_insert_id(id) where campaign = 1 and status = 0 order by id limit 1", user)
	if err != nil {
		return err
	}
	id, err := took.LastInsertId()
	if err != nil {
		return err
	}
	for _, text := range []string{"insert into claim values (?, ?)", "insert into history values (?, ?)", "insert into outbox values (?, ?)", "insert into wallet values (?, ?)"} {
		if _, err := tx.ExecContext(ctx, text, id, user); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// updateAndInsert is the least transaction that leaves a trace.
func (w *couponWorld) updateAndInsert(ctx context.Context) error {
	id := w.used.Add(1)
	tx, err := w.plain.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	order := fmt.Sprint("order-", id)
	took, err := tx.ExecContext(ctx, "update coupon set status = 2, order_no = ? where id = ? and status = 1", order, id)
	if err != nil {
		return err
	}
	if n, err := took.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("coupon %d: %d rows changed, %w", id, n, err)
	}
	if _, err := tx.ExecContext(ctx, "insert into ledger values (?, ?, ?)", id, id, order); err != nil {
		return err
	}
	return tx.Commit()
}

// A effort is what callers achieved.
type effort struct {
	perSecond       float64
	server, service float64 // CPU in us per call
}

// drive has 16 callers do something for a while.
func (w *couponWorld) drive(t *testing.T, d time.Duration, do func(context.Context) error) effort {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d+time.Minute)
	defer cancel()
	var done atomic.Int64
	server, service := cpuOf(t, w.server.Pid()), ownCPU(t)
	start := time.Now()
	var callers sync.WaitGroup
	for range couponCallers {
		callers.Go(func() {
			for time.Since(start) < d {
				err := do(ctx)
				if errors.Is(err, errNoneLeft) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	callers.Wait()
	n, took := float64(done.Load()), time.Since(start)
	each := func(used time.Duration) float64 { return float64(used.Microseconds()) / n }
	return effort{n / took.Seconds(), each(cpuOf(t, w.server.Pid()) - server), each(ownCPU(t) - service)}
}

// cpuOf returns the processor time that a process has used.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel's ticks of 1/100 s
}

// ownCPU returns the processor time that this process has used.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// couponPace measures claims and redemptions against what else one could do.
func couponPace(t *testing.T, r *results) {
	rounds, d, total, past := 2, 150*time.Millisecond, int64(6_400), 100
	if full {
		rounds, d, total, past = 9, 10*time.Second, 640_000, 20_000
	}
	w := newCouponWorld(t)
	w.plainRows(t, int(max(2*total, 100_000)))
	w.past(t, past)
	c := w.Campaign(t, total, nil)
	kinds := []struct {
		name string
		do   func(context.Context) error
	}{
		{"claim", func(ctx context.Context) error { return w.claim(ctx, c.ID) }},
		{"claim by UPDATE ... LIMIT 1 on one table", w.limitOne},
		{"redeem", w.redeem},
		{"UPDATE and INSERT", w.updateAndInsert},
		{"page of a wallet", w.page},
		{"claim by HTTP, caller's CPU included", func(ctx context.Context) error { return w.claimByHTTP(ctx, c.ID) }},
		{"redeem by HTTP, caller's CPU included", w.redeemByHTTP},
	}
	w.serve(t)
	w.drive(t, d/4, kinds[0].do) // so that there is something to redeem in the slowest round
	paces := make([][]effort, len(kinds))
	for range rounds {
		for i, k := range kinds {
			paces[i] = append(paces[i], w.drive(t, d, k.do))
		}
	}
	couponReport(t, r, rounds, d, len(kinds), func(i int) (string, []effort) { return kinds[i].name, paces[i] })
}

// couponReport writes the table and what follows from it.
func couponReport(t *testing.T, r *results, rounds int, d time.Duration, kinds int, of func(int) (string, []effort)) {
	r.section("Coupons: claims and redemptions", fmt.Sprintf("One MariaDB with durable commits, 8 databases of 4 shards, 16 callers in this process, medians of %d interleaved rounds of %v, on tables that have rows of before. A claim and a redemption write coupon, ledger (with the event) and wallet behind the fence.", rounds, d))
	r.table("what", "/s", "us CPU of the server", "us CPU of the service")
	middle := func(i int, of_ func(effort) float64) float64 {
		_, paces := of(i)
		var all []float64
		for _, p := range paces {
			all = append(all, of_(p))
		}
		return median(all)
	}
	for i := range kinds {
		name, _ := of(i)
		r.row(name, middle(i, func(p effort) float64 { return p.perSecond }), middle(i, func(p effort) float64 { return p.server }), middle(i, func(p effort) float64 { return p.service }))
	}
	ratio := func(a, b int) float64 {
		_, pa := of(a)
		_, pb := of(b)
		var all []float64
		for k := range pa {
			all = append(all, pa[k].perSecond/pb[k].perSecond)
		}
		return median(all)
	}
	r.table("ratio, in one round", "measured", "bar")
	claims, redeems := ratio(0, 1), ratio(2, 3)
	r.row("claims to those by UPDATE ... LIMIT 1", claims, "2.5")
	r.row("redemptions to UPDATE and INSERT", redeems, "0.45")
	r.atMost(t, "UPDATE ... LIMIT 1 over claims", 1/claims, 1/2.5)
	r.atMost(t, "UPDATE and INSERT over redemptions", 1/redeems, 1/0.45)
	cpu := func(i int) float64 {
		return middle(i, func(p effort) float64 { return p.server }) + middle(i, func(p effort) float64 { return p.service })
	}
	cores := 14_000 * (cpu(0) + 0.3*cpu(2) + 2*cpu(4)) / 1e6
	r.text("14,000 claims a second with 0.3 redemptions and 2 pages of a wallet each would keep %.0f cores of this kind busy, databases and services together, HTTP apart.", cores)
}
