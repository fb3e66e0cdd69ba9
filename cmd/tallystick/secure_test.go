package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// makeToken makes a token for the server of p and returns it.
func makeToken(t *testing.T, data, scope string) string {
	t.Helper()
	out, code := shell(t, t.TempDir(), "tallystick token create --scope "+scope+" --data "+data+" 2>/dev/null")
	if code != 0 {
		t.Fatal(out)
	}
	return strings.TrimSpace(out)
}

func TestCallsNeedATokenOfTheirScope(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	admin, lease := makeToken(t, data, "admin"), makeToken(t, data, "lease")
	p := start(t, "--data", data)
	for _, tc := range []struct {
		name, token, method, body string
		status                    int
		says                      string
	}{
		{"no token", "", "Create", `{"specs":[{"name":"a"}]}`, 401, `no token was given`},
		{"wrong token", "tally_wrong", "Lease", `{}`, 401, `the token is not known: it was revoked, or is of another server`},
		{"lease does not manage", lease, "Create", `{"specs":[{"name":"a"}]}`, 403, `this needs a token of scope admin`},
		{"lease does not read", lease, "Get", `{"name":"a"}`, 403, `this needs a token of scope admin`},
		{"admin manages", admin, "Create", `{"specs":[{"name":"a"}]}`, 200, `"sequence":{"name":"a"`},
		{"lease leases", lease, "Lease", `{"items":[{"name":"a","count":1}]}`, 200, `"first":"1"`},
		{"admin leases", admin, "Lease", `{"items":[{"name":"a","count":1}]}`, 200, `"first":"2"`},
		{"lease returns", lease, "Return", `{"name":"a","lease_id":"x"}`, 400, `failed_precondition`},
	} {
		res, answer := post(t, http.DefaultClient, p.url+procedures+tc.method, tc.token, tc.body)
		if res.StatusCode != tc.status || !strings.Contains(answer, tc.says) {
			t.Errorf("%s: %s %s", tc.name, res.Status, answer)
		}
		if tc.status == 401 && res.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate %q", tc.name, res.Header.Get("WWW-Authenticate"))
		}
	}
	p.want(t, "tallystick seq next a", "3\n", "TALLYSTICK_TOKEN="+lease)
	p.want(t, "printf '%s\\n' "+admin+" > t && tallystick seq next a --token-file t", "4\n")
	if out, code := p.run(t, "tallystick seq get a -o json"); code != 1 || !strings.Contains(out, `"code":"UNAUTHENTICATED"`) || !strings.Contains(out, "TALLYSTICK_TOKEN") {
		t.Errorf("%s[exit %d]", out, code)
	}
	if out, code := p.run(t, "tallystick seq get a -o json", "TALLYSTICK_TOKEN="+lease); code != 1 || !strings.Contains(out, `"code":"PERMISSION_DENIED"`) {
		t.Errorf("%s[exit %d]", out, code)
	}
	if log := p.out.String() + p.err.String(); strings.Contains(log, admin) || strings.Contains(log, lease) {
		t.Error("a token is in the log")
	}
}

func TestPagesNeedATokenWhereCallsDo(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	token := makeToken(t, data, "lease")
	p := start(t, "--data", data)
	for path, want := range map[string]int{"/metrics": 401, "/livez": 200, "/readyz": 200} {
		if got := statusOf(t, p.url+path, ""); got != want {
			t.Errorf("%s without a token: %d, want %d", path, got, want)
		}
	}
	if got := statusOf(t, p.url+"/metrics", token); got != 200 {
		t.Errorf("/metrics with a token: %d", got)
	}
}

func statusOf(t testing.TB, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// TestTokensChangeWhileTheServerRuns: the first token makes tokens needed, a
// revoked one stops working, without a restart.
func TestTokensChangeWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	p := start(t)
	list := func(token string) int {
		res, _ := post(t, http.DefaultClient, p.url+procedures+"List", token, "{}")
		return res.StatusCode
	}
	if got := list(""); got != 200 {
		t.Fatalf("before the first token: %d", got)
	}
	token := makeToken(t, p.data, "admin")
	eventually(t, "a token is needed", func() bool { return list("") == 401 })
	if got := list(token); got != 200 {
		t.Errorf("the new token: %d", got)
	}
	p.run(t, "tallystick token revoke $(tallystick token list --data "+p.data+" | sed -n '2s/ .*//p') --data "+p.data)
	eventually(t, "the revoked token is refused", func() bool { return list(token) == 401 })
	if err := os.WriteFile(filepath.Join(p.data, "tokens.json"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the damage is logged", func() bool { return strings.Contains(p.err.String(), "tokens not read again") })
	if got := list(""); got != 401 {
		t.Errorf("with a damaged file: %d", got)
	}
}

func TestBothFlagsWaiveBoth(t *testing.T) {
	t.Parallel()
	p := start(t, "--listen", "0.0.0.0:0", "--insecure-no-tls", "--insecure-no-tokens")
	p.want(t, "tallystick seq create a", "created a: next 1, increment 1, remaining 9223372036854775807\n")
}

// certificate writes a new self-signed certificate for 127.0.0.1.
func certificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", private)
	writePEM(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", der)
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateIsServedAndReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate(t, dir, "first")
	data := filepath.Join(dir, "data")
	token := "TALLYSTICK_TOKEN=" + makeToken(t, data, "admin")
	p := start(t, "--listen", "0.0.0.0:0", "--data", data, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	if !strings.HasPrefix(p.url, "https://127.0.0.1:") {
		t.Fatal(p.url)
	}
	ca := " --tls-ca " + filepath.Join(dir, "cert.pem")
	p.want(t, "tallystick seq create a"+ca, "created a: next 1, increment 1, remaining 9223372036854775807\n", token)
	if out, code := p.run(t, "tallystick seq next a", token); code != 1 || !strings.Contains(out, "certificate") || !strings.Contains(out, "--tls-ca") {
		t.Errorf("without the CA: %s[exit %d]", out, code)
	}
	if out, code := p.run(t, "tallystick seq next a --server "+strings.Replace(p.url, "https", "http", 1), token); code != 1 || !strings.Contains(out, "write https://127.0.0.1:") {
		t.Errorf("in clear text: %s[exit %d]", out, code)
	}

	certificate(t, dir, "second")
	eventually(t, "the new certificate is served", func() bool { return servedName(t, p.url) == "second" })
	p.want(t, "tallystick seq next a"+ca, "1\n", token)
}

// servedName returns the name in the certificate that a server shows.
func servedName(t *testing.T, url string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// TestGreetingWorksWithTokensAndTLS types what a server prints that asks for
// both.
func TestGreetingWorksWithTokensAndTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate(t, dir, "greeting")
	data := filepath.Join(dir, "data")
	admin := makeToken(t, data, "admin")
	p := start(t, "--listen", "0.0.0.0:0", "--data", data, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	_, script, _ := strings.Cut(p.out.String(), "Try it:\n\n")
	script, _, _ = strings.Cut(script, "\n\nStop it")
	script = strings.NewReplacer("TALLYSTICK_TOKEN=...", "TALLYSTICK_TOKEN="+admin, "curl ", "curl -s ").Replace(script)
	out, code := shell(t, dir, script)
	if code != 0 || !strings.Contains(out, "\n1001\n1006\n") || !strings.Contains(out, `"runs":[{"first":"1026","step":"5","count":5}]`) {
		t.Errorf("%s\nprinted [exit %d]\n%s", script, code, out)
	}
}

// TestRefusedTokensAreLoggedNowAndThen: the first at once, a flood not.
func TestRefusedTokensAreLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	makeToken(t, data, "lease")
	p := start(t, "--data", data)
	for range 50 {
		post(t, http.DefaultClient, p.url+procedures+"Lease", "tally_wrong", "{}")
	}
	if n := strings.Count(p.err.String(), `"msg":"refused","reason":"the token is not known"`); n < 1 || n > 3 {
		t.Errorf("%d lines: %s", n, p.err)
	}
	if strings.Contains(p.err.String(), "tally_wrong") {
		t.Error("a token is in the log")
	}
}
