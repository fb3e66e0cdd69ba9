package migrrpc

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migrrpc/migratev1"
)

func encodeReport(r migrate.Report) *migratev1.StatusResponse {
	m := &migratev1.StatusResponse{
		Status: string(r.Status), Generation: r.Generation, Phase: string(r.Phase),
		Slots: &migratev1.Slots{Total: r.Slots.Total, Finished: r.Slots.Finished, Running: r.Slots.Running},
		Rows:  encodeCounts(r.Rows), LastSlot: r.LastSlot, EtaS: r.ETA, Keeper: r.Keeper,
	}
	for _, w := range r.Workers {
		m.Workers = append(m.Workers, &migratev1.Worker{Worker: w.Worker, Slot: w.Slot, Epoch: w.Epoch, Rows: w.Rows})
	}
	if r.Verdict != nil {
		m.Verdict = encodeVerdict(*r.Verdict)
	}
	return m
}

func encodeCounts(c migrate.Counts) *migratev1.Rows {
	return &migratev1.Rows{
		Read: c.Read, Bytes: c.Bytes, Written: c.Written, AlreadyNewer: c.AlreadyNewer,
		AlreadyOurs: c.AlreadyOurs, Quarantined: c.Quarantined,
	}
}

func encodeOutlook(o Outlook) *migratev1.PlanResponse {
	m := &migratev1.PlanResponse{Slots: o.Slots, Rows: o.Rows, Bytes: o.Bytes, WriteUnits: o.WriteUnits, TimeS: o.Seconds}
	for _, f := range o.Findings {
		m.Findings = append(m.Findings, &migratev1.Finding{Severity: string(f.Severity), Field: f.Field, Message: f.Message, Remedy: f.Remedy})
	}
	return m
}

func encodeVerification(v Verification) *migratev1.VerifyResponse {
	m := &migratev1.VerifyResponse{VerificationId: v.ID, Done: v.Done, Compared: v.Compared, Error: encodeError(v.Err)}
	if v.Done && v.Err == nil {
		m.Verdict = encodeVerdict(v.Verdict)
	}
	return m
}

func encodeVerdict(v migrate.Verdict) *migratev1.Verdict {
	return &migratev1.Verdict{
		Clean: v.Clean, Mode: v.Mode, Compared: v.Compared,
		Missing: words(v.Missing), Different: words(v.Different), Extra: words(v.Extra), Unsettled: words(v.Unsettled),
		Unmended: encodeUnmended(v.Unmended), Quarantined: v.Quarantined, Plan: v.Plan, At: timestamppb.New(v.At), Since: timestamppb.New(v.Since),
		Resumed: v.Resumed, SourceRows: v.SourceRows, SinkRows: v.SinkRows, Noted: v.Noted,
		Totals: &migratev1.Totals{
			Missing: v.Totals.Missing, Different: v.Totals.Different, Extra: v.Totals.Extra,
			Unsettled: v.Totals.Unsettled, Unmended: v.Totals.Unmended,
		},
	}
}

func encodeUnmended(all []migrate.Unmended) []*migratev1.Unmended {
	ms := make([]*migratev1.Unmended, len(all))
	for i, u := range all {
		ms[i] = &migratev1.Unmended{Key: u.Key.String(), Reason: u.Reason}
	}
	return ms
}

// words returns keys as words.
func words(keys []migrate.Key) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.String()
	}
	return all
}

func encodeLine(l migrate.LedgerLine) *migratev1.LedgerLine {
	return &migratev1.LedgerLine{
		Number: l.Number, Pass: string(l.Pass), Slot: l.Slot, Empty: l.Empty, Rows: encodeCounts(l.Counts), Digest: l.Digest,
		Worker: l.Worker, Epoch: l.Epoch, Plan: l.Plan, At: timestamppb.New(l.At),
	}
}
