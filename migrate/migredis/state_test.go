package migredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// plan returns a plan that keeps its state there.
func plan(url, prefix string) migrate.Plan {
	return migrate.Plan{Name: "events", State: migrate.StatePlan{Kind: "redis", URL: url, Prefix: prefix, ProgressTTL: migrate.Duration(time.Hour)}}
}

func open(t testing.TB, p migrate.Plan) *migredis.State {
	t.Helper()
	s, err := migredis.Open(t.Context(), p, migtest.StateAxis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func client(t testing.TB, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// keys returns all keys below a prefix, as a scan finds them.
func keys(t testing.TB, rdb *redis.Client, prefix string) (all []string) {
	t.Helper()
	it := rdb.Scan(t.Context(), 0, prefix+"*", 1000).Iterator()
	for it.Next(t.Context()) {
		all = append(all, it.Val())
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return all
}

// lose removes all keys below a prefix.
func lose(t testing.TB, rdb *redis.Client, prefix string) {
	t.Helper()
	if all := keys(t, rdb, prefix); len(all) > 0 {
		if err := rdb.Del(t.Context(), all...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// backup returns what puts all keys below a prefix back.
func backup(t testing.TB, rdb *redis.Client, prefix string) func() {
	t.Helper()
	dumps, ttls := map[string]string{}, map[string]time.Duration{}
	for _, key := range keys(t, rdb, prefix) {
		dump, err := rdb.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		dumps[key], ttls[key] = dump, max(rdb.PTTL(t.Context(), key).Val(), 0)
	}
	return func() {
		for key, dump := range dumps {
			if err := rdb.RestoreReplace(context.Background(), key, ttls[key], dump).Err(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestState(t *testing.T) {
	migtest.TestState(t, func(t testing.TB) migtest.StateFixture {
		url, prefix := realtest.RedisPrefix(t)
		p, rdb := plan(url, prefix), client(t, url)
		return migtest.StateFixture{
			Pod:    func(t testing.TB) migrate.State { return open(t, p) },
			Lose:   func(t testing.TB) { lose(t, rdb, prefix) },
			Backup: func(t testing.TB) func() { return backup(t, rdb, prefix) },
		}
	})
}
