package coupon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Get returns a coupon. With a user, whoever does not own it is told that there
// is none; without, it is the platform's own question and answered in full.
func (s *Service) Get(ctx context.Context, t Target, user string) (Result, error) {
	if err := check(t, Call{User: user}); err != nil {
		return Result{}, err
	}
	var c Coupon
	err := s.store.Read(ctx, t.key(), func(rows Rows) (err error) {
		c, err = t.find(rows)
		return err
	})
	if err == nil && user != "" && !c.OwnedBy(user) && (c.User != "" || c.Status != Issued && c.Status != Reserved) {
		err = ErrUnavailable
	}
	if err != nil {
		return Result{}, s.refusal(err)
	}
	return Result{Coupon: c, At: time.Now()}, nil
}

// coupon reads a coupon and the time of the reading process.
func (s *Service) coupon(ctx context.Context, id ID) (Coupon, time.Time, error) {
	var c Coupon
	err := s.store.Read(ctx, id, func(rows Rows) (err error) {
		c, err = rows.Coupon(id)
		return err
	})
	if errors.Is(err, ErrNoRow) {
		err = ErrUnavailable
	}
	return c, time.Now(), err
}

// History returns what happened to a coupon, from its generation on.
func (s *Service) History(ctx context.Context, id ID) ([]Event, error) {
	var events []Event
	err := s.store.Read(ctx, id, func(rows Rows) error {
		c, err := Target{ID: id}.find(rows)
		if err != nil {
			return err
		}
		events, err = rows.Events(id)
		events = append(c.beginning(), events...)
		return err
	})
	return events, s.refusal(err)
}

// beginning returns the events that are written in bulk and not in the ledger.
func (c Coupon) beginning() []Event {
	begin := []Event{{Coupon: c.ID, Version: 1, Type: WasGenerated, At: c.Created}}
	if c.Order != "" {
		begin = append(begin, Event{Coupon: c.ID, Version: 2, Type: WasIssued, At: c.IssuedAt, Order: c.Order})
	}
	return begin
}

// A WalletQuery asks for coupons of a user.
type WalletQuery struct {
	User   string
	Status []Status  // as they are now; none: all
	After  WalletKey // beyond which to begin; zero: from the first
	Size   int       // 1 to [MaxPage]
	Fresh  bool      // look up coupons that are on other shards
}

// MaxPage is the most coupons a page has.
const MaxPage = 500

// Wallet returns a page of a user's coupons, by rising end and id. What happens
// to a coupon on another shard than the user's is seen a moment later, or at once
// with Fresh. While coupons come and go, those that are there during the whole
// walk are seen once.
func (s *Service) Wallet(ctx context.Context, q WalletQuery) (WalletPage, error) {
	if err := (Call{User: q.User}).check("user_id"); err != nil {
		return WalletPage{}, err
	}
	if q.Size < 1 || q.Size > MaxPage {
		return WalletPage{}, invalidField("page_size", "page_size is %d: want 1 to %d", q.Size, MaxPage)
	}
	var page WalletPage
	home := shard.Text(q.User)
	err := s.store.Read(ctx, home, func(rows Rows) (err error) {
		page, err = rows.Wallet(q.User, WalletFilter{q.Status, time.Now()}, q.After, q.Size)
		return err
	})
	if err == nil && q.Fresh {
		page.Coupons, err = s.fresh(ctx, home, page.Coupons)
	}
	return page, s.refusal(err)
}

// fresh overlays coupons of other shards than home with their state there. A
// coupon that is no longer the user's stays as the wallet has it.
func (s *Service) fresh(ctx context.Context, home shard.Key, coupons []Coupon) ([]Coupon, error) {
	var remote []ID
	for _, c := range coupons {
		if !shard.Same(home, c.ID) {
			remote = append(remote, c.ID)
		}
	}
	for at, ids := range splitByShard(remote) {
		now, err := s.couponsOn(ctx, at, ids)
		if err != nil {
			return nil, err
		}
		for i, c := range coupons {
			k := slices.IndexFunc(now, func(n Coupon) bool { return n.ID == c.ID && n.Version > c.Version && n.User == c.User })
			if k >= 0 {
				coupons[i] = now[k]
			}
		}
	}
	return coupons, nil
}

// An OrderRole is what an order has to do with a coupon.
type OrderRole string

// The roles.
const (
	OrderIssued   OrderRole = "issued"   // the coupon was issued to it
	OrderConsumed OrderRole = "consumed" // it redeemed the coupon
)

// OrderCoupons returns coupons of an order, by rising id, from those above after
// on: n at most. For those issued to it every shard is asked. One that it redeemed
// is listed a moment after that, when the event has come to the order's shard; one
// whose redemption was voided is not listed.
func (s *Service) OrderCoupons(ctx context.Context, order string, role OrderRole, after ID, n int) ([]Coupon, error) {
	if err := (Call{Order: order}).check("order_no"); err != nil {
		return nil, err
	}
	if n < 1 || n > MaxPage {
		return nil, invalidField("page_size", "page_size is %d: want 1 to %d", n, MaxPage)
	}
	switch role {
	case OrderIssued:
		coupons, err := s.issuedTo(ctx, order, after, n)
		return coupons, s.refusal(err)
	case OrderConsumed:
		coupons, err := s.redeemedBy(ctx, order, after, n)
		return coupons, s.refusal(err)
	}
	return nil, invalidField("role", "role is %.40q: want %s or %s", role, OrderIssued, OrderConsumed)
}

func (s *Service) issuedTo(ctx context.Context, order string, after ID, n int) ([]Coupon, error) {
	ids, err := s.orderIDs(ctx, order)
	if err != nil {
		return nil, err
	}
	from, _ := slices.BinarySearch(ids, after+1)
	return s.couponsOf(ctx, ids[from:min(len(ids), from+n)])
}

// redeemedBy asks the order's shard which coupons they are and the coupons' own
// shards whether they still are.
func (s *Service) redeemedBy(ctx context.Context, order string, after ID, n int) (coupons []Coupon, err error) {
	for {
		var ids []ID
		err := s.store.Read(ctx, shard.Text(order), func(rows Rows) (err error) {
			ids, err = rows.Redeemed(order, after, n)
			return err
		})
		if err != nil {
			return nil, err
		}
		some, err := s.couponsOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		coupons = append(coupons, slices.DeleteFunc(some, func(c Coupon) bool { return c.RedeemedOrder != order })...)
		if len(coupons) >= n || len(ids) < n {
			return coupons[:min(n, len(coupons))], nil
		}
		after = ids[len(ids)-1]
	}
}

// couponsOf returns coupons, wherever they are, by rising id.
func (s *Service) couponsOf(ctx context.Context, ids []ID) ([]Coupon, error) {
	coupons := make([]Coupon, 0, len(ids))
	for at, some := range splitByShard(ids) {
		got, err := s.couponsOn(ctx, at, some)
		if err != nil {
			return nil, err
		}
		coupons = append(coupons, got...)
	}
	slices.SortFunc(coupons, func(a, b Coupon) int { return int(a.ID - b.ID) })
	return coupons, nil
}

func splitByShard(ids []ID) map[shard.Shard][]ID {
	split := make(map[shard.Shard][]ID)
	for _, id := range ids {
		split[id.Shard()] = append(split[id.Shard()], id)
	}
	return split
}

// orderIDs returns the ids of all coupons that were issued to an order, rising.
func (s *Service) orderIDs(ctx context.Context, order string) ([]ID, error) {
	var batches []BatchKey
	err := s.store.Read(ctx, shard.Text(order), func(rows Rows) (err error) {
		batches, err = rows.OrderBatches(order)
		return err
	})
	if err != nil || len(batches) == 0 {
		return nil, err
	}
	var all [shard.Count][]ID
	budget := shard.Budget{Shards: shard.Count, Parallel: shardsAtOnce, Time: fanOutTime}
	err = s.store.FanOut(ctx, "coupons of an order", budget, nil, func(at shard.Shard, rows Rows) error {
		for _, b := range batches {
			chunks, err := rows.Chunks(b.Campaign, b.Number)
			if err != nil {
				return err
			}
			for _, c := range chunks {
				all[at] = append(all[at], c.IDs...)
			}
		}
		return nil
	})
	ids := slices.Concat(all[:]...)
	slices.Sort(ids)
	return ids, err
}

// fanOutTime bounds a question to every shard.
const fanOutTime = 2 * time.Second
