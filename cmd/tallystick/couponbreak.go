package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/tallystick/tallystick/shard"
)

// A breakable is a database that callers do not wait for while it is gone.
type breakable struct {
	*shard.Breaker
	io.Closer
}

// breakableAs returns what opens databases as open does, puts a breaker before each
// and logs when one goes and comes back, by its name in where: what it is opened by
// may hold a password.
func breakableAs[D closableDatabase](where couponDatabases, log *slog.Logger, open func(context.Context, string) (D, error)) func(context.Context, string) (breakable, error) {
	names := map[string]string{where.Control: "control"}
	for _, s := range where.Shards {
		names[s.DSN] = s.Name
	}
	return func(ctx context.Context, at string) (breakable, error) {
		db, err := open(ctx, at)
		if err != nil {
			return breakable{}, err
		}
		return breakable{shard.NewBreaker(db, logBreaks(log.With("database", names[at]))), db}, nil
	}
}

// logBreaks logs that a database has gone or is back.
func logBreaks(log *slog.Logger) func(open bool, why error) {
	return func(open bool, why error) {
		if open {
			log.Warn("database does not answer: calls that need it are refused at once", "error", why)
		} else {
			log.Info("database answers again")
		}
	}
}

// logLate logs that a database could not be reached when the process began, and
// when it is there.
func logLate(log *slog.Logger) func(name string, err error) {
	return func(name string, err error) {
		if err != nil {
			log.Warn("database cannot be opened: calls that need it are refused until it can", "database", name, "error", err)
		} else {
			log.Info("database is open", "database", name)
		}
	}
}
