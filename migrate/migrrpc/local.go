package migrrpc

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/migrate"
)

// A Local is the [Service] of a migration in this process.
type Local struct {
	m      *migrate.Migration
	plan   migrate.Plan
	source migrate.Source
	state  migrate.State
	runs   *verifier
}

var _ Service = (*Local)(nil)

// NewLocal returns the service of m, which has these parts. source may be nil
// for a process that only looks at or changes the status: it cannot Plan, nor
// Start what was never started. Close it before the parts.
func NewLocal(m *migrate.Migration, plan migrate.Plan, source migrate.Source, state migrate.State) *Local {
	return &Local{m: m, plan: plan, source: source, state: state, runs: newVerifier(m.Verify)}
}

// Close ends the verification that is running.
func (l *Local) Close() error {
	l.runs.close()
	return nil
}

// Status implements [Service].
func (l *Local) Status(ctx context.Context) (migrate.Report, error) { return l.m.Report(ctx) }

// Plan implements [Service].
func (l *Local) Plan(ctx context.Context) (Outlook, error) {
	findings, err := l.m.Preflight(ctx)
	if err != nil {
		return Outlook{}, err
	}
	o := Outlook{Findings: append([]migrate.Finding{}, findings...), Seconds: []int64{}}
	if migrate.FirstRefusal(findings) != nil {
		return o, nil // a source that is refused need not have an extent
	}
	e, err := l.source.Extent(ctx)
	if err != nil {
		return Outlook{}, fmt.Errorf("estimate: %w", err)
	}
	now, err := l.source.Now(ctx)
	if err != nil {
		return Outlook{}, fmt.Errorf("estimate: %w", err)
	}
	return o, o.estimate(l.plan, e, now)
}

// Start implements [Service].
func (l *Local) Start(ctx context.Context) (migrate.Status, error) {
	r, err := l.m.Report(ctx)
	if err != nil {
		return "", err
	}
	if r.Status == migrate.NotStarted || r.Status == "" {
		findings, err := l.m.Preflight(ctx)
		if err != nil {
			return "", err
		}
		if err := migrate.FirstRefusal(findings); err != nil {
			return "", err
		}
	}
	return l.m.Start(ctx)
}

// Stop implements [Service].
func (l *Local) Stop(ctx context.Context) (migrate.Status, error) { return l.m.Stop(ctx, false) }

// Verify implements [Service].
func (l *Local) Verify(_ context.Context, req VerifyRequest) (Verification, error) {
	if req.ID != "" {
		return l.runs.get(req.ID)
	}
	o, err := req.options(l.plan)
	if err != nil {
		return Verification{}, err
	}
	return l.runs.begin(o)
}

// options returns the request as the domain has it.
func (r VerifyRequest) options(plan migrate.Plan) (migrate.VerifyOptions, error) {
	o := migrate.VerifyOptions{Mode: r.Mode, Repair: r.Repair}
	switch {
	case r.Mode != "counts" && r.Mode != "samples" && r.Mode != "full":
		return o, &Error{connect.CodeInvalidArgument, "mode", fmt.Sprintf("%q is not known", r.Mode), "use counts, samples or full"}
	case r.Mode == "counts" && (r.Repair || r.Only != ""):
		return o, &Error{connect.CodeInvalidArgument, "mode", "counts looks at the whole and names no rows", "use samples or full"}
	case r.Only != "":
		slot, err := plan.Axis().ParseName(r.Only)
		if err != nil {
			return o, &Error{connect.CodeInvalidArgument, "only", oneLine(err), "`tallystick migrate report` lists the slots"}
		}
		o.Only = &slot
	}
	return o, nil
}

// Ledger implements [Service].
func (l *Local) Ledger(ctx context.Context, from int64, limit int) ([]migrate.LedgerLine, error) {
	return l.state.Ledger(ctx, from, limit)
}

// Replay implements [Service].
func (l *Local) Replay(ctx context.Context) (settled, left int, err error) { return l.m.Replay(ctx) }

// What one request to a sink is taken to last, between two networks.
const (
	fastRequest = 5 * time.Millisecond
	slowRequest = 20 * time.Millisecond
)

// unitBytes is what one write unit of DynamoDB stores: a kilobyte begun.
const unitBytes = 1024

// estimate fills in what a migration of e by plan takes.
func (o *Outlook) estimate(plan migrate.Plan, e migrate.Extent, now time.Time) error {
	slots, err := plan.Span(e, now)
	o.Slots = slots.Hi - slots.Lo
	if err != nil || e.Rows == 0 {
		return err
	}
	o.Rows, o.Bytes = e.Rows, e.Rows*e.RowBytes
	o.WriteUnits = e.Rows * max(1, (e.RowBytes+unitBytes-1)/unitBytes)
	lo, hi := o.seconds(plan, fastRequest), o.seconds(plan, slowRequest)
	o.Seconds = []int64{int64(lo) + 1, int64(hi) + 1}
	return nil
}

// seconds returns how long one pod takes if a request lasts d, or as long as
// the plan's limits make it.
func (o *Outlook) seconds(plan migrate.Plan, d time.Duration) float64 {
	rows := 1 // a conditional put is a request of its own
	if plan.Write.Mode == migrate.Overwrite {
		rows = plan.Sink.BatchRows
	}
	s := float64(o.Rows) * d.Seconds() / float64(plan.Workers*rows)
	if plan.Limits.ReadRows > 0 {
		s = max(s, float64(o.Rows)/plan.Limits.ReadRows)
	}
	if plan.Limits.WriteUnits > 0 {
		s = max(s, float64(o.WriteUnits)/plan.Limits.WriteUnits)
	}
	return s
}
