package migdynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// BuryAt implements [migrate.Writer]. What is there without a version, of
// another mode, is refused.
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
		return refused(err), nil
	}
	tombstone[AttrVersion], tombstone[AttrDeleted] = integer(version), &types.AttributeValueMemberBOOL{Value: true}
	c := s.newCall(1)
	_, err = do(ctx, c, (*dynamodb.Client).PutItem, s.putInput(entry{item: tombstone, ref: ref, version: version}, s.guards.older))
	switch {
	case classOf(err) == condition:
		return s.inTheWay(ctx, tombstone, ref, version, c.maybe)
	case err != nil:
		return migrate.Result{}, err
	}
	return migrate.Result{Outcome: migrate.Written}, nil
}

// inTheWay tells what keeps a tombstone away. maybe means that an earlier
// attempt, whose reply was lost, may have put it there.
func (s *Sink) inTheWay(ctx context.Context, tombstone item, ref string, version int64, maybe bool) (migrate.Result, error) {
	old, err := s.get(ctx, entry{item: tombstone})
	if err != nil {
		return migrate.Result{}, err
	}
	if len(old) == 0 {
		return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
	}
	now := s.stored(old)
	switch _, versioned := versionOf(old); {
	case !versioned:
		return refused(noVersion(ref)), nil
	case now.Version == version && now.Tombstone && maybe:
		return migrate.Result{Outcome: migrate.Written}, nil
	case now.Version == version && !now.Tombstone:
		return migrate.Result{Outcome: migrate.Differs}, nil
	}
	return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
}
