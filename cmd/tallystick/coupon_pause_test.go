package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/internal/realtest"
)

// stateReach is how long a campaign's state takes to reach every node.
const stateReach = 2 * time.Second

// TestStateOfACampaignReachesEveryNode pauses, resumes and ends campaigns through
// one node while users claim through another, where redemptions go on. At full
// size there are 40 campaigns.
func TestStateOfACampaignReachesEveryNode(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		rounds = 40
	}
	a, b := twoNodes(t)
	w := &crashWorld{t: t}
	var mu sync.Mutex
	lags := map[coupon.CampaignState][]time.Duration{}
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			id := w.campaign(a, 3_200, 1)
			w.generate(a, id)
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				n := &claimant{t: t, node: b, campaign: id}
				for _, step := range []struct {
					to   coupon.CampaignState
					want error
				}{{coupon.Paused, coupon.ErrCampaignPaused}, {coupon.Active, nil}, {coupon.Ended, coupon.ErrCampaignEnded}} {
					n.warm()
					lag := n.reaches(a, step.to, step.want)
					mu.Lock()
					lags[step.to] = append(lags[step.to], lag)
					mu.Unlock()
					if lag > stateReach {
						t.Errorf("%s reached the other node after %v", step.to, lag)
					}
				}
				if n.redeemed < 10 {
					t.Errorf("%d redemptions went on", n.redeemed)
				}
			})
		}
	})
	t.Logf("after the answer the last call that found the state before: %v", lags)
}

// twoNodes starts two servers on the same databases.
func twoNodes(t *testing.T) (a, b *couponServer) {
	h := mariadbHome(t)
	args := append(h.args[2:], "--store", "dynamodb", "--dynamodb-endpoint", realtest.DynaliteURL(t), "--dynamodb-table", realtest.TableName(), "--dynamodb-create")
	return node(t, args...), node(t, args...)
}

// node starts a server with a data folder of its own, and a client of it.
func node(t *testing.T, args ...string) *couponServer {
	t.Helper()
	p := start(t, args...)
	c, err := couponrpc.Dial(p.url, couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &couponServer{p, c}
}

// A claimant claims coupons of a campaign through a node, each as another user,
// and redeems there what it got.
type claimant struct {
	t        *testing.T
	node     *couponServer
	campaign int64
	users    int
	held     []coupon.Coupon
	redeemed int
}

// claim claims a coupon for a user who has none, and returns when the call that
// was answered began.
func (c *claimant) claim() (begin time.Time, err error) {
	c.users++
	err = persist(c.t.Context(), func(ctx context.Context) error {
		begin = time.Now()
		got, err := c.node.Claim(ctx, c.campaign, coupon.Call{User: fmt.Sprintf("u%d", c.users), Request: "r1"})
		if err == nil {
			c.held = append(c.held, got.Coupon)
		}
		return err
	})
	return begin, err
}

// redeem redeems one of the coupons held. No state of the campaign may stop it.
func (c *claimant) redeem() {
	if len(c.held) == 0 {
		return
	}
	one := c.held[0]
	c.held = c.held[1:]
	err := persist(c.t.Context(), func(ctx context.Context) error {
		return errOf(c.node.Redeem(ctx, couponrpc.Ref{ID: int64(one.ID)}, coupon.Call{User: one.User, Order: "o" + one.User}))
	})
	if err != nil {
		c.t.Fatalf("redeemed: %v", err)
	}
	c.redeemed++
}

// warm has the node know the campaign as it is, in whatever state, since a moment
// that is another in each round, and ten coupons held where that can be.
func (c *claimant) warm() {
	for range 10 {
		if _, err := c.claim(); err != nil {
			return
		}
	}
}

// reaches changes the campaign's state through another node and returns how long
// after the answer the last claim began that met another state than that. It goes
// on claiming for as long as the state may take.
func (c *claimant) reaches(through *couponServer, to coupon.CampaignState, want error) (lag time.Duration) {
	if _, err := through.MoveCampaign(c.t.Context(), c.campaign, to); err != nil {
		c.t.Fatal(err)
	}
	answered := time.Now()
	for seen := false; !seen || time.Since(answered) < stateReach+300*time.Millisecond; {
		begin, err := c.claim()
		if seen = errors.Is(err, want); !seen {
			if stale := errors.Is(err, coupon.ErrCampaignPaused) || err == nil; !stale {
				c.t.Fatal(err)
			}
			lag = begin.Sub(answered)
		}
		c.redeem()
		if lag > 4*stateReach {
			c.t.Fatalf("%s does not reach the other node: %v", to, err)
		}
	}
	return lag
}
