package main

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsOutOfRangeSayWhatTheyTake(t *testing.T) {
	sound := benchOptions{clients: 1, callers: 1, duration: time.Second}
	if err := sound.check(); err != nil {
		t.Fatal(err)
	}
	negative, many, none := sound, sound, sound
	negative.rate, many.clients, none.duration = -1, 1001, 0
	serve := serveOptions{store: storeOptions{kind: storeBolt}, listen: "127.0.0.1:0", maxInFlight: 1, logLevel: "info"}
	if err := serve.check(); err != nil {
		t.Fatal(err)
	}
	loud := serve
	loud.logLevel = "loud"
	for _, c := range []struct {
		err          error
		what, remedy string
	}{
		{negative.check(), "--rate -1 is out of range", "use 0 or more"},
		{many.check(), "--clients 1001 is out of range", "use 1 to 1000"},
		{none.check(), "--duration 0s is out of range", "use more than 0s"},
		{loud.check(), `--log-level "loud" is not known`, "use debug, info, warn or error"},
	} {
		if f := describe(c.err, true); f.Message != c.what || f.Remedy != c.remedy {
			t.Errorf("%q (%q), want %q (%q)", f.Message, f.Remedy, c.what, c.remedy)
		}
	}
}

func TestMissingCertificateNamesItsFlag(t *testing.T) {
	o := serveOptions{tlsCert: "none.pem", tlsKey: "none-key.pem"}
	if _, err := o.certificate(); err == nil || !strings.Contains(err.Error(), "check --tls-cert") {
		t.Errorf("no certificate: %v", err)
	}
	o.tlsCert = "options_test.go" // a file, at least
	if _, err := o.certificate(); err == nil || !strings.Contains(err.Error(), "check --tls-key") {
		t.Errorf("no key: %v", err)
	}
}
