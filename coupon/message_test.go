package coupon_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/coupon"
)

var sameCodes = cmp.Comparer(func(a, b coupon.Code) bool { return a == b })

// anyMessage draws a message in which every field has something.
func anyMessage(t *rapid.T) coupon.Message {
	text := rapid.StringMatching(`[!-~]{1,8}`)
	at := rapid.Custom(func(t *rapid.T) time.Time { return time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(t, "ms")).UTC() })
	ids := rapid.Int64Range(1, 1<<62)
	code, err := coupon.ParseStored(rapid.StringMatching(`[0-9A-HJKMNP-TV-Z]{16}`).Draw(t, "code"))
	if err != nil {
		t.Fatal(err)
	}
	c := coupon.Coupon{
		ID: coupon.ID(ids.Draw(t, "id")), Code: code, Campaign: ids.Draw(t, "campaign"), Kind: text.Draw(t, "kind"),
		Value:      coupon.Amount{Minor: ids.Draw(t, "minor"), Currency: "EUR"},
		VoidPolicy: coupon.VoidPolicy{Kind: text.Draw(t, "void"), Days: 3}, Attributes: json.RawMessage(`{"a":1}`),
		Status: rapid.SampledFrom(coupon.Statuses()).Draw(t, "status"), User: text.Draw(t, "user"), Order: text.Draw(t, "order"),
		IssuedAt: at.Draw(t, "issued"), Valid: coupon.Window{From: at.Draw(t, "from"), Until: at.Draw(t, "until")},
		ReservedOrder: text.Draw(t, "reserved"), ReservedUntil: at.Draw(t, "hold"),
		RedeemedOrder: text.Draw(t, "redeemed"), RedeemedUser: text.Draw(t, "by"), RedeemedAt: at.Draw(t, "when"),
		Version: rapid.Uint32Range(1, 1<<32-1).Draw(t, "version"), Created: at.Draw(t, "created"), Updated: at.Draw(t, "updated"),
	}
	return coupon.Message{Coupon: c, Event: coupon.Event{
		Coupon: c.ID, Version: c.Version, Type: coupon.WasRedeemed, At: at.Draw(t, "at"),
		Actor: text.Draw(t, "actor"), User: text.Draw(t, "who"), Order: text.Draw(t, "for"), Request: text.Draw(t, "request"),
	}}
}

func TestMessageComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		if rapid.Bool().Draw(t, "bulk") {
			m.IDs = []coupon.ID{m.Coupon.ID, 5}
		}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := coupon.DecodeMessage(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.IDs) > 0 {
			m.Coupon.Code = coupon.Code{} // not common to all
		}
		if diff := cmp.Diff(m, got, sameCodes); diff != "" {
			t.Fatalf("- sent, + got:\n%s", diff)
		}
	})
}

func TestEmptyFieldsComeBackEmpty(t *testing.T) {
	m := coupon.Message{Event: coupon.Event{Coupon: 1, Version: 1, Type: coupon.WasGenerated}, Coupon: coupon.Coupon{ID: 1, Version: 1}}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := coupon.DecodeMessage(text); err != nil || !cmp.Equal(m, got, sameCodes) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `x`, `[]`, `{}`, `{"type":"REDEEMED"}`, `{"type":"REDEEMED","coupon":{"id":5}}`, `{"coupon":{"id":5,"version":1}}`,
		`{"type":"REDEEMED","coupon":{"id":-5,"version":1}}`, `{"type":"REDEEMED","coupon":{"id":5,"version":-1}}`,
		`{"type":"REDEEMED","coupon":{"id":5,"version":1,"code":"short"}}`,
	} {
		if m, err := coupon.DecodeMessage([]byte(text)); !errors.Is(err, coupon.ErrMalformedMessage) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	if _, err := coupon.DecodeMessage([]byte(`{"type":"NEW","more":[],"coupon":{"id":5,"version":1,"more":1}}`)); err != nil {
		t.Errorf("fields of a newer process: %v", err)
	}
}
