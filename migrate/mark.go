package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
)

// Marks keep how far a full verification has come, so that one that was killed
// is gone on with.
//
// The mark belongs to the verification that took it last. Two at once both come
// to a verdict: the later one goes on from where the earlier one has come, and
// the earlier one compares on to its end without saving.
type Marks interface {
	// TakeMark makes verifier the owner of the mark and returns what was saved
	// last, and false if nothing was. It can be repeated.
	TakeMark(ctx context.Context, verifier string) (m Mark, found bool, err error)
	// SaveMark saves how far verifier has come, in the place of what was saved
	// before. It fails with [ErrNotHeld] once another one took the mark, or its
	// verdict was recorded.
	SaveMark(ctx context.Context, verifier string, m Mark) error
}

// A Mark is how far a full verification has come. Its size is bounded: by
// maxMarked suspects and the sink's position of a scan.
type Mark struct {
	Plan       string    `json:"plan"`       // its hash
	Generation uint64    `json:"generation"` // of the run
	Aside      string    `json:"aside"`      // of the rows that were in quarantine, see asideOf
	Began      time.Time `json:"began"`
	Saved      time.Time `json:"saved"`
	Compared   int64     `json:"compared"` // rows up to Last
	Last       Key       `json:"last"`     // every row up to this one is compared; nil: none
	Paged      bool      `json:"paged"`    // every row of the source is compared
	Position   string    `json:"position"` // of the scan of the sink, "": its beginning
	Scanned    bool      `json:"scanned"`  // every item of the sink is looked up
	Open       string    `json:"open"`     // token of the transactions that were open then, "": none was taken
	Suspects   []Suspect `json:"suspects"` // to be read again, of what is compared
}

// A Suspect is a row that was not equal on both sides when it was compared.
type Suspect struct {
	Key     Key    `json:"key"`
	Ref     string `json:"ref"`     // how the sink names the item
	Scanned bool   `json:"scanned"` // the scan of the sink came upon the item
}

// maxMarked is how many suspects a mark has at most. A verification with more
// keeps the mark it saved before.
const maxMarked = 2_000

// continues reports whether what m says of before still holds for a
// verification that begins as fresh, with last as the verdict: of the same plan
// and the same run, with the same rows in quarantine, which are not compared,
// not after a pause of more than a day, and not if something was found to be
// wrong since.
func (m Mark) continues(fresh Mark, last Verdict) bool {
	return m.Plan == fresh.Plan && m.Generation == fresh.Generation && m.Aside == fresh.Aside &&
		fresh.Began.Sub(m.Saved) <= markPause && (last.Clean || !m.Began.Before(last.At))
}

// asideOf returns a word for a set of keys in quarantine: no other set has it.
func asideOf(keys map[string]bool) string {
	if len(keys) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(keys)), "\n")))
	return hex.EncodeToString(sum[:16])
}
