package shard_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/shard"
)

func TestSpreadGivesEachDatabaseARunOfNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		for i := range rapid.IntRange(1, shard.Count).Draw(t, "databases") {
			names = append(names, fmt.Sprintf("db%02d", i))
		}
		m, err := shard.Spread(names...)
		if err != nil || m.Validate() != nil {
			t.Fatal(err, m.Validate())
		}
		if got := m.Databases(); !slices.Equal(got, names) {
			t.Fatalf("databases %v, want %v", got, names)
		}
		var all []shard.Shard
		for _, name := range names {
			on := m.On(name)
			if few := shard.Count / len(names); len(on) < few || len(on) > few+1 {
				t.Fatalf("%s has %d shards", name, len(on))
			}
			all = append(all, on...)
		}
		if !slices.Equal(all, shard.All()) {
			t.Fatalf("in order of the databases: %v", all)
		}
	})
}

func TestSpreadOver8PutsFourEach(t *testing.T) {
	m, err := shard.Spread("a", "b", "c", "d", "e", "f", "g", "h")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.On("b"), []shard.Shard{4, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("b has %v, want %v", got, want)
	}
}

func TestSpreadRefuses(t *testing.T) {
	for _, n := range []int{0, 33} {
		if _, err := shard.Spread(make([]string, n)...); err == nil {
			t.Errorf("%d databases are accepted", n)
		}
	}
}

func TestValidateFindsWhatIsMissing(t *testing.T) {
	for name, spoil := range map[string]func(*shard.Map){
		"version":  func(m *shard.Map) { m.Version = 0 },
		"database": func(m *shard.Map) { m.Shards[17].Database = "" },
		"epoch":    func(m *shard.Map) { m.Shards[31].Epoch = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := shard.Spread("a")
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			spoil(&m)
			if m.Validate() == nil {
				t.Error("is accepted")
			}
		})
	}
}
