package coupon

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// An ID is the id of a coupon. Its shard is ID mod 32.
type ID = shard.ID

// A Status is what a coupon is. Its number is what the database holds.
type Status uint8

// The statuses. Expired is never stored by a flow: it is computed, and so is
// Issued of a coupon whose reservation has lapsed.
const (
	Available Status = 0 // generated, nobody's
	Issued    Status = 1
	Redeemed  Status = 2
	Expired   Status = 3
	Reserved  Status = 4 // held for an order
	Voided    Status = 5
)

// Statuses returns all of them.
func Statuses() []Status { return []Status{Available, Issued, Redeemed, Expired, Reserved, Voided} }

// ParseStatus returns the status of a name in capitals, and whether it is one.
func ParseStatus(name string) (Status, bool) {
	k := slices.Index(statusNames[:], name)
	return Status(k), k >= 0
}

var statusNames = [...]string{"AVAILABLE", "ISSUED", "REDEEMED", "EXPIRED", "RESERVED", "VOIDED"}

// String returns the name in capitals, as the API has it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "UNKNOWN"
}

// A Coupon is a coupon as its shard holds it. Its terms, which are value, window
// and void policy, are copies of the campaign's: changing a campaign changes no
// coupon that was issued.
type Coupon struct {
	ID         ID
	Code       Code
	Campaign   int64
	Kind       string
	Value      Amount
	VoidPolicy VoidPolicy
	Attributes json.RawMessage // of the campaign, up to 1 KiB; nil: none

	Status   Status    // as stored; see [Coupon.At]
	User     string    // owner; "": nobody's, or a bearer coupon once it is issued
	Order    string    // that it was issued to; "": it was not
	IssuedAt time.Time // to the order or the user, whichever was first
	Valid    Window

	ReservedOrder string // who holds it, or held it last
	ReservedUntil time.Time
	RedeemedOrder string
	RedeemedUser  string // who redeemed a bearer coupon; "": not said
	RedeemedAt    time.Time

	Version uint32 // 1 when generated, one more with each change
	Created time.Time
	Updated time.Time
}

// OwnedBy reports whether a user may be told precisely about the coupon: the
// owner, or who redeemed it as a bearer coupon.
func (c Coupon) OwnedBy(user string) bool {
	if c.Status == Available || user == "" {
		return false
	}
	return user == c.User || c.User == "" && user == c.RedeemedUser
}

// A VoidPolicy says what becomes of a coupon whose redemption is voided.
type VoidPolicy struct {
	Kind string // RESTORE
	Days int    // of grace, for a kind that has them
}

// Restore gives the coupon back with its original end.
const Restore = "RESTORE"
