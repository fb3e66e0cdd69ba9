package migdynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// BuryAt implements [migrate.Writer]. What is there without a version, of
// another mode, stays.
func (w writer) BuryAt(ctx context.Context, ref string, version int64) (migrate.Result, error) {
	result, err := w.sink.buryAt(ctx, ref, version)
	if err != nil {
		err = fmt.Errorf("migdynamo: bury in %q: %w", w.sink.table, err)
	}
	return result, err
}

func (s *Sink) buryAt(ctx context.Context, ref string, version int64) (migrate.Result, error) {
	tombstone, err := s.schema.parseRef(ref)
	if err != nil {
		return migrate.Result{}, err
	}
	tombstone[AttrVersion], tombstone[AttrDeleted] = integer(version), &types.AttributeValueMemberBOOL{Value: true}
	c := s.newCall(1)
	_, err = do(ctx, c, (*dynamodb.Client).PutItem, s.putInput(entry{item: tombstone, ref: ref, version: version}, s.guards.older))
	switch {
	case classOf(err) == condition:
		return s.inTheWay(ctx, ref, version, c.maybe)
	case err != nil:
		return migrate.Result{}, err
	}
	return migrate.Result{Outcome: migrate.Written}, nil
}

// inTheWay tells what keeps a tombstone away. maybe means that an earlier
// attempt, whose reply was lost, may have put it there.
func (s *Sink) inTheWay(ctx context.Context, ref string, version int64, maybe bool) (migrate.Result, error) {
	now, err := s.readAll(ctx, []string{ref})
	switch {
	case err != nil:
		return migrate.Result{}, err
	case now[0].Version == version && now[0].Tombstone && maybe:
		return migrate.Result{Outcome: migrate.Written}, nil
	case now[0].Version == version && now[0].Found && !now[0].Tombstone:
		return migrate.Result{Outcome: migrate.Differs}, nil
	}
	return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
}
