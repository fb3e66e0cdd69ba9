package coupon

import (
	"errors"
	"fmt"
)

// A Refusal is why a call did nothing. Two refusals of the same code are the
// same to errors.Is.
type Refusal struct {
	Code      string // as the API has it, like ALREADY_REDEEMED
	Retryable bool   // the same call may succeed later
	Message   string // what was wrong and what to do
	Held      []ID   // coupons a user has, of [ErrUserLimit]
	Field     string // of [ErrInvalid]: which one, as the API names it
}

func (r *Refusal) Error() string { return "coupon: " + r.Message }

// Is reports whether target is a refusal of the same code.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

// With returns the refusal with a message of its own.
func (r *Refusal) With(format string, args ...any) *Refusal {
	c := *r
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// The refusals. Each comes back wrapped or with its own message: ask with
// errors.Is.
var (
	ErrInvalid           = refusal("INVALID_ARGUMENT", "the request is malformed")
	ErrPageToken         = refusal("INVALID_PAGE_TOKEN", "the page token is not one of this query: start from the first page")
	ErrUnavailable       = refusal("COUPON_UNAVAILABLE", "no such coupon for this user")
	ErrCampaignNotFound  = refusal("CAMPAIGN_NOT_FOUND", "no such campaign")
	ErrOperationNotFound = refusal("OPERATION_NOT_FOUND", "no such operation")
	ErrAlreadyRedeemed   = refusal("ALREADY_REDEEMED", "the coupon was redeemed by another order")
	ErrExpired           = refusal("EXPIRED", "the coupon is no longer valid")
	ErrNotStarted        = refusal("NOT_STARTED", "the coupon is not valid yet")
	ErrPoolExhausted     = refusal("POOL_EXHAUSTED", "all coupons of the campaign are gone")
	ErrUserLimit         = refusal("USER_LIMIT", "the user has as many coupons of the campaign as allowed")
	ErrReserved          = refusal("RESERVED_BY_OTHER_ORDER", "the coupon is held for another order")
	ErrNotReserved       = refusal("NOT_RESERVED", "the coupon is not held for this order")
	ErrWrongOrder        = refusal("WRONG_ORDER", "the coupon was not redeemed by this order")
	ErrRedemptionVoided  = refusal("REDEMPTION_VOIDED", "the redemption by this order was voided")
	ErrCampaignPaused    = refusal("CAMPAIGN_PAUSED", "the campaign is paused")
	ErrCampaignEnded     = refusal("CAMPAIGN_ENDED", "the campaign has ended")
	ErrInProgress        = retryable("IN_PROGRESS", "the same request is being worked on: ask again")
	ErrTooLarge          = refusal("TOO_LARGE", "the request is too large")
	ErrMismatch          = refusal("IDEMPOTENCY_MISMATCH", "the number was used before with other fields")
	ErrShardUnavailable  = retryable("SHARD_UNAVAILABLE", "the coupon's database does not answer: try again")
	ErrShardMoving       = retryable("SHARD_MOVING", "the coupon's shard is moving: try again")
	ErrPoolRefilling     = retryable("POOL_REFILLING", "coupons of the campaign are being looked for: try again")
)

// errNotGenerated is [ErrPoolRefilling] of a campaign whose generation is not done.
var errNotGenerated = ErrPoolRefilling.With("not all coupons of the campaign are generated: generate them, or try again if that goes on")

func refusal(code, message string) *Refusal { return &Refusal{Code: code, Message: message} }

func retryable(code, message string) *Refusal {
	return &Refusal{Code: code, Message: message, Retryable: true}
}

// invalidField returns an [ErrInvalid] for a field, as the API names it.
func invalidField(field, format string, args ...any) error {
	r := ErrInvalid.With(format, args...)
	r.Field = field
	return r
}

// ErrNoRow is what a [Store] returns for a row that is not there. Flows turn it
// into a refusal.
var ErrNoRow = errors.New("coupon: no such row")

// errLost tells that another transaction changed the row in between.
var errLost = errors.New("coupon: changed by another transaction")
