package bench

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// An application is a double-writer in a process of its own, with a way to the
// sink of its own, so that the proxy of the migration counts the copy alone.
type application struct {
	m        *migration
	plan     string
	endpoint string
	cmd      *exec.Cmd
	kills    int
	left     int // most notes that were in the outbox after a kill
}

// application starts one. Its way to the sink has the faults of rule.
func (m *migration) application(plan string, rule func(realtest.DynamoRequest) realtest.Fault) *application {
	m.t.Helper()
	way := realtest.NewDynamoProxy(m.t, m.sink.URL)
	way.Inject(rule)
	a := &application{m: m, plan: plan, endpoint: way.URL}
	a.start()
	return a
}

// start returns when the application has begun to change rows.
func (a *application) start() {
	a.m.t.Helper()
	a.cmd = exec.Command(os.Args[0])
	a.cmd.Env = append(append([]string{}, a.m.env...), "DYNAMODB_ENDPOINT="+a.endpoint, writerEnv+"="+a.plan)
	a.cmd.Stderr = os.Stderr
	realtest.DieWithTest(a.cmd)
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		a.m.t.Errorf("double-writer: %v", err)
	}
}

// kill ends it with kill -9. What it was about stays in the outbox.
func (a *application) kill() {
	a.m.t.Helper()
	a.cmd.Process.Kill()
	a.cmd.Wait()
	if code := a.cmd.ProcessState.ExitCode(); code >= 0 {
		a.m.t.Errorf("double-writer: exit %d before it was killed", code)
	}
	a.kills++
	if n, err := a.m.notes(); err == nil { // else the database is down just now
		a.left = max(a.left, n)
	}
}

// dieOften kills it again and again until ctx ends, and then for good.
func (a *application) dieOften(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-time.After(every/2 + rand.N(every)):
			a.kill()
			a.start()
		case <-ctx.Done():
			a.kill()
			return
		}
	}
}

// notes returns how many notes are in the outbox.
func (m *migration) notes() (n int, err error) {
	err = m.pool.QueryRow(m.t.Context(), "select count(*) from tallystick_outbox").Scan(&n)
	return n, err
}

// changes returns how many changes double-writers have begun.
func (m *migration) changes() (n int) {
	m.t.Helper()
	if err := m.pool.QueryRow(m.t.Context(), "select last_value from tallystick_outbox_id_seq").Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}
