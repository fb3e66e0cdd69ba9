package migrrpc

import (
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migrrpc/migratev1"
)

func decodeReport(m *migratev1.StatusResponse) migrate.Report {
	r := migrate.Report{
		Status: migrate.Status(m.GetStatus()), Generation: m.GetGeneration(), Phase: migrate.Phase(m.GetPhase()),
		Slots: migrate.SlotReport{Total: m.GetSlots().GetTotal(), Finished: m.GetSlots().GetFinished(), Running: m.GetSlots().GetRunning()},
		Rows:  decodeCounts(m.GetRows()), LastSlot: m.GetLastSlot(), ETA: append([]int64{}, m.GetEtaS()...), Keeper: m.GetKeeper(),
		Workers: []migrate.HeldSlot{},
	}
	for _, w := range m.GetWorkers() {
		r.Workers = append(r.Workers, migrate.HeldSlot{Worker: w.GetWorker(), Slot: w.GetSlot(), Epoch: w.GetEpoch(), Rows: w.GetRows()})
	}
	if v := m.GetVerdict(); v != nil {
		verdict := decodeVerdict(v)
		r.Verdict = &verdict
	}
	return r
}

func decodeCounts(m *migratev1.Rows) migrate.Counts {
	return migrate.Counts{
		Read: m.GetRead(), Bytes: m.GetBytes(), Written: m.GetWritten(), AlreadyNewer: m.GetAlreadyNewer(),
		AlreadyOurs: m.GetAlreadyOurs(), Quarantined: m.GetQuarantined(),
	}
}

func decodeOutlook(m *migratev1.PlanResponse) Outlook {
	o := Outlook{
		Findings: []migrate.Finding{}, Slots: m.GetSlots(), Rows: m.GetRows(), Bytes: m.GetBytes(),
		WriteUnits: m.GetWriteUnits(), Seconds: append([]int64{}, m.GetTimeS()...),
	}
	for _, f := range m.GetFindings() {
		o.Findings = append(o.Findings, migrate.Finding{
			Severity: migrate.Severity(f.GetSeverity()), Field: f.GetField(), Message: f.GetMessage(), Remedy: f.GetRemedy(),
		})
	}
	return o
}

func decodeVerification(m *migratev1.VerifyResponse) Verification {
	return Verification{
		ID: m.GetVerificationId(), Done: m.GetDone(), Compared: m.GetCompared(),
		Verdict: decodeVerdict(m.GetVerdict()), Err: decodeError(m.GetError()),
	}
}

func decodeVerdict(m *migratev1.Verdict) migrate.Verdict {
	return migrate.Verdict{
		Clean: m.GetClean(), Mode: m.GetMode(), Compared: m.GetCompared(),
		Missing: keys(m.GetMissing()), Different: keys(m.GetDifferent()), Extra: keys(m.GetExtra()), Unsettled: keys(m.GetUnsettled()),
		Unmended: decodeUnmended(m.GetUnmended()), Quarantined: m.GetQuarantined(), Plan: m.GetPlan(), At: m.GetAt().AsTime(), Since: m.GetSince().AsTime(),
		Resumed: m.GetResumed(), SourceRows: m.GetSourceRows(), SinkRows: m.GetSinkRows(), Noted: m.GetNoted(), Totals: decodeTotals(m.GetTotals()),
	}
}

func decodeUnmended(ms []*migratev1.Unmended) (all []migrate.Unmended) {
	for _, m := range ms {
		all = append(all, migrate.Unmended{Key: keys([]string{m.GetKey()})[0], Reason: m.GetReason()})
	}
	return all
}

func decodeTotals(m *migratev1.Totals) migrate.Totals {
	return migrate.Totals{
		Missing: m.GetMissing(), Different: m.GetDifferent(), Extra: m.GetExtra(), Unsettled: m.GetUnsettled(), Unmended: m.GetUnmended(),
	}
}

// keys returns what words are; one that is no key stays whole.
func keys(words []string) []migrate.Key {
	var all []migrate.Key
	for _, w := range words {
		k, err := migrate.ParseKey(w)
		if err != nil {
			k = migrate.Key{w}
		}
		all = append(all, k)
	}
	return all
}

func decodeLine(m *migratev1.LedgerLine) migrate.LedgerLine {
	return migrate.LedgerLine{
		Number: m.GetNumber(), Pass: migrate.Pass(m.GetPass()), Slot: m.GetSlot(), Empty: m.GetEmpty(), Counts: decodeCounts(m.GetRows()),
		Digest: m.GetDigest(), Worker: m.GetWorker(), Epoch: m.GetEpoch(), Plan: m.GetPlan(), At: m.GetAt().AsTime(),
	}
}
