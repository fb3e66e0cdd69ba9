package migrate

// A suspect is a row that is not equal on both sides at first sight.
type suspect struct {
	key    Key
	row    *Row   // as the source had it last; nil: it has none
	stored Stored // as the sink had it last
}

// A finding of one comparison.
type likeness int

const (
	equal likeness = iota
	missing
	different
	extra
)

// compare decides what a row, nil if there is none, and an item are to each
// other. Tombstones count as absent.
func (v *verification) compare(row *Row, stored Stored) (likeness, error) {
	there := stored.Found && !stored.Tombstone
	switch {
	case row == nil && there:
		return extra, nil
	case row == nil:
		return equal, nil
	case !there:
		return missing, nil
	}
	expected, err := v.m.sink.Expect(*row)
	if err != nil {
		return different, err
	}
	if expected.Version != stored.Version || expected.Digest != stored.Digest {
		return different, nil
	}
	return equal, nil
}

// moved reports whether either side has changed since before.
func (s suspect) moved(before suspect) bool {
	if (s.row == nil) != (before.row == nil) || s.stored.Found != before.stored.Found || s.stored.Version != before.stored.Version {
		return true
	}
	return s.row != nil && s.row.Version != before.row.Version
}
