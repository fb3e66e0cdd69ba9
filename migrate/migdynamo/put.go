package migdynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

const raceTries = 10 // of a put whose item changes whenever it is looked at

// put writes one row where the mode allows it, with replace also over the same
// version, and tells what became of it.
func (s *Sink) put(ctx context.Context, r migrate.Row, replace bool) (migrate.Result, error) {
	e, err := s.encode(r)
	if err != nil {
		return refused(err), nil
	}
	c, in := s.newCall(units(e.size)), s.putInput(e, s.guards.of(e, s.mode, replace))
	for range raceTries {
		_, err := do(ctx, c, (*dynamodb.Client).PutItem, in)
		switch classOf(err) {
		case invalid:
			return refused(err), nil
		case condition:
			result, again, err := s.lost(ctx, e, err.(*failure), c.maybe)
			if !again {
				return result, err
			}
			continue
		}
		if err != nil {
			return migrate.Result{}, err
		}
		return migrate.Result{Outcome: migrate.Written}, nil
	}
	return migrate.Result{}, &failure{class: passing, err: fmt.Errorf("item %s changes all the time", e.ref)}
}

func (s *Sink) putInput(e entry, g guard) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: e.item}
	if g.condition != "" {
		in.ConditionExpression, in.ExpressionAttributeNames = &g.condition, g.names
		in.ExpressionAttributeValues = g.values(e)
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return in
}

// lost tells what became of a row whose put met an item it may not replace.
// maybe means that an earlier attempt may have written it. again means that
// there is nothing in the way any more.
//
// AWS returns the item with the failure. Servers that do not are asked for it.
func (s *Sink) lost(ctx context.Context, e entry, f *failure, maybe bool) (result migrate.Result, again bool, err error) {
	old := f.old
	if len(old) == 0 {
		if old, err = s.get(ctx, e); err != nil || old == nil {
			return migrate.Result{}, err == nil, err
		}
	}
	result, again = s.judge(e, old)
	if maybe && result.Outcome == migrate.AlreadyOurs { // the reply to the attempt that wrote it was lost
		result.Outcome = migrate.Written
	}
	return result, again, nil
}

// judge says what it means for a row that the item old is there. again means
// that a put should have replaced it.
func (s *Sink) judge(e entry, old item) (result migrate.Result, again bool) {
	now := s.stored(old)
	version, versioned := versionOf(old)
	same := now.Digest == s.digestOf(e.item)
	switch guarded := s.mode == migrate.Guarded; {
	case now.Key != nil && !now.Key.Equal(e.key) && !now.Tombstone:
		return refused(duplicate(e.ref, now.Key)), false
	case !guarded && same:
		return migrate.Result{Outcome: migrate.AlreadyOurs}, false
	case guarded && !versioned:
		return refused(noVersion(e.ref)), false
	case guarded && version < e.version:
		return migrate.Result{}, true
	case guarded && version == e.version && !now.Tombstone && same:
		return migrate.Result{Outcome: migrate.AlreadyOurs}, false
	case guarded && version == e.version && !now.Tombstone:
		return migrate.Result{Outcome: migrate.Differs}, false
	}
	return migrate.Result{Outcome: migrate.AlreadyNewer}, false
}

// get reads the item of e consistently, nil if there is none.
func (s *Sink) get(ctx context.Context, e entry) (item, error) {
	out, err := do(ctx, s.newCall(0), (*dynamodb.Client).GetItem, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.schema.keyOf(e.item), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

func noVersion(ref string) error {
	return fmt.Errorf("the item %s that is there has no %s: it was not written in guarded mode", ref, AttrVersion)
}
