package seqrpc_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// post does what curl does with -H 'Content-Type: application/json' -d body.
func post(t testing.TB, url, method, body string) (status int, answer string) {
	t.Helper()
	res, err := http.Post(url+"/tallystick.sequence.v1.SequenceService/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestJSONAnswersPrintEveryField(t *testing.T) {
	svc := &stub{
		record: sequence.Record{
			Definition: sequence.Definition{
				Name: "orders_seq", Start: 1001, Increment: 5, Min: 1, Max: 9223372036854775807, BlockSize: 1000, MaxBlock: 1000000,
				ServerCacheMax: 2000000, ClientCacheMin: 50, ClientCacheMax: 500, BufferSeconds: 5,
			},
			Epoch: 1, Version: 1, State: sequence.StateOpen, Next: 1001,
		},
		lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{
			{Name: "orders_seq", Runs: []sequence.Run{{First: 1001, Step: 5, Count: 5}}, Epoch: 1, Version: 1, LeaseID: "SRV-1",
				Cache: sequence.CachePolicy{Min: 50, Max: 500, Buffer: 10 * time.Second}},
			{Name: "no_seq", Err: &sequence.Error{Code: sequence.CodeNotFound, Field: "name", Message: `sequence "no_seq" does not exist`}},
		}},
	}
	url := serve(t, svc).URL
	for _, tc := range []struct{ method, body, want string }{
		{"Get", `{"name":"orders_seq"}`, `{"name":"orders_seq","start":"1001","increment":"5","min":"1","max":"9223372036854775807","cycle":false,` +
			`"block_size":1000,"max_block":1000000,"server_cache_max":2000000,"client_cache_min":50,"client_cache_max":500,` +
			`"min_threshold":0,"buffer_seconds":5,"owner":"","labels":{},"epoch":"1","definition_version":1,"state":"open",` +
			`"next":"1001","remaining":"1844674407370954962","exhausted":false}`},
		{"List", `{}`, `{"sequences":[],"next_page_token":""}`},
		{"Return", `{}`, `{}`},
		{"Lease", `{"client_id":"c","items":[{"name":"orders_seq","count":5,"floor":{"epoch":"1","last":7},"rate_hint":10},{"name":"no_seq","count":5}]}`,
			`{"results":[{"name":"orders_seq","runs":[{"first":"1001","step":"5","count":5}],"epoch":"1","definition_version":1,` +
				`"lease_id":"SRV-1","suggested_cache":200,"cache":{"min":50,"max":500,"min_threshold":0,"buffer":"10s"}},` +
				`{"name":"no_seq","runs":[],"epoch":"0","definition_version":0,"lease_id":"","suggested_cache":0,` +
				`"error":{"code":"NOT_FOUND","field":"name","message":"sequence \"no_seq\" does not exist","remedy":""}}]}`},
	} {
		if status, got := post(t, url, tc.method, tc.body); status != 200 || got != tc.want {
			t.Errorf("%s: %d\n got %s\nwant %s", tc.method, status, got, tc.want)
		}
	}
}

func TestJSONRequestsTakeEitherForm(t *testing.T) {
	svc := &stub{}
	url := serve(t, svc).URL
	for _, body := range []string{
		`{"items":[{"name":"a","count":5,"known_version":2,"rate_hint":1.5,"floor":{"epoch":"3","last":"-7"}}]}`,
		`{"items":[{"name":"a","count":"5","knownVersion":2,"rateHint":1.5,"floor":{"epoch":3,"last":-7}}]}`,
	} {
		if status, answer := post(t, url, "Lease", body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
		it := svc.got.(sequence.LeaseRequest).Items[0]
		if it.Count != 5 || it.KnownVersion != 2 || it.RateHint != 1.5 || *it.Floor != (sequence.Floor{Epoch: 3, Last: -7}) {
			t.Errorf("%s: arrived as %+v", body, it)
		}
	}
}

func TestJSONMistakesAreOneClearLine(t *testing.T) {
	svc := &stub{}
	url := serve(t, svc).URL
	for _, tc := range []struct{ method, body, says string }{
		{"Create", `{"specs":[{"name":"a","incremnt":"5"}]}`, `unknown field "incremnt"`},
		{"Create", `{"specs":[{"name":"a","start":"9223372036854775808"}]}`, `field start: "9223372036854775808"`},
		{"Create", `{"specs":[{"name":"a","start":1.5}]}`, `field start: 1.5`},
		{"Lease", `{"items":[{"name":"a","count":-1}]}`, `field count: -1`},
		{"Lease", `{"items":[{"name":"a","count":5000000000}]}`, `field count: 5000000000`},
		{"Lease", `{"items":`, `unexpected EOF`},
		{"Lease", `[]`, `unexpected token [`},
		{"Lease", `{} {}`, `unexpected token {`},
		{"Lease", `items=5`, `invalid value items`},
		{"Lease", ``, `the body is empty (send a LeaseRequest in JSON, {} for none; its fields: client_id, items)`},
		{"Get", "{\"name\":\"\xff\"}", `invalid UTF-8`},
		{"Get", strings.Repeat(`{"name":`, 100), `invalid value for string field name: {`},
	} {
		status, answer := post(t, url, tc.method, tc.body)
		said := strings.ReplaceAll(answer, `\"`, `"`)
		if status != 400 || !strings.Contains(said, `"code":"invalid_argument"`) || !strings.Contains(said, tc.says) || strings.Contains(said, `\n`) {
			t.Errorf("%s %s: %d %s\nwant invalid_argument saying %s", tc.method, tc.body, status, answer, tc.says)
		}
	}
	if svc.called() > 0 {
		t.Errorf("%d mistaken requests reached the service", svc.called())
	}
}

func TestJSONErrorsCarryCodeFieldAndRemedy(t *testing.T) {
	url := serve(t, &stub{err: &sequence.Error{Code: sequence.CodeNotFound, Field: "name", Message: "no such thing", Remedy: "create it"}}).URL
	status, answer := post(t, url, "Get", `{"name":"a"}`)
	if status != 404 {
		t.Errorf("status %d, want 404", status)
	}
	for _, part := range []string{
		`"code":"not_found"`, `"message":"no such thing (create it)"`, `"type":"tallystick.sequence.v1.Error"`,
		`"code":"NOT_FOUND"`, `"field":"name"`, `"remedy":"create it"`,
	} {
		if !strings.Contains(answer, part) {
			t.Errorf("%s lacks %s", answer, part)
		}
	}
}

func TestReadsAnswerGET(t *testing.T) {
	url := serve(t, &stub{record: fullRecord}).URL
	res, err := http.Get(url + `/tallystick.sequence.v1.SequenceService/Get?connect=v1&encoding=json&message={"name":"orders"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("status %s", res.Status)
	}
}

// FuzzJSONLease checks that what is read once reads the same again, and that
// everything else is refused in one line.
func FuzzJSONLease(f *testing.F) {
	f.Add(`{"client_id":"c","items":[{"name":"a","count":5,"floor":{"epoch":"1","last":"-9223372036854775808"},"rate_hint":1e300}]}`)
	f.Add(`{"items":[{"name":"\ud800","count":1e3}]}`)
	f.Add(`{"items":[null]}`)
	f.Add(`[[[[[[`)
	f.Add(`{"items":[{"rate_hint":"NaN"}]}`)
	svc := &stub{}
	_, handler := seqrpc.Handler(svc)
	f.Fuzz(func(t *testing.T, body string) {
		svc.got = nil
		status, answer := serveOnce(t, handler, "Lease", body)
		switch {
		case status == 200 && svc.got != nil:
			again, err := seqrpc.MarshalJSON(leaseMessage(t, body))
			if err != nil {
				t.Fatal(err)
			}
			first := svc.got
			if status, answer := serveOnce(t, handler, "Lease", string(again)); status != 200 || !cmp.Equal(first, svc.got, cmpopts.EquateNaNs()) {
				t.Errorf("%q reads as %s, which answers %d %s", body, again, status, answer)
			}
		case status == 400:
			if strings.Contains(answer, `\n`) {
				t.Errorf("%q: more than one line: %s", body, answer)
			}
		default:
			t.Errorf("%q: %d %s", body, status, answer)
		}
	})
}

func leaseMessage(t *testing.T, body string) *sequencev1.LeaseRequest {
	t.Helper()
	m := new(sequencev1.LeaseRequest)
	if err := protojson.Unmarshal([]byte(body), m); err != nil {
		t.Fatal(err)
	}
	return m
}
