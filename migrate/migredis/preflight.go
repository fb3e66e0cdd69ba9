package migredis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Preflight fails unless the server can keep a state safely: it is Redis 7 or
// newer, a primary, no cluster, and never evicts a key.
func (s *State) Preflight(ctx context.Context) error {
	text, err := s.rdb.Info(ctx).Result()
	if err != nil {
		return s.meaning(ctx, err)
	}
	info := fields(text)
	major, _ := strconv.Atoi(strings.Split(info["redis_version"], ".")[0])
	for _, c := range []struct {
		wrong bool
		what  string
	}{
		{major < 7, "is version " + info["redis_version"] + ": use 7 or newer"},
		{info["cluster_enabled"] == "1", "is a cluster: use a single primary"},
		{info["role"] != "master", "is a replica: use the primary"},
		{info["maxmemory_policy"] != "noeviction", "may evict keys: set maxmemory-policy to noeviction (it is " + info["maxmemory_policy"] + ")"},
	} {
		if c.wrong {
			return fmt.Errorf("the Redis at %s %s", s.rdb.Options().Addr, c.what)
		}
	}
	return nil
}

// fields parses what INFO says.
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}
