package migdynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// Bury implements [migrate.Writer]: on condition that the item still has that
// version; one that was read without a version may also have none.
func (w writer) Bury(ctx context.Context, i migrate.Stored) (migrate.Result, error) {
	result, err := w.sink.bury(ctx, i)
	if err != nil {
		err = fmt.Errorf("migdynamo: bury in %q: %w", w.sink.table, err)
	}
	return result, err
}

func (s *Sink) bury(ctx context.Context, i migrate.Stored) (migrate.Result, error) {
	tombstone, err := s.schema.parseRef(i.Ref)
	if err != nil {
		return refused(err), nil
	}
	tombstone[AttrVersion], tombstone[AttrDeleted] = integer(i.Version+1), &types.AttributeValueMemberBOOL{Value: true}
	c := s.newCall(1)
	_, err = do(ctx, c, (*dynamodb.Client).PutItem, s.burial(tombstone, i.Version))
	switch {
	case classOf(err) == condition && c.maybe:
		return s.buried(ctx, i)
	case classOf(err) == condition:
		return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
	case err != nil:
		return migrate.Result{}, err
	}
	return migrate.Result{Outcome: migrate.Written}, nil
}

// burial returns the put of a tombstone over an item of a version. Of one that
// was read with version 0 nobody knows whether it has that or none.
func (s *Sink) burial(tombstone item, version int64) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{
		TableName: &s.table, Item: tombstone,
		ConditionExpression:       aws.String("attribute_not_exists(#d) AND #v = :v"),
		ExpressionAttributeNames:  map[string]string{"#d": AttrDeleted, "#v": AttrVersion},
		ExpressionAttributeValues: item{":v": integer(version)},
	}
	if version == 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(#d) AND attribute_exists(#p) AND (attribute_not_exists(#v) OR #v = :v)")
		in.ExpressionAttributeNames["#p"] = s.schema.attrs[0].name
	}
	return in
}

// buried tells, after the reply to a burial was lost, whether it is done.
func (s *Sink) buried(ctx context.Context, i migrate.Stored) (migrate.Result, error) {
	now, err := s.readAll(ctx, []string{i.Ref})
	if err != nil {
		return migrate.Result{}, err
	}
	if now[0].Tombstone && now[0].Version == i.Version+1 {
		return migrate.Result{Outcome: migrate.Written}, nil
	}
	return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
}

// Delete implements [migrate.Sink]: on condition that the item is still the
// tombstone of that version.
func (s *Sink) Delete(ctx context.Context, tombstones []migrate.Stored) (int, error) {
	gone := make([]bool, len(tombstones))
	err := each(ctx, inFlight, len(tombstones), func(ctx context.Context, n int) (err error) {
		gone[n], err = s.deleteTombstone(ctx, tombstones[n])
		return err
	})
	deleted := 0
	for _, g := range gone {
		if g {
			deleted++
		}
	}
	if err != nil {
		err = fmt.Errorf("migdynamo: delete tombstones from %q: %w", s.table, err)
	}
	return deleted, err
}

func (s *Sink) deleteTombstone(ctx context.Context, t migrate.Stored) (bool, error) {
	key, err := s.schema.parseRef(t.Ref)
	if err != nil {
		return false, err
	}
	c := s.newCall(1)
	_, err = do(ctx, c, (*dynamodb.Client).DeleteItem, &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: key,
		ConditionExpression:       aws.String("#d = :true AND #v = :v"),
		ExpressionAttributeNames:  map[string]string{"#d": AttrDeleted, "#v": AttrVersion},
		ExpressionAttributeValues: item{":true": &types.AttributeValueMemberBOOL{Value: true}, ":v": integer(t.Version)},
	})
	if classOf(err) != condition {
		return err == nil, err
	}
	if !c.maybe {
		return false, nil
	}
	// The reply to an attempt was lost: it deleted the tombstone if that is gone.
	now, err := s.readAll(ctx, []string{t.Ref})
	return err == nil && !now[0].Found, err
}
