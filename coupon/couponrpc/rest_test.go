package couponrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// A server is coupons behind HTTP, with one campaign of 64.
type server struct {
	url      string
	world    *coupontest.World
	outbox   coupon.Outbox
	campaign coupon.Campaign
}

func serve(t *testing.T) server {
	t.Helper()
	control, shards := couponsql.Folder(t.TempDir(), 1)
	p, err := couponsql.Open(t.Context(), couponsql.Options{
		Control: control, Shards: shards, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced,
		Open: func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	w := coupontest.NewWorld(t, p.Store, p.Control, nil, nil)
	handler, err := couponrpc.New(w.Service, couponrpc.Options{Parse: w.Codes.Parse})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(handler)
	h.Config.Protocols = new(http.Protocols)
	h.Config.Protocols.SetHTTP1(true)
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	h.Start()
	t.Cleanup(h.Close)
	return server{h.URL, w, couponsql.NewOutbox(p.Cluster), w.Campaign(t, 64, nil)}
}

// ask makes a call and returns its answer as JSON.
func (s server) ask(t *testing.T, method, path, body string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, b)
	}
	return resp, v
}

func TestStatusesOfRESTAreTheContracts(t *testing.T) {
	s := serve(t)
	campaign := fmt.Sprintf("/v1/campaigns/%d", s.campaign.ID)
	_, claimed := s.ask(t, "POST", campaign+":claim", `{"user_id":"ann","request_no":"r1"}`)
	code := claimed["coupon"].(map[string]any)["code"].(string)
	redeem := func(user, order string) string {
		return fmt.Sprintf(`{"code":%q,"user_id":%q,"order_no":%q}`, code, user, order)
	}
	const sound = `"name":"x","total":1,"time_zone":"UTC","valid_days":1,"value":{"amount_minor":"1","currency":"EUR"}`
	for _, c := range []struct {
		what, method, path, body string
		status                   int
		code                     string // of the problem
	}{
		{"created", "POST", "/v1/campaigns", "{" + sound + "}", 201, ""},
		{"amounts are numbers too", "POST", "/v1/campaigns", strings.Replace("{"+sound+"}", `"1"`, "1", 1), 201, ""},
		{"camel case is accepted", "POST", "/v1/campaigns", strings.Replace("{"+sound+"}", "time_zone", "timeZone", 1), 201, ""},
		{"an unknown zone", "POST", "/v1/campaigns", strings.Replace("{"+sound+"}", "UTC", "Mars/Olympus", 1), 400, "INVALID_ARGUMENT"},
		{"ends before it starts", "POST", "/v1/campaigns", "{" + sound + `,"valid_from":"2027-01-02T00:00:00Z","valid_until":"2027-01-01T00:00:00Z"}`, 400, "INVALID_ARGUMENT"},
		{"an unknown field", "POST", "/v1/campaigns", `{"nam":"x"}`, 400, "INVALID_ARGUMENT"},
		{"not JSON", "POST", "/v1/campaigns", `{`, 400, "INVALID_ARGUMENT"},
		{"too large", "POST", "/v1/campaigns", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "TOO_LARGE"},
		{"no such campaign", "GET", "/v1/campaigns/999", "", 404, "CAMPAIGN_NOT_FOUND"},
		{"an id that is none", "GET", "/v1/campaigns/x", "", 400, "INVALID_ARGUMENT"},
		{"no such operation", "GET", "/v1/operations/999", "", 404, "OPERATION_NOT_FOUND"},
		{"no such path", "GET", "/v1/nothing", "", 404, "NOT_FOUND"},
		{"generation", "POST", campaign + ":generate", `{}`, 202, ""},
		{"beyond the limit", "POST", campaign + ":claim", `{"user_id":"ann","request_no":"r2"}`, 409, "USER_LIMIT"},
		{"a claim without a user", "POST", campaign + ":claim", `{"request_no":"r2"}`, 400, "INVALID_ARGUMENT"},
		{"another's coupon", "POST", "/v1/coupons:redeem", redeem("bob", "o1"), 404, "COUPON_UNAVAILABLE"},
		{"a mistyped code", "POST", "/v1/coupons:redeem", strings.Replace(redeem("ann", "o1"), code, "0000-0000-0000-0000", 1), 404, "COUPON_UNAVAILABLE"},
		{"redeemed", "POST", "/v1/coupons:redeem", redeem("ann", "o1"), 200, ""},
		{"redeemed again", "POST", "/v1/coupons:redeem", redeem("ann", "o1"), 200, ""},
		{"redeemed by another", "POST", "/v1/coupons:redeem", redeem("ann", "o2"), 409, "ALREADY_REDEEMED"},
		{"a code as people type it", "GET", "/v1/codes/" + strings.ToLower(strings.ReplaceAll(code, "-", "")) + "?user_id=ann", "", 200, ""},
		{"a token of another query", "GET", "/v1/users/ann/coupons?page_token=abc", "", 400, "INVALID_PAGE_TOKEN"},
		{"an unknown status", "GET", "/v1/users/ann/coupons?status=LOST", "", 400, "INVALID_ARGUMENT"},
		{"a path that is no text", "GET", "/v1/users/%ff/coupons", "", 400, "INVALID_ARGUMENT"},
		{"a parameter that is no text", "GET", "/v1/users/ann/coupons?status=%ff", "", 400, "INVALID_ARGUMENT"},
		{"half a body of a path with an id", "POST", campaign + ":claim", `{`, 400, "INVALID_ARGUMENT"},
		{"a field that is none, of a path with an id", "POST", campaign + ":claim", `{"zz":1}`, 400, "INVALID_ARGUMENT"},
		{"a negative count", "POST", campaign + ":issue", `{"count":-1}`, 400, "INVALID_ARGUMENT"},
		{"an unknown parameter", "GET", "/v1/users/ann/coupons?page_sise=5", "", 400, "INVALID_ARGUMENT"},
		{"a parameter that is no number", "GET", "/v1/users/ann/coupons?page_size=x", "", 400, "INVALID_ARGUMENT"},
		{"a method that is not served", "DELETE", "/v1/campaigns", "", 404, "NOT_FOUND"},
		{"page too large", "GET", "/v1/users/ann/coupons?page_size=501", "", 400, "INVALID_ARGUMENT"},
		{"issued at once", "POST", campaign + ":issue", `{"batch_no":"b1","order_no":"o1","count":3}`, 200, ""},
		{"the same batch otherwise", "POST", campaign + ":issue", `{"batch_no":"b1","order_no":"o1","count":4}`, 422, "IDEMPOTENCY_MISMATCH"},
		{"more than there are", "POST", campaign + ":issue", `{"batch_no":"b2","order_no":"o1","count":400}`, 409, "POOL_EXHAUSTED"},
	} {
		t.Run(c.what, func(t *testing.T) {
			resp, v := s.ask(t, c.method, c.path, c.body)
			if resp.StatusCode != c.status {
				t.Fatalf("%d, want %d: %v", resp.StatusCode, c.status, v)
			}
			if got, _ := v["code"].(string); c.code != "" && got != c.code {
				t.Errorf("code %q, want %q: %v", got, c.code, v)
			}
			kind := resp.Header.Get("Content-Type")
			if problem := kind == "application/problem+json"; problem != (c.code != "") {
				t.Errorf("content type %s", kind)
			}
			if c.status == 201 || c.status == 202 {
				if again, _ := s.ask(t, "GET", resp.Header.Get("Location"), ""); again.StatusCode != 200 {
					t.Errorf("at %s: %d", resp.Header.Get("Location"), again.StatusCode)
				}
			}
		})
	}
}

// TestNobodyElseCanTellOneMissFromAnother: the answers for an unknown, a
// malformed, an un-issued and another's coupon differ in the trace only.
func TestNobodyElseCanTellOneMissFromAnother(t *testing.T) {
	s := serve(t)
	ann, err := s.world.Claim(t.Context(), s.campaign.ID, coupon.Call{User: "ann", Request: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	var stock coupon.Ref
	err = s.world.Store.Read(t.Context(), ann.Coupon.ID, func(rows coupon.Rows) error {
		refs, err := rows.Stock(s.campaign.ID, 0, 1)
		stock = refs[0]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, code := range []string{ann.Coupon.Code.String(), stock.Code.String(), s.world.Codes.New(5).String(), "0000-0000-0000-0001", "x"} {
		resp, v := s.ask(t, "POST", "/v1/coupons:redeem", fmt.Sprintf(`{"code":%q,"user_id":"bob","order_no":"o1"}`, code))
		delete(v, "trace_id")
		bodies = append(bodies, fmt.Sprint(resp.StatusCode, v))
	}
	for _, b := range bodies {
		if b != bodies[0] || !strings.Contains(b, "COUPON_UNAVAILABLE") {
			t.Errorf("%s\nand %s", bodies[0], b)
		}
	}
}

func TestWalletPagesBelongToTheirQuery(t *testing.T) {
	s := serve(t)
	if _, err := s.world.Issue(t.Context(), coupon.IssueRequest{Campaign: s.campaign.ID, Batch: "b", Order: "o", Count: 7, User: "ann"}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	token, pages := "", 0
	for {
		_, v := s.ask(t, "GET", "/v1/users/ann/coupons?page_size=3&page_token="+token, "")
		for _, c := range v["coupons"].([]any) {
			seen[c.(map[string]any)["id"].(string)] = true
		}
		pages++
		if token, _ = v["next_page_token"].(string); token == "" {
			break
		}
		if resp, v := s.ask(t, "GET", "/v1/users/bob/coupons?page_size=3&page_token="+token, ""); v["code"] != "INVALID_PAGE_TOKEN" {
			t.Errorf("another user's token: %d %v", resp.StatusCode, v)
		}
	}
	if len(seen) != 7 || pages != 3 {
		t.Errorf("%d coupons on %d pages", len(seen), pages)
	}
}

func TestOpenAPIHasEveryPath(t *testing.T) {
	s := serve(t)
	_, v := s.ask(t, "GET", "/v1/openapi.json", "")
	paths := v["paths"].(map[string]any)
	for _, path := range []string{"/v1/campaigns", "/v1/campaigns/{id}:generate", "/v1/coupons:redeem", "/v1/users/{user_id}/coupons", "/v1/operations/{id}"} {
		if paths[path] == nil {
			t.Errorf("%s is missing", path)
		}
	}
	schemas := v["components"].(map[string]any)["schemas"].(map[string]any)
	var check func(v any)
	check = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			for _, one := range v {
				check(one)
			}
		case []any:
			for _, one := range v {
				check(one)
			}
		}
	}
	check(v)
}

// TestClientSaysWhatTheServiceSays goes over the wire with the client.
func TestClientSaysWhatTheServiceSays(t *testing.T) {
	s := serve(t)
	c, err := couponrpc.Dial(s.url, couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := c.Claim(ctx, s.campaign.ID, coupon.Call{User: "ann", Request: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	here, err := s.world.Get(ctx, coupon.Target{ID: got.Coupon.ID}, "ann")
	if err != nil || here.Coupon.Code != got.Coupon.Code || !here.Coupon.Valid.Until.Equal(got.Coupon.Valid.Until) || here.Coupon.Version != got.Coupon.Version {
		t.Errorf("the client has %+v, the service %+v, %v", got.Coupon, here.Coupon, err)
	}
	_, err = c.Claim(ctx, s.campaign.ID, coupon.Call{User: "ann", Request: "r2"})
	refused, ok := err.(*coupon.Refusal)
	if !ok || refused.Code != coupon.ErrUserLimit.Code || len(refused.Held) != 1 || refused.Held[0] != got.Coupon.ID {
		t.Errorf("%+v", err)
	}
	events, err := c.History(ctx, got.Coupon.ID)
	if err != nil || len(events) != 2 || events[1].Type != coupon.WasClaimed {
		t.Errorf("%+v, %v", events, err)
	}
	campaign, err := c.Campaign(ctx, s.campaign.ID)
	if err != nil || campaign.Name != s.campaign.Name || campaign.Generated != 64 {
		t.Errorf("%+v, %v", campaign, err)
	}
}
