package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

// runFlags are the flags of a pod.
type runFlags struct {
	start    bool
	try      tryFlags
	interval time.Duration
	serve    serveOptions // for --listen
}

func newMigrateRun(p *planFile) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Be one pod: copy with all others that run",
		Long: `Be one pod of the migration. It waits until the migration is started, works while
it is in progress, idles while it is stopped, and ends when it is finished: with
exit code 0, or 3 if rows are in quarantine. Any number of pods may run, and any
of them may be killed: what it held is free after state.lock_ttl.

On a terminal it shows how far the migration has come; elsewhere it prints that
as one line of JSON every --interval. SIGTERM and SIGINT stop only this pod, with
exit code 0: what it holds is saved and free at once. ` + "`tallystick migrate stop`" + `
stops all.

--only and --max-rows try a part: those rows are copied, or refused with their
reasons, and nothing is recorded, so that the run itself copies them again.

With --listen it serves /metrics, /livez, /readyz and the service
tallystick.migrate.v1.MigrationService there. Beyond the loopback interface tokens
and TLS are both required, as by serve.`,
		Example: `  tallystick migrate run -f plan.yaml --start
  tallystick migrate run -f plan.yaml --listen 127.0.0.1:7071`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return p.c.run(cmd.Context(), p, &f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *runFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.start, "start", false, "look at everything first, as by plan, and start the migration")
	flags.StringVar(&f.try.only, "only", "", "try: copy only this `slot`, record nothing and end")
	flags.Int64Var(&f.try.maxRows, "max-rows", 0, "try: copy only so `many` rows, record nothing and end")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "`time` between lines of JSON where there is no terminal")
	flags.StringVar(&f.serve.listen, "listen", "", "`address` to serve metrics and the service on")
	flags.StringVar(&f.serve.store.data, "data", "./data", "`folder` with the token file")
	f.serve.addGuard(flags)
	f.serve.addLog(cmd)
	f.serve.maxInFlight = 64
}

func (f *runFlags) check() error {
	if f.interval < 100*time.Millisecond {
		return &usageError{err: fmt.Errorf("--interval %s is out of range", f.interval), field: "interval", remedy: "use 100ms or more"}
	}
	if err := f.try.check(f.start); err != nil {
		return err
	}
	if f.serve.listen == "" {
		return nil
	}
	return f.serve.checkListen()
}

// run runs a pod until the migration is finished or ctx ends, which is no
// failure.
func (c *cli) run(ctx context.Context, p *planFile, f *runFlags) error {
	err := c.runPod(ctx, p, f)
	if ctx.Err() != nil && !f.try.asked() && !isUsage(err) {
		return nil
	}
	return interrupted(ctx, err)
}

// useMemory sets the garbage collector for a pod, unless the environment has
// settings: a pod keeps little, so that it may make five times as much before it
// is looked through, which saves a sixth of its time, up to what the plan says a
// pod should use. Beyond that the collector takes half of the time at the most.
func useMemory(plan migrate.Plan) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(plan.Memory())
	}
}

func (c *cli) runPod(ctx context.Context, p *planFile, f *runFlags) (err error) {
	screen := c.newScreen()
	log, err := newLogger(maskingWriter{screen, &c.secrets}, f.serve.logLevel, f.serve.logFormatOn(c.err))
	if err != nil {
		return err
	}
	plan, err := p.read()
	if err != nil {
		return err
	}
	useMemory(plan)
	door, err := f.serve.door(log)
	if err != nil {
		return err
	}
	j, err := p.openPatiently(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, j) }()
	if f.try.asked() {
		return placeIn(j.plan, c.try(ctx, j, f.try))
	}
	stopServing, err := door.serve(ctx, j)
	if err != nil {
		return err
	}
	defer stopServing()
	if f.start {
		if _, err := j.local.Start(ctx); err != nil {
			return placeIn(j.plan, err)
		}
	}
	if err := c.work(ctx, j, screen, f.interval); err != nil {
		return err
	}
	return c.ended(ctx, j)
}

// podPatience is how long a pod that starts waits for a server that does not
// answer, as one that is being restarted.
const podPatience = time.Minute

// openPatiently opens all parts, again and again while a server is away.
func (p *planFile) openPatiently(ctx context.Context, log *slog.Logger) (*job, error) {
	for began := time.Now(); ; {
		j, err := p.open(ctx, allParts, log)
		if !errors.Is(err, migrate.ErrTransient) || time.Since(began) > podPatience {
			return j, err
		}
		log.Warn("not open yet", "error", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

// work is the pod, with its progress shown.
func (c *cli) work(ctx context.Context, j *job, screen *screen, interval time.Duration) error {
	watching, enough := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { c.watch(watching, j, screen, interval) })
	err := j.m.Run(ctx)
	enough()
	watcher.Wait()
	return err
}

// ended says how a pod has ended.
func (c *cli) ended(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return nil
	}
	n, unlisted := j.listQuarantined(ctx)
	if n == 0 {
		return stale(j.plan, unlisted)
	}
	return c.quarantineExit(quarantineFailure(j.plan, n, unlisted))
}

// logFormatOn returns the form of a log that is shown on w.
func (o *serveOptions) logFormatOn(w io.Writer) string {
	if o.logFormat == "" && terminal(w) {
		return "text"
	}
	return o.logFormat
}
