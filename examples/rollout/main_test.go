package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

// TestMain is the program itself when it is started as a writer.
func TestMain(m *testing.M) {
	if os.Getenv(writerEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func servers(t *testing.T) {
	t.Helper()
	t.Setenv("PG_DSN", realtest.PostgresDSN(t))
	t.Setenv("DYNAMODB_ENDPOINT", realtest.Dynalite(t).URL)
}

func TestAllPhasesEndWithoutDifferencesWhileWritersDie(t *testing.T) {
	servers(t)
	var out bytes.Buffer
	err := run(t.Context(), &out, t.Output())
	t.Logf("it printed:\n%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), " 0 differences"); n != 3 {
		t.Errorf("%d phases tell 0 differences, want 3", n)
	}
}

func TestOldInPostgreSQL(t *testing.T) {
	servers(t)
	rollouttest.TestOld(t, func(t *testing.T) rollout.OldSide[key, string] { return emptySides(t).old }, event, value)
}

func TestNewInDynamoDB(t *testing.T) {
	servers(t)
	s := emptySides(t)
	used := 0
	open := func(*testing.T) rollout.NewSide[key, string] { used++; return s.new }
	rollouttest.TestNew(t, open, func(i int) key { return event(100*used + i) }, value)
}

func value(i int) string { return fmt.Sprintf(`{"n": %d}`, i) }

func emptySides(t *testing.T) *sides {
	t.Helper()
	s, err := openSides(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.old.pool.Close)
	if err := s.setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
