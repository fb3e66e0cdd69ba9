package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/migrate/migpg"
)

// newNoted returns a table of one hour beside an outbox.
func newNoted(t *testing.T, plan string) *migrating {
	t.Helper()
	m := newMigrating(t, plan, 1, 50)
	m.exec(migpg.OutboxDDL)
	return m
}

// note leaves what a double-writer leaves that dies before it wrote the sink.
func (m *migrating) note(id string, ref, version any) {
	m.t.Helper()
	m.exec("INSERT INTO tallystick_outbox (table_name, key, ref, version) VALUES ('room_events', $1, $2, $3)", id, ref, version)
}

// notes returns how many are left.
func (m *migrating) notes() (n int) {
	m.t.Helper()
	if err := m.db.QueryRow(context.Background(), "SELECT count(*) FROM tallystick_outbox").Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

// again copies once more from the start into what is there.
func (m *migrating) again(code int) {
	m.t.Helper()
	m.want("tallystick migrate reset --yes -f plan.yaml", 0, ``)
	m.ended(m.pod("--start"), code)
}

// TestALeftDeletionOfVersionZeroIsBuried: by a note that tells no version.
func TestALeftDeletionOfVersionZeroIsBuried(t *testing.T) {
	t.Parallel()
	m := newNoted(t, stateInFile)
	m.exec("UPDATE room_events SET version = 0")
	m.ended(m.pod("--start"), 0)
	m.exec("DELETE FROM room_events WHERE id = $1", ulidAt(0, 1))
	m.note(ulidAt(0, 1), room(1)+"~"+ulidAt(0, 1), nil)
	m.again(0)
	if item := m.items().get(key(room(1), ulidAt(0, 1))); item["_deleted"] == nil || m.notes() > 0 {
		t.Errorf("%d notes are left, and %v", m.notes(), item)
	}
}

// TestANotedRowThatCannotBeStoredIsSetAside: the outbox is done with all the
// same, and the end tells.
func TestANotedRowThatCannotBeStoredIsSetAside(t *testing.T) {
	t.Parallel()
	m := newNoted(t, stateInRedis)
	m.exec("UPDATE room_events SET data = jsonb_build_object('x', repeat('y', 500000)) WHERE id = $1", ulidAt(0, 1))
	m.note(ulidAt(0, 1), nil, nil)
	m.note(ulidAt(0, 99), "no item's name", 2)
	m.ended(m.pod("--start"), 3)
	if n := m.notes(); n > 0 {
		t.Errorf("%d notes are left", n)
	}
	m.want("tallystick migrate report -f plan.yaml --quarantine", 0, `(?s)`+ulidAt(0, 1)+`.*`+ulidAt(0, 99))
}

// TestARowThatMovedLeavesNothingBehind: a note names the item that the row was
// in, another the one it is in now, which nobody wrote. Where another row has
// moved in, that stays.
func TestARowThatMovedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	m := newNoted(t, stateInFile)
	m.ended(m.pod("--start"), 0)
	for n, version := range map[int]any{1: 2, 2: nil} {
		m.exec("UPDATE room_events SET room_id = $2, version = 2 WHERE id = $1", ulidAt(0, n), room(n+3))
		m.note(ulidAt(0, n), room(n)+"~"+ulidAt(0, n), version)
		m.note(ulidAt(0, n), room(n+3)+"~"+ulidAt(0, n), version)
	}
	m.again(0)
	for n := 1; n <= 2; n++ {
		if item := m.items().get(key(room(n), ulidAt(0, n))); item["_deleted"] == nil {
			t.Errorf("the row's old item is %v", item)
		}
	}
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 50 compared, `+nothingWrong)
}

// TestNotesMaySpellTheTableAsTheyLike: with its schema or without, whatever the
// plan does.
func TestNotesMaySpellTheTableAsTheyLike(t *testing.T) {
	t.Parallel()
	for _, planned := range []string{"public.room_events", "room_events"} {
		m := newNoted(t, stateInFile)
		m.write("plan.yaml", strings.Replace(planText, "table: room_events,", "table: "+planned+",", 1)+stateInFile)
		for _, noted := range []string{"public.room_events", "room_events", "elsewhere.room_events"} {
			m.exec("INSERT INTO tallystick_outbox (table_name, key) VALUES ($1, $2)", noted, ulidAt(0, 1))
		}
		m.ended(m.pod("--start"), 0)
		if n := m.notes(); n != 1 {
			t.Errorf("%s: %d notes are left, want that of another table", planned, n)
		}
	}
}
