package realtest_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// redisSays sends one command, its words without spaces, and returns the last
// line of the reply.
func redisSays(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "%s\r\n", command)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if text := lines.Text(); !strings.HasPrefix(text, "$") || text == "$-1" {
			return text
		}
	}
	t.Fatalf("%s: no reply: %v", command, lines.Err())
	return ""
}

func TestRedisKeepsItsDataOnlyWhenAskedTo(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		want     string
	}{
		"by default":  {nil, "$-1"},
		"append only": {[]string{"appendonly yes", "appendfsync always"}, "kept"},
	} {
		t.Run(name, func(t *testing.T) {
			s := realtest.Redis(t, c.settings...)
			if got := redisSays(t, s.Addr, "SET k kept"); got != "+OK" {
				t.Fatal(got)
			}
			for range 2 {
				s.Kill()
				s.Start()
				if got := redisSays(t, s.Addr, "GET k"); got != c.want {
					t.Errorf("after kill: %q, want %q", got, c.want)
				}
			}
			s.Stop()
			s.Start()
			if got := redisSays(t, s.Addr, "GET k"); got != c.want {
				t.Errorf("after stop: %q, want %q", got, c.want)
			}
		})
	}
}
