package migpg_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// TestOpenRefusesAPoolerThatForgetsSettings, as PgBouncer does with
// ignore_startup_parameters.
func TestOpenRefusesAPoolerThatForgetsSettings(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable)
	plan := planOf(db, "t", "id")
	host, _, _ := strings.Cut(strings.SplitAfter(plan.Source.DSN, "@")[1], "/")
	plan.Source.DSN = strings.Replace(plan.Source.DSN, host, forgetful(t, host), 1)
	_, err := migpg.Open(t.Context(), plan)
	f, ok := errors.AsType[migrate.Finding](err)
	if !ok || f.Field != "source.dsn" || !strings.Contains(f.Message, "the settings of a session are not kept: ") || !strings.Contains(f.Message, " is ") {
		t.Fatalf("%v", err)
	}
	if errors.Is(err, migrate.ErrTransient) {
		t.Error("it is to be tried again")
	}
	run(t, db, "alter database "+db.Config().Database+" set timezone = 'UTC'") // one that is right by chance
	if _, err := migpg.Open(t.Context(), plan); err == nil || strings.Contains(err.Error(), "TimeZone") {
		t.Errorf("%v", err)
	}
}

// forgetful returns the address of a proxy of a server that passes on no
// parameter of a session but the user and the database.
func forgetful(t *testing.T, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go forget(client, server)
		}
	}()
	return l.Addr().String()
}

func forget(client net.Conn, server string) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	startup := make([]byte, 8)
	if _, err := io.ReadFull(client, startup); err != nil {
		return
	}
	parameters := make([]byte, binary.BigEndian.Uint32(startup)-8)
	if _, err := io.ReadFull(client, parameters); err != nil {
		return
	}
	var kept strings.Builder
	words := strings.Split(string(parameters), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "user" || words[i] == "database" {
			kept.WriteString(words[i] + "\x00" + words[i+1] + "\x00")
		}
	}
	kept.WriteByte(0)
	binary.BigEndian.PutUint32(startup, uint32(8+kept.Len()))
	if _, err := io.WriteString(up, string(startup)+kept.String()); err != nil {
		return
	}
	go func() {
		io.Copy(up, client)
		up.Close()
	}()
	io.Copy(client, up)
}
