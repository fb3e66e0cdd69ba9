package seqdynamo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/sequence"
)

var _ sequence.Store = (*Store)(nil)

const (
	creators    = 16    // requests of one Create at a time
	giveUp      = 64    // failures in a row that end it
	filterBatch = 1_000 // items one List looks at where it has a prefix
)

// Create implements [sequence.Store]. Each record is a request, up to 16 of
// them at a time. While DynamoDB throttles they wait longer and longer, and
// after 64 failures in a row the rest is not attempted.
func (s *Store) Create(ctx context.Context, records []sequence.Record) []error {
	errs := make([]error, len(records))
	var next, failures atomic.Int64
	var wg sync.WaitGroup
	for range min(creators, len(records)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(records); i = int(next.Add(1)) - 1 {
				errs[i] = s.createNext(ctx, records[i], &failures)
			}
		})
	}
	wg.Wait()
	for i, r := range records {
		errs[i] = wrap("create", r.Definition.Name, errs[i])
	}
	return errs
}

// createNext creates one record of a batch and counts failures in a row. After
// one it waits: the next write is of another record, so this is no retry.
func (s *Store) createNext(ctx context.Context, r sequence.Record, failures *atomic.Int64) error {
	if failures.Load() >= giveUp {
		return errNotAttempted
	}
	err := s.create(ctx, r)
	switch {
	case err == nil, errors.Is(err, sequence.ErrExists):
		failures.Store(0)
	case !errors.Is(err, sequence.ErrInvalid):
		n := failures.Add(1)
		if e, _ := errors.AsType[*sequence.Error](err); e != nil && e.RetryAfter > 0 {
			pause(ctx, min(e.RetryAfter*time.Duration(n), time.Second))
		}
	}
	return err
}

var errNotAttempted = &sequence.Error{Code: sequence.CodeUnavailable, Message: "not attempted, as too many of the records before it failed"}

func (s *Store) create(ctx context.Context, r sequence.Record) error {
	if err := sequence.CheckName(r.Definition.Name); err != nil {
		return err
	}
	_, err := s.put(ctx, r, "attribute_not_exists(#name)", nil, attrName)
	if errors.Is(err, sequence.ErrConflict) {
		return sequence.ErrExists
	}
	return err
}

// Load implements [sequence.Store].
func (s *Store) Load(ctx context.Context, name string) (sequence.Record, error) {
	r, err := s.load(ctx, name)
	return r, wrap("load", name, err)
}

func (s *Store) load(ctx context.Context, name string) (sequence.Record, error) {
	if sequence.CheckName(name) != nil { // the meta item's among them
		return sequence.Record{}, sequence.ErrNotFound
	}
	i, err := s.get(ctx, name)
	switch {
	case err != nil:
		return sequence.Record{}, err
	case i == nil:
		return sequence.Record{}, sequence.ErrNotFound
	}
	return decode(i)
}

// get reads an item consistently, nil if there is none.
func (s *Store) get(ctx context.Context, name string) (item, error) {
	out, err := read(ctx, s, (*dynamodb.Client).GetItem, &dynamodb.GetItemInput{TableName: &s.table, Key: key(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// advanceCondition holds where [sequence.Advance.Applies].
const advanceCondition = "#epoch = :epoch AND #definition_version = :version AND #state = :open AND #exhausted = :false AND #next BETWEEN :low AND :high"

// Advance implements [sequence.Store].
func (s *Store) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	r, err := s.advance(ctx, a)
	return r, wrap("advance", a.Name, err)
}

func (s *Store) advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	if a.Low > a.High || sequence.CheckName(a.Name) != nil { // DynamoDB refuses both
		now, err := s.load(ctx, a.Name)
		return now, orConflict(err)
	}
	if err := s.sound(ctx, never); err != nil {
		return sequence.Record{}, err
	}
	out, err := write(ctx, s, (*dynamodb.Client).UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(a.Name), ReturnValues: types.ReturnValueAllNew,
		UpdateExpression:                    aws.String("SET #next = #next + :delta, #last_write = :nonce"),
		ConditionExpression:                 aws.String(advanceCondition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ExpressionAttributeNames:            names(attrNext, attrNonce, attrEpoch, attrVersion, attrState, attrExhausted),
		ExpressionAttributeValues: item{
			":delta": integer(a.Delta), ":nonce": text(a.Nonce), ":epoch": number(a.Epoch), ":version": number(uint64(a.Version)),
			":open": text(string(sequence.StateOpen)), ":false": flag(false), ":low": integer(a.Low), ":high": integer(a.High),
		},
	})
	if failed, ok := errors.AsType[failedCondition](err); ok {
		return s.conflict(ctx, a.Name, failed)
	}
	if err != nil {
		return sequence.Record{}, err
	}
	return decode(out.Attributes)
}

// Swap implements [sequence.Store].
func (s *Store) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	name := next.Definition.Name
	if sequence.CheckName(name) != nil {
		return sequence.Record{}, wrap("swap", name, sequence.ErrNotFound)
	}
	r, err := s.put(ctx, next, "#last_write = :nonce", item{":nonce": text(nonce)}, attrNonce)
	return r, wrap("swap", name, err)
}

// put replaces an item where condition holds.
func (s *Store) put(ctx context.Context, r sequence.Record, condition string, values item, attrs ...string) (sequence.Record, error) {
	if err := s.sound(ctx, never); err != nil {
		return sequence.Record{}, err
	}
	_, err := write(ctx, s, (*dynamodb.Client).PutItem, &dynamodb.PutItemInput{
		TableName: &s.table, Item: encode(r), ConditionExpression: &condition,
		ExpressionAttributeNames: names(attrs...), ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[failedCondition](err); ok {
		return s.conflict(ctx, r.Definition.Name, failed)
	}
	if err != nil {
		return sequence.Record{}, err
	}
	return r, nil
}

// conflict returns the record that a write met, with ErrConflict. It may be
// the one it wrote, when somebody between here and DynamoDB has repeated the
// write after it was done: the nonce tells.
//
// AWS returns the item with the failure. Servers that do not are asked for it:
// nothing is lost by that but a request, and the time in which it may change.
func (s *Store) conflict(ctx context.Context, name string, failed failedCondition) (sequence.Record, error) {
	now, err := decodeOrLoad(failed.Item, func() (sequence.Record, error) { return s.load(ctx, name) })
	if errors.Is(err, sequence.ErrUnavailable) { // it may be our own record
		return sequence.Record{}, &sequence.Error{Code: sequence.CodeUnknown, Message: "the record cannot be read after a conflict", Err: err}
	}
	return now, orConflict(err)
}

func decodeOrLoad(i item, load func() (sequence.Record, error)) (sequence.Record, error) {
	if len(i) > 0 {
		return decode(i)
	}
	return load()
}

func orConflict(err error) error {
	if err != nil {
		return err
	}
	return sequence.ErrConflict
}

// List implements [sequence.Store]. It is one Scan: with a prefix, which
// DynamoDB applies to what it has read, of up to 1,000 items.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]sequence.Record, string, bool, error) {
	in := &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(limit))}
	if prefix != "" {
		in.FilterExpression, in.ExpressionAttributeNames = aws.String("begins_with(#name, :prefix)"), names(attrName)
		in.ExpressionAttributeValues = item{":prefix": text(prefix)}
		in.Limit = aws.Int32(int32(max(limit, filterBatch)))
	}
	if after != "" {
		in.ExclusiveStartKey = key(after)
	}
	out, err := read(ctx, s, (*dynamodb.Client).Scan, in)
	if err != nil {
		return nil, after, false, wrap("list", prefix, err)
	}
	records, last, more, err := page(out, after, limit)
	return records, last, more, wrap("list", prefix, err)
}

// page returns up to limit records of a scan, and where to go on.
func page(out *dynamodb.ScanOutput, after string, limit int) (records []sequence.Record, last string, more bool, err error) {
	last = after
	for _, i := range out.Items {
		if isMeta(i) {
			continue
		}
		if len(records) == limit {
			return records, last, true, nil
		}
		r, err := decode(i)
		if err != nil {
			return nil, after, false, err
		}
		records, last = append(records, r), r.Definition.Name
	}
	if out.LastEvaluatedKey != nil {
		d := decoder{item: out.LastEvaluatedKey}
		return records, d.text(attrName), true, d.err
	}
	return records, last, false, nil
}

// key returns the key of a name.
func key(name string) item { return item{attrName: text(name)} }

// names returns placeholders for attributes: "#state" for "state", which
// DynamoDB reserves. It must be given exactly those that are used.
func names(attrs ...string) map[string]string {
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		m["#"+a] = a
	}
	return m
}
