package migrate

// A suspect is a row or an item that was not equal on both sides when it was
// compared.
type suspect struct {
	key     Key
	there   bool   // the source had a row
	version int64  // of that row
	stored  Stored // as the sink had the item last
	scanned bool   // the item itself is suspected, whichever one the row is to have
}

// suspectOf returns a suspect as it was seen: row is nil if there is none.
func suspectOf(k Key, row *Row, stored Stored, scanned bool) suspect {
	s := suspect{key: k, there: row != nil, stored: stored, scanned: scanned}
	if row != nil {
		s.version = row.Version
	}
	return s
}

// name returns the key of the row. An item that is no row's is named by its own.
func (s suspect) name() Key {
	k := s.key
	if len(k) == 0 {
		k, _ = ParseKey(s.stored.Ref)
	}
	return k
}

// moved reports whether either side has changed since before.
func (s suspect) moved(before suspect) bool {
	return s.there != before.there || s.version != before.version ||
		s.stored.Found != before.stored.Found || s.stored.Version != before.stored.Version
}

// A likeness is what a row and an item are to each other.
type likeness int

const (
	equal likeness = iota
	missing
	different
	extra
)

// compare decides what a row, nil if there is none, and an item are to each
// other. Tombstones count as absent. Nothing is equal to a row that the sink
// can never hold.
func (v *verification) compare(row *Row, stored Stored) likeness {
	there := stored.Found && !stored.Tombstone
	switch {
	case row == nil && there:
		return extra
	case row == nil:
		return equal
	case !there:
		return missing
	}
	expected, err := v.m.sink.Expect(*row)
	if err != nil || expected.Version != stored.Version || expected.Digest != stored.Digest {
		return different
	}
	return equal
}

// elsewhere reports whether row is to be in another item than it: the item is
// left from before the row's place in the sink changed.
func (v *verification) elsewhere(row Row, it Stored) bool {
	expected, err := v.m.sink.Expect(row)
	return err == nil && expected.Ref != it.Ref
}

// mapped returns r as the sink is to have it. Of a row that cannot be mapped
// the key is left, which is like nothing that the sink has.
func (v *verification) mapped(r Row) Row {
	m, err := v.m.mapping(r)
	if err != nil {
		return Row{Key: r.Key, Version: r.Version}
	}
	return m
}
