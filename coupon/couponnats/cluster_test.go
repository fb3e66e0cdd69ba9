package couponnats_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/tallystick/tallystick/coupon/couponnats"
)

// listening starts a server of its own that listens on a free port.
func listening(t *testing.T, edit func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()}
	if edit != nil {
		edit(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s
}

// A realm is an operator with one account, and its users.
type realm struct {
	operator, account nkeys.KeyPair
	claims            *jwt.OperatorClaims
	accountKey        string
	accountJWT        string
	system, systemJWT string // the server's own account
}

func newRealm(t *testing.T) realm {
	t.Helper()
	var r realm
	var err error
	if r.operator, err = nkeys.CreateOperator(); err != nil {
		t.Fatal(err)
	}
	if r.account, err = nkeys.CreateAccount(); err != nil {
		t.Fatal(err)
	}
	operatorKey, _ := r.operator.PublicKey()
	r.claims = jwt.NewOperatorClaims(operatorKey)
	r.accountKey, _ = r.account.PublicKey()
	claims := jwt.NewAccountClaims(r.accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	if r.accountJWT, err = claims.Encode(r.operator); err != nil {
		t.Fatal(err)
	}
	system, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	r.system, _ = system.PublicKey()
	if r.systemJWT, err = jwt.NewAccountClaims(r.system).Encode(r.operator); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r realm) configure(o *server.Options) {
	o.TrustedOperators = []*jwt.OperatorClaims{r.claims}
	resolver := &server.MemAccResolver{}
	resolver.Store(r.accountKey, r.accountJWT)
	resolver.Store(r.system, r.systemJWT)
	o.AccountResolver, o.SystemAccount = resolver, r.system
}

// credentials writes a file for a user whom an account vouches for, and returns
// its path and the secret in it.
func credentials(t *testing.T, account nkeys.KeyPair) (path, secret string) {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := user.PublicKey()
	seed, _ := user.Seed()
	token, err := jwt.NewUserClaims(public).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	content, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, string(seed)
}

func TestQueueElsewhere(t *testing.T) {
	realm := newRealm(t)
	server := listening(t, realm.configure)
	file, secret := credentials(t, realm.account)
	var out logBuffer
	o := couponnats.Options{
		URL: server.ClientURL(), Credentials: file, Readers: []string{"wallet"},
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	a, b := open(t, o), open(t, o) // two processes
	logs := newReaderLog()
	stopA, stopB := read(t, a, "wallet", logs.handle), read(t, b, "wallet", logs.handle)
	for i := range 50 {
		publish(t, a, row(i+1, 2))
		publish(t, b, row(i+1, 2), row(i+1, 3))
	}
	logs.await(t, 100)
	stopA()
	stopB()
	if got := logs.await(t, 100); len(got) != 100 {
		t.Errorf("%d messages, want 100 shared between the two", len(got))
	}

	stranger, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	var strangers string
	o.Credentials, strangers = credentials(t, stranger)
	_, err = couponnats.Open(t.Context(), o)
	if err == nil || strings.Contains(err.Error(), strangers) {
		t.Errorf("a stranger: %v", err)
	}
	if log := out.String(); strings.Contains(log, secret) || strings.Contains(log, strangers) {
		t.Errorf("log has a secret: %s", log)
	}
	o.Credentials = filepath.Join(t.TempDir(), "none")
	if _, err := couponnats.Open(t.Context(), o); err == nil {
		t.Error("opened without a file of credentials")
	}
}
