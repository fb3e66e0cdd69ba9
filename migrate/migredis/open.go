package migredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/migrate"
)

// An openSlot is what is known of a slot that is not finished.
type openSlot struct {
	entry
	pass     migrate.Pass
	slot     migrate.Slot
	born     int64
	progress migrate.Progress
	worker   string // "": nobody holds it
}

func (o opened) decode() (s openSlot, err error) {
	s.pass, s.worker = o.Pass, o.Worker
	if s.entry, s.slot, err = decodeEntry(o.Entry); err != nil {
		return s, err
	}
	if s.born, err = strconv.ParseInt(cmp.Or(s.Born, "0"), 10, 64); err != nil {
		return s, err
	}
	s.progress, err = decodeProgress(o.States, s.Lo)
	return s, err
}

// addOpen adds what is open to v: newest first, parts as they were split off.
func addOpen(v *migrate.View, open []opened) error {
	var all []openSlot
	for _, o := range open {
		s, err := o.decode()
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b openSlot) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(a.born, b.born))
	})
	for _, s := range all {
		s.addTo(v)
	}
	return nil
}

func (s openSlot) addTo(v *migrate.View) {
	if s.worker != "" {
		epoch, rest := epochAnd(s.worker)
		_, worker, _ := strings.Cut(rest, " ")
		v.Live = append(v.Live, migrate.Held{Pass: s.pass, Slot: s.slot, Worker: worker, Epoch: epoch, Counts: s.progress.Counts})
	}
	if s.slot.Below != nil && !s.Done {
		v.Open = append(v.Open, s.slot)
	}
	v.Counts = v.Counts.Plus(s.progress.Counts)
}

// epochAnd cuts text into an epoch and the rest.
func epochAnd(text string) (epoch uint64, rest string) {
	digits, rest, _ := strings.Cut(text, " ")
	epoch, _ = strconv.ParseUint(digits, 10, 64)
	return epoch, rest
}
