package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/shard"
)

// A shardFlags says which databases a command looks at.
type shardFlags struct {
	data    string
	coupons couponOptions
}

func newShard(c *cli) *cobra.Command {
	var f shardFlags
	cmd := &cobra.Command{
		Use:   "shard",
		Short: "Look at the shards of coupons",
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.data, "data", "./data", "data `folder` of the server")
	f.coupons.add(flags)
	c.addOutputFlag(cmd)
	cmd.AddCommand(newShardMap(c, &f), newShardCheck(c, &f))
	return group(cmd)
}

func newShardMap(c *cli, f *shardFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "map",
		Short: "Show which shard is in which database",
		Long: `Show which shard is in which database. Embedded databases have to be nobody's:
stop the server first. MariaDB may be in use. The first look at new databases
makes their tables and the map.`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withShards(cmd, f, func(_ context.Context, s *shard.Cluster) error {
				return c.printShards(s.Map(), nil)
			})
		},
	}
}

func newShardCheck(c *cli, f *shardFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check that every shard can be written where the map says",
		Long: `Check that every shard can be written where the map says: its database answers and
its fence has the map's epoch. Exit code 3 if one cannot. Tables that are missing
are made, as the server would: a database that is empty by mistake passes.`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withShards(cmd, f, func(ctx context.Context, s *shard.Cluster) error {
				wrong := make(map[shard.Shard]error)
				for _, at := range shard.All() {
					if err := s.Write(ctx, at, func(*shard.Tx) error { return nil }); err != nil {
						wrong[at] = err
					}
				}
				err := c.printShards(s.Map(), wrong)
				if len(wrong) > 0 {
					err = errors.Join(err, errDiffer)
				}
				return err
			})
		},
	}
}

// withShards calls do with the shards.
func (c *cli) withShards(cmd *cobra.Command, f *shardFlags, do func(context.Context, *shard.Cluster) error) (err error) {
	if err := settings.Apply(cmd.Flags(), nil, "", os.Environ()); err != nil {
		return unset(err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	if f.coupons.where == couponsOff {
		return &usageError{err: errors.New("--coupons off has no shards"), field: "coupons", remedy: "use embedded or a file"}
	}
	if f.coupons.where == couponsEmbedded {
		if _, err := os.Stat(filepath.Join(f.data, couponFolder)); err != nil { // nothing is made here
			return failed("--data or TALLYSTICK_DATA says where the server keeps them", "there are no coupons in %s", f.data)
		}
		dir, err := hold(f.data, "stop the server that has it")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	where, err := f.coupons.databases(f.data)
	if err != nil {
		return err
	}
	stores, err := openCouponStores(ctx, where, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	return interrupted(cmd.Context(), do(ctx, stores.Shards))
}

// A shardLine is a shard as it is printed.
type shardLine struct {
	Shard    shard.Shard `json:"shard"`
	Database string      `json:"database"`
	Epoch    uint64      `json:"epoch"`
	Error    string      `json:"error,omitempty"`
}

// printShards prints the map, with what is wrong with shards; nil: nobody looked.
func (c *cli) printShards(m shard.Map, wrong map[shard.Shard]error) error {
	lines := make([]shardLine, shard.Count)
	for at, place := range m.Shards {
		lines[at] = shardLine{Shard: shard.Shard(at), Database: place.Database, Epoch: place.Epoch}
		if err := wrong[shard.Shard(at)]; err != nil {
			lines[at].Error = err.Error()
		}
	}
	if c.output == jsonForm {
		return c.printJSON(struct {
			Version uint64      `json:"version"`
			Shards  []shardLine `json:"shards"`
		}{m.Version, lines})
	}
	head := "SHARD\tDATABASE\tEPOCH"
	if wrong != nil {
		head += "\tSTATE"
	}
	return printMany(c, lines, head, func(l shardLine) string {
		line := fmt.Sprintf("%d\t%s\t%d", l.Shard, l.Database, l.Epoch)
		switch {
		case l.Error != "":
			line += "\t" + l.Error
		case wrong != nil:
			line += "\tok"
		}
		return line
	})
}
