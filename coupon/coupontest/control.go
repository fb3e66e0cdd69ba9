package coupontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// TestControl runs the suite: every method of [coupon.Control]. open is called
// once. The database may hold other campaigns, and operations that are done.
func TestControl(t *testing.T, open func(t *testing.T) coupon.Control) {
	control := open(t)
	for name, test := range map[string]func(*testing.T, coupon.Control){
		"campaigns":           testCampaigns,
		"list of campaigns":   testCampaignList,
		"races of campaigns":  testCampaignRace,
		"campaigns by key":    testCampaignOnce,
		"operations":          testOperations,
		"leases":              testLeases,
		"order of leases":     testLeaseOrder,
		"races of operations": testOperationRace,
		"races of leases":     testLeaseRace,
	} {
		t.Run(name, func(t *testing.T) { test(t, control) })
	}
}

// campaign returns a campaign with every field.
func campaign() coupon.Campaign {
	return coupon.Campaign{
		ID: rand.Int64N(1 << 60), Name: "Größe 'S' \\ 100 % 🎟", Kind: coupon.FixedAmount, Source: coupon.Generated, State: coupon.Active,
		Total: 5_000_000, Generated: 17, PerUserLimit: 3, ValidFrom: day(1), ValidUntil: day(2), ValidDays: 30, TimeZone: "America/Argentina/Buenos_Aires",
		Value: coupon.Amount{Minor: 1250, Currency: "EUR"}, VoidPolicy: coupon.VoidPolicy{Kind: coupon.Restore, Days: 2},
		Attributes: json.RawMessage(`{"ü": [1,  2]}`), Created: day(3), Version: 1,
	}
}

func addCampaign(t *testing.T, control coupon.Control, c coupon.Campaign) {
	t.Helper()
	if _, err := control.AddCampaign(t.Context(), c, coupon.Once{}); err != nil {
		t.Fatal(err)
	}
}

func hasCampaign(t *testing.T, control coupon.Control, want coupon.Campaign) {
	t.Helper()
	got, err := control.Campaign(t.Context(), want.ID)
	wantErr(t, err, nil)
	equal(t, got, want)
}

func testCampaignOnce(t *testing.T, control coupon.Control) {
	first, second := campaign(), campaign()
	once := coupon.Once{Key: "me some key", Digest: "d1", For: time.Hour}
	var added sync.WaitGroup
	for _, c := range []coupon.Campaign{first, second} {
		added.Go(func() {
			if _, err := control.AddCampaign(t.Context(), c, once); err != nil {
				t.Error(err)
			}
		})
	}
	added.Wait()
	kept, err := control.AddCampaign(t.Context(), campaign(), once)
	if err != nil || kept.ID != first.ID && kept.ID != second.ID {
		t.Fatalf("%+v, %v; want one of both", kept, err)
	}
	_, err = control.Campaign(t.Context(), first.ID+second.ID-kept.ID)
	wantErr(t, err, coupon.ErrNoRow)
	_, err = control.AddCampaign(t.Context(), campaign(), coupon.Once{Key: once.Key, Digest: "d2", For: time.Hour})
	wantErr(t, err, coupon.ErrMismatch)
	past := coupon.Once{Key: "over", Digest: "d1", For: -time.Second}
	for range 2 { // a key is known for its time only
		c := campaign()
		if got, err := control.AddCampaign(t.Context(), c, past); err != nil || got.ID != c.ID {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func testCampaigns(t *testing.T, control coupon.Control) {
	full := campaign()
	_, err := control.Campaign(t.Context(), full.ID)
	wantErr(t, err, coupon.ErrNoRow)
	addCampaign(t, control, full)
	hasCampaign(t, control, full)
	other := full
	other.Name = "other"
	_, err = control.AddCampaign(t.Context(), other, coupon.Once{})
	wantErr(t, err, shard.ErrDuplicate)

	bare := coupon.Campaign{ID: full.ID, Name: "b", State: coupon.Ended, Value: coupon.Amount{Currency: "JPY"}, Created: day(3), Version: 2}
	skipping := bare
	skipping.Version = 3
	for i, c := range []struct {
		campaign coupon.Campaign
		want     bool
	}{{skipping, false}, {bare, true}, {bare, false}} {
		set, err := control.SetCampaign(t.Context(), c.campaign)
		if err != nil || set != c.want {
			t.Fatalf("%d: set version %d: %v, %v; want %v", i, c.campaign.Version, set, err, c.want)
		}
	}
	hasCampaign(t, control, bare)
	missing := campaign()
	missing.Version = 2
	if set, err := control.SetCampaign(t.Context(), missing); err != nil || set {
		t.Fatalf("set a campaign that is not there: %v, %v", set, err)
	}
}

func testCampaignList(t *testing.T, control coupon.Control) {
	first := campaign()
	var all []coupon.Campaign
	for i := range int64(5) {
		c := first
		c.ID += 4 - i
		addCampaign(t, control, c)
		all = append([]coupon.Campaign{c}, all...)
	}
	got, err := control.CampaignsAfter(t.Context(), first.ID-1, 3)
	wantErr(t, err, nil)
	equal(t, got, all[:3])
	got, err = control.CampaignsAfter(t.Context(), first.ID+2, 2)
	wantErr(t, err, nil)
	equal(t, got, all[3:])
}

func testCampaignRace(t *testing.T, control coupon.Control) {
	c := campaign()
	addCampaign(t, control, c)
	won := together(t, 8, func(i int) (bool, error) {
		next := c
		next.Version, next.Name = 2, fmt.Sprint(i)
		return control.SetCampaign(t.Context(), next)
	})
	if won != 1 {
		t.Fatalf("%d of 8 changes of one version", won)
	}
}

// operation returns an operation with every field.
func operation() coupon.Operation {
	id := rand.Int64N(1 << 60)
	return coupon.Operation{
		ID: id, Kind: coupon.Issuing, Subject: fmt.Sprintf("%d/b", id), Campaign: 7, Batch: "b", Total: 10, Succeeded: 4, Failed: 3, Error: "E",
	}
}

// start starts an operation and fails the test unless want is there then.
func start(t *testing.T, control coupon.Control, o, want coupon.Operation) {
	t.Helper()
	got, err := control.StartOperation(t.Context(), o)
	wantErr(t, err, nil)
	equal(t, got, want)
}

func hasOperation(t *testing.T, control coupon.Control, want coupon.Operation) {
	t.Helper()
	got, err := control.Operation(t.Context(), want.ID)
	wantErr(t, err, nil)
	equal(t, got, want)
}

// finish leases an operation, which has to be the only one there is or the first to
// be leased, and ends it.
func finish(t *testing.T, control coupon.Control, o coupon.Operation) coupon.Operation {
	t.Helper()
	got, err := control.LeaseOperation(t.Context(), "finisher", time.Minute)
	wantErr(t, err, nil)
	equal(t, got, o)
	o.Done = true
	save(t, control, o, "finisher", true)
	return o
}

func save(t *testing.T, control coupon.Control, o coupon.Operation, owner string, want bool) {
	t.Helper()
	held, err := control.SaveOperation(t.Context(), o, owner, time.Minute)
	if err != nil || held != want {
		t.Fatalf("save: %v, %v; want %v", held, err, want)
	}
}

func testOperations(t *testing.T, control coupon.Control) {
	first := operation()
	_, err := control.Operation(t.Context(), first.ID)
	wantErr(t, err, coupon.ErrNoRow)
	start(t, control, first, first)
	again := operation()
	again.Subject = first.Subject
	start(t, control, again, first)
	start(t, control, first, first) // its own reply was lost
	hasOperation(t, control, first)
	_, err = control.Operation(t.Context(), again.ID)
	wantErr(t, err, coupon.ErrNoRow)

	first = finish(t, control, first)
	hasOperation(t, control, first)
	start(t, control, again, again) // the first is done
	hasOperation(t, control, first)
	finish(t, control, again)

	kind, upper := operation(), operation()
	kind.Subject, upper.Subject = first.Subject, "X"+first.Subject
	lower := upper
	lower.ID, lower.Subject = upper.ID+1, "x"+first.Subject
	kind.Kind = coupon.Generating
	start(t, control, upper, upper)
	start(t, control, lower, lower)
	start(t, control, kind, kind)
	for range 3 {
		o, err := control.LeaseOperation(t.Context(), "me", time.Minute)
		wantErr(t, err, nil)
		o.Done = true
		save(t, control, o, "me", true)
	}
	wrong := operation()
	wrong.ID = first.ID
	_, err = control.StartOperation(t.Context(), wrong)
	wantErr(t, err, shard.ErrDuplicate)
}

func testLeases(t *testing.T, control coupon.Control) {
	none := func() {
		t.Helper()
		_, err := control.LeaseOperation(t.Context(), "b", time.Minute)
		wantErr(t, err, coupon.ErrNoRow)
	}
	none()
	o := operation()
	start(t, control, o, o)
	got, err := control.LeaseOperation(t.Context(), "a", time.Minute)
	wantErr(t, err, nil)
	equal(t, got, o)
	none()
	o.Succeeded, o.Failed, o.Total, o.Error = 5, 6, 11, "F"
	save(t, control, o, "b", false)
	save(t, control, o, "a", true)
	none()
	hasOperation(t, control, o)

	// A lease of no time is over at once.
	if held, err := control.SaveOperation(t.Context(), o, "a", -time.Second); err != nil || !held {
		t.Fatal(held, err)
	}
	got, err = control.LeaseOperation(t.Context(), "b", time.Minute)
	wantErr(t, err, nil)
	equal(t, got, o)
	late := o
	late.Succeeded = 1
	save(t, control, late, "a", false)
	hasOperation(t, control, o)
	o.Done = true
	save(t, control, o, "b", true)
	save(t, control, o, "b", false)
	hasOperation(t, control, o)
	none()
}

// testLeaseOrder makes sure that work which its process left is not passed over for
// as long as there is newer work.
func testLeaseOrder(t *testing.T, control coupon.Control) {
	left, newer := operation(), operation()
	left.ID, newer.ID = max(left.ID, newer.ID), min(left.ID, newer.ID)
	start(t, control, left, left)
	got, err := control.LeaseOperation(t.Context(), "died", time.Minute)
	wantErr(t, err, nil)
	equal(t, got, left)
	save(t, control, left, "died", true)
	if held, err := control.SaveOperation(t.Context(), left, "died", -time.Second); err != nil || !held {
		t.Fatal(held, err)
	}
	start(t, control, newer, newer)
	for _, want := range []coupon.Operation{left, newer} {
		finish(t, control, want)
	}
}

func testOperationRace(t *testing.T, control coupon.Control) {
	subject := operation().Subject
	var mu sync.Mutex
	got := map[int64]coupon.Operation{}
	together(t, 8, func(int) (bool, error) {
		o := operation()
		o.Subject = subject
		there, err := control.StartOperation(t.Context(), o)
		mu.Lock()
		defer mu.Unlock()
		got[there.ID] = there
		return true, err
	})
	if len(got) != 1 {
		t.Fatalf("%d operations of one subject", len(got))
	}
	for _, o := range got {
		finish(t, control, o)
	}
}

func testLeaseRace(t *testing.T, control coupon.Control) {
	for range 3 {
		o := operation()
		start(t, control, o, o)
	}
	var mu sync.Mutex
	got := map[int64]int{}
	together(t, 6, func(i int) (bool, error) {
		owner := fmt.Sprint(i)
		for {
			o, err := control.LeaseOperation(t.Context(), owner, time.Minute)
			if err != nil {
				if errors.Is(err, coupon.ErrNoRow) {
					err = nil
				}
				return true, err
			}
			mu.Lock()
			got[o.ID]++
			mu.Unlock()
			o.Done = true
			if held, err := control.SaveOperation(t.Context(), o, owner, time.Minute); err != nil || !held {
				return false, fmt.Errorf("held %v: %w", held, err)
			}
		}
	})
	for id, times := range got {
		if times != 1 {
			t.Errorf("operation %d was leased by %d", id, times)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d of 3 operations were leased", len(got))
	}
}
