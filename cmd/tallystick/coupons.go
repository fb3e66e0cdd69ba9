package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/sequence"
)

// Where coupons are kept, beside a file that says so.
const (
	couponsEmbedded = "embedded"
	couponsOff      = "off"
)

// couponFolder is the folder of embedded coupons in the data folder.
const couponFolder = "coupons"

// couponOptions says where coupons are kept.
type couponOptions struct{ where string }

func (o *couponOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.where, "coupons", couponsEmbedded, "where coupons are: embedded, in the data folder; off; or a YAML `file` that names MariaDB servers")
}

// external reports whether the databases are servers elsewhere.
func (o *couponOptions) external() bool {
	return o.where != couponsEmbedded && o.where != couponsOff
}

// A platform is coupons in this process.
type platform struct {
	*coupon.Service
	codes   *coupon.Codes
	minter  *coupon.Minter
	numbers *sequence.Client
	stores  couponStores
	queue   couponQueue
	relay   *coupon.Relay
}

// open opens the platform that o asks for; nil if it asks for none.
func (o *couponOptions) open(ctx context.Context, data string, sequences *sequence.Service, log *slog.Logger) (*platform, error) {
	if o.where == couponsOff {
		return nil, nil
	}
	where, err := o.databases(data)
	if err != nil {
		return nil, err
	}
	codes, err := where.codes()
	if err != nil {
		return nil, err
	}
	if err := couponNumbers(ctx, sequences); err != nil {
		return nil, err
	}
	stores, err := openCouponStores(ctx, where, log)
	if err != nil {
		return nil, err
	}
	log.Info("statements of coupons without their shard key are refused", "databases", 1+len(where.Shards))
	where.Events.dir = filepath.Join(data, couponFolder, "events")
	queue, err := openCouponQueue(ctx, where.Events, log)
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	p := &platform{codes: codes, stores: stores, queue: queue, relay: coupon.NewRelay(stores.Outbox, queue, log)}
	p.numbers = sequence.NewClient(sequences, sequence.ClientOptions{ID: "coupons", Logger: log})
	p.minter = coupon.OpenMinter(ctx, stores.Workers, coupon.MinterOptions{Logger: log})
	options := coupon.Options{IDs: p.minter, Codes: codes, Numbers: p.numbers, Logger: log}
	crashPoints(&options)
	p.Service = coupon.NewService(coupon.Announce(stores.Store, p.relay.Wake), stores.Control, options)
	return p, nil
}

// couponNumbers makes the sequences that coupons take numbers from, where they
// are missing.
func couponNumbers(ctx context.Context, s *sequence.Service) error {
	results, err := s.Create(ctx, sequence.CreateRequest{Specs: []sequence.Spec{
		{Name: coupon.CampaignNumbers}, {Name: coupon.OperationNumbers},
	}})
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, sequence.ErrExists) {
			return r.Err
		}
	}
	return nil
}

// walletReader is who brings wallets and orders up to date with what happens on
// other shards.
const walletReader = "wallet"

// Run does what goes on beside calls until ctx ends. The first failure ends it.
func (p *platform) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context) error{
		p.Service.Run, p.relay.Run,
		func(ctx context.Context) error {
			return p.queue.Read(ctx, walletReader, coupon.NewProjector(p.stores.Store).Apply)
		},
	} {
		loops.Go(func() {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	loops.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Close ends the platform, after the last call to it and the end of Run.
func (p *platform) Close(ctx context.Context) error {
	p.Service.Close()
	return errors.Join(p.queue.Close(), p.minter.Close(ctx), p.numbers.Close(ctx), p.stores.Close())
}
