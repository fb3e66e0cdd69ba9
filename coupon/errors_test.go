package coupon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// contract are the codes that callers may meet. They switch on them: one more
// breaks who does not know it.
var contract = []string{
	"INVALID_ARGUMENT", "INVALID_PAGE_TOKEN",
	"UNAUTHENTICATED", "PERMISSION_DENIED",
	"COUPON_UNAVAILABLE", "CAMPAIGN_NOT_FOUND", "OPERATION_NOT_FOUND",
	"ALREADY_REDEEMED", "EXPIRED", "NOT_STARTED", "POOL_EXHAUSTED", "USER_LIMIT", "RESERVED_BY_OTHER_ORDER", "NOT_RESERVED",
	"WRONG_ORDER", "REDEMPTION_VOIDED", "CAMPAIGN_PAUSED", "CAMPAIGN_ENDED", "IN_PROGRESS",
	"TOO_LARGE", "IDEMPOTENCY_MISMATCH", "RATE_LIMITED",
	"SHARD_UNAVAILABLE", "SHARD_MOVING", "POOL_REFILLING",
}

// ofTransport are the codes of what is refused before a service is asked.
var ofTransport = []string{"UNAUTHENTICATED", "PERMISSION_DENIED", "RATE_LIMITED"}

func TestCodesAreThoseOfTheContract(t *testing.T) {
	table, err := os.ReadFile("../docs/coupon.md")
	if err != nil {
		t.Fatal(err)
	}
	_, errorsPart, _ := strings.Cut(string(table), "## Errors")
	errorsPart, _, _ = strings.Cut(errorsPart, "\n## ")
	_, rows, _ := strings.Cut(errorsPart, "|---|")
	onlyCodes(t, "docs/coupon.md", rows, "`([A-Z_]+)`", contract)

	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(file, "_test.go") {
			source.Write(text)
		}
	}
	domain := slices.DeleteFunc(slices.Clone(contract), func(code string) bool { return slices.Contains(ofTransport, code) })
	onlyCodes(t, "the package", source.String(), `(?:refusal|retryable)\("([A-Z_]+)"`, domain)
}

// onlyCodes fails the test if the codes that pattern finds in text are not those
// wanted.
func onlyCodes(t *testing.T, where, text, pattern string, want []string) {
	t.Helper()
	var got []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Compact(got)); diff != "" {
		t.Errorf("codes of %s, - want, + got:\n%s", where, diff)
	}
}

func TestWhatShardsAndIDsSayIsToldAsARetryableRefusal(t *testing.T) {
	s := coupon.NewService(nil, nil, coupon.Options{})
	defer s.Close()
	for err, want := range map[error]*coupon.Refusal{
		shard.ErrMoved:       coupon.ErrShardMoving,
		shard.ErrUnavailable: coupon.ErrShardUnavailable,
		shard.ErrBusy:        coupon.ErrShardUnavailable,
		shard.ErrUnknown:     coupon.ErrShardUnavailable,
		coupon.ErrNoIDs:      coupon.ErrShardUnavailable,
	} {
		told, ok := errors.AsType[*coupon.Refusal](s.RefusalOf(fmt.Errorf("db7: %w", err)))
		if !ok || told.Code != want.Code || !told.Retryable || strings.Contains(told.Message, "db7") {
			t.Errorf("%v is told as %+v", err, told)
		}
	}
}

// A mute control database does not say whether it committed.
type mute struct{ coupon.Control }

func (mute) AddCampaign(context.Context, coupon.Campaign, coupon.Once) (coupon.Campaign, error) {
	return coupon.Campaign{}, fmt.Errorf("commit: %w", shard.ErrUnknown)
}

type one struct{}

func (one) Next(context.Context, string) (int64, error) { return 1, nil }

// TestCampaignThatIsPerhapsThere is not to be created again but under a key, under
// which it is the same one.
func TestCampaignThatIsPerhapsThere(t *testing.T) {
	s := coupon.NewService(nil, mute{}, coupon.Options{Numbers: one{}})
	defer s.Close()
	c := coupon.Campaign{Name: "n", Total: 1, TimeZone: "UTC", ValidUntil: time.Now().Add(time.Hour), Value: coupon.Amount{Minor: 1, Currency: "EUR"}}
	for key, again := range map[string]bool{"": false, "key": true} {
		_, err := s.CreateCampaign(t.Context(), c, key)
		r, ok := errors.AsType[*coupon.Refusal](err)
		if !ok || r.Code != coupon.ErrShardUnavailable.Code || r.Retryable != again {
			t.Errorf("with key %q: %+v, want retryable: %v", key, err, again)
		}
	}
}
