package coupon

import "slices"

// Double returns a minter with a copy of m's memory, made by hand like m: the
// process was copied while it ran.
func (m *Minter) Double(workers Workers, setup MinterSetup) *Minter {
	d := NewMinterByHand(workers, setup)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		g := *m.current
		d.current = &g
	}
	if m.lease != nil {
		row := *m.lease
		d.lease = &row
	}
	d.tokens, d.obstacle = slices.Clone(m.tokens), m.obstacle
	return d
}

// LeaseToken returns the token of the lease of a minter that Tend is not busy
// with; "": it has none.
func (m *Minter) LeaseToken() string {
	if m.lease == nil {
		return ""
	}
	return m.lease.Token
}

// Trust plants a fault: the minter takes rows with that token for its own.
func (m *Minter) Trust(token string) { m.tokens = append(m.tokens, token) }
