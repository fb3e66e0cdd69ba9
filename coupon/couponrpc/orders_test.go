package couponrpc_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// project brings to other shards what has happened so far, and the same again.
func (s server) project(t *testing.T) {
	t.Helper()
	projector := coupon.NewProjector(s.world.Store)
	for _, at := range shard.All() {
		rows, err := s.outbox.Oldest(t.Context(), at, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			m, err := coupon.DecodeMessage(row.Payload)
			if err == nil {
				err = projector.Apply(t.Context(), m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// order returns the ids of an order's coupons, in pages of two, and what one looks
// like on the wire.
func (s server) order(t *testing.T, order, role string) (ids []string, last map[string]any) {
	t.Helper()
	path := fmt.Sprintf("/v1/orders/%s/coupons?role=%s&page_size=2&page_token=", order, role)
	for token, pages := "", 0; pages == 0 || token != ""; pages++ {
		resp, v := s.ask(t, "GET", path+token, "")
		if resp.StatusCode != 200 || pages > 10 {
			t.Fatalf("page %d: %d %v", pages, resp.StatusCode, v)
		}
		page := v["coupons"].([]any)
		if len(page) > 2 {
			t.Errorf("%d coupons on a page of 2", len(page))
		}
		for _, c := range page {
			last = c.(map[string]any)
			ids = append(ids, last["id"].(string))
		}
		token, _ = v["next_page_token"].(string)
	}
	return ids, last
}

// TestOrdersListWhatTheyBoughtAndWhatTheyConsumed has an order that bought seven
// coupons and another one that redeemed five of them and took one of these back.
func TestOrdersListWhatTheyBoughtAndWhatTheyConsumed(t *testing.T) {
	s := serve(t)
	issue, err := s.world.Issue(t.Context(), coupon.IssueRequest{Campaign: s.campaign.ID, Batch: "b", Order: "bought", Count: 7, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range issue.Coupons {
		all = append(all, c.ID.String())
	}
	slices.Sort(all)
	for _, id := range all[:5] {
		if resp, v := s.ask(t, "POST", "/v1/coupons:redeem", fmt.Sprintf(`{"id":%q,"user_id":"ann","order_no":"ate"}`, id)); resp.StatusCode != 200 {
			t.Fatalf("%d %v", resp.StatusCode, v)
		}
	}
	s.project(t)
	got, one := s.order(t, "ate", "consumed")
	if !slices.Equal(got, all[:5]) || one["status"] != "REDEEMED" || one["redeemed_order_no"] != "ate" || one["user_id"] != "ann" {
		t.Errorf("consumed are %v, want %v; the last is %v", got, all[:5], one)
	}
	if resp, v := s.ask(t, "POST", "/v1/coupons:void", fmt.Sprintf(`{"id":%q,"order_no":"ate","request_no":"v1"}`, all[2])); resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, v)
	}
	left := slices.Delete(slices.Clone(all[:5]), 2, 3)
	if got, _ := s.order(t, "ate", "consumed"); !slices.Equal(got, left) {
		t.Errorf("consumed are %v before the event of the void has come, want %v", got, left)
	}
	s.project(t)
	if got, _ := s.order(t, "ate", "consumed"); !slices.Equal(got, left) {
		t.Errorf("consumed are %v, want %v", got, left)
	}
	if got, _ := s.order(t, "bought", "issued"); !slices.Equal(got, all) {
		t.Errorf("issued are %v, want %v", got, all)
	}
	for _, other := range [][2]string{{"bought", "consumed"}, {"ate", "issued"}, {"nobody", "consumed"}} {
		if got, _ := s.order(t, other[0], other[1]); len(got) > 0 {
			t.Errorf("%s %s: %v", other[0], other[1], got)
		}
	}
}

func TestOrderPagesBelongToTheirQuery(t *testing.T) {
	s := serve(t)
	if _, err := s.world.Issue(t.Context(), coupon.IssueRequest{Campaign: s.campaign.ID, Batch: "b", Order: "bought", Count: 3}); err != nil {
		t.Fatal(err)
	}
	_, v := s.ask(t, "GET", "/v1/orders/bought/coupons?page_size=2", "")
	token := v["next_page_token"].(string)
	for _, query := range []string{"bought/coupons?role=consumed&page_token=" + token, "other/coupons?page_token=" + token} {
		if resp, v := s.ask(t, "GET", "/v1/orders/"+query, ""); v["code"] != "INVALID_PAGE_TOKEN" {
			t.Errorf("%s: %d %v", query, resp.StatusCode, v)
		}
	}
	for _, query := range []string{"role=eaten", "page_size=501"} {
		if resp, v := s.ask(t, "GET", "/v1/orders/bought/coupons?"+query, ""); v["code"] != "INVALID_ARGUMENT" {
			t.Errorf("%s: %d %v", query, resp.StatusCode, v)
		}
	}
}
