package seqdynamo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/sequence"
)

// metaName is the key of the item about the table itself: no sequence has a
// name with a control character.
const metaName = "\ttallystick"

// What the meta item says of the table's content.
const (
	kind   = "sequences"
	format = 1
)

const (
	attrKind       = "kind"
	attrFormat     = "format"
	attrIdentity   = "table_id"
	attrGeneration = "generation"
)

// A meta is the meta item.
type meta struct {
	identity   string // the TableId when the content was made or adopted, or random if the server has none
	generation uint64
}

var errNoMeta = errors.New("no meta item")

// ensureMeta returns the meta item, and writes it if the table is empty
// and not to be adopted. id is the TableId.
func (s *Store) ensureMeta(ctx context.Context, id string, adopt bool) (meta, error) {
	m, err := s.loadMeta(ctx)
	if !errors.Is(err, errNoMeta) {
		return m, err
	}
	if adopt { // there is nothing to adopt, and a mistaken name must not look like success
		return meta{}, &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("table %q holds no sequences", s.table),
			Remedy: "name the table that was restored"}
	}
	if empty, err := s.empty(ctx); err != nil {
		return meta{}, err
	} else if !empty {
		return meta{}, &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("table %q has items that Tallystick did not write", s.table),
			Remedy: "name another table"}
	}
	_, err = write(ctx, s, (*dynamodb.Client).PutItem, &dynamodb.PutItemInput{
		TableName: &s.table, ConditionExpression: aws.String("attribute_not_exists(#name)"), ExpressionAttributeNames: names(attrName),
		Item: item{attrName: text(metaName), attrKind: text(kind), attrFormat: number(format), attrGeneration: number(0),
			attrIdentity: text(cmp.Or(id, rand.Text()))},
	})
	if _, lost := errors.AsType[failedCondition](err); err != nil && !lost {
		return meta{}, err
	}
	return s.loadMeta(ctx)
}

// empty reports whether the table has no items but the meta item, which
// another process may just have written.
func (s *Store) empty(ctx context.Context) (bool, error) {
	out, err := read(ctx, s, (*dynamodb.Client).Scan, &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(1)})
	if err != nil {
		return false, err
	}
	return len(out.Items) == 0 || isMeta(out.Items[0]), nil
}

// isMeta reports whether i is the meta item.
func isMeta(i item) bool {
	name, ok := i[attrName].(*types.AttributeValueMemberS)
	return ok && name.Value == metaName
}

// loadMeta reads the meta item and fails with errNoMeta if there is none.
func (s *Store) loadMeta(ctx context.Context) (meta, error) {
	i, err := s.get(ctx, metaName)
	if err != nil {
		return meta{}, err
	}
	if i == nil {
		return meta{}, errNoMeta
	}
	d := decoder{item: i}
	m := meta{identity: d.text(attrIdentity), generation: d.number(attrGeneration, 64)}
	found, version := d.text(attrKind), d.number(attrFormat, 32)
	switch {
	case d.err != nil || found != kind:
		return meta{}, foreignItem(metaName, d.err)
	case version != format:
		return meta{}, &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("table %q has format %d, this version reads %d", s.table, version, format),
			Remedy: "use the version of tallystick that wrote it"}
	}
	return m, nil
}

// Generation implements [sequence.Store]. It fails with
// [sequence.ErrPrecondition] once the table is not the one that was opened;
// from then on nothing is written.
func (s *Store) Generation(ctx context.Context) (uint64, error) {
	g, err := s.generation(ctx)
	return g, wrap("generation", "", err)
}

func (s *Store) generation(ctx context.Context) (uint64, error) {
	if err := s.sound(ctx, identityInterval); err != nil {
		return 0, err
	}
	m, err := s.loadMeta(ctx)
	switch {
	case errors.Is(err, errNoMeta):
		return 0, s.guard.refuse(anotherTable(s.table))
	case err != nil:
		return 0, err
	}
	return m.generation, s.guard.content(m.identity)
}

// Bump implements [sequence.Store].
func (s *Store) Bump(ctx context.Context) error {
	return wrap("bump", "", s.updateMeta(ctx, "ADD #generation :one", item{":one": number(1)}))
}

// Adopt records that this table, whichever it was before, is the one its
// content belongs to, and raises the generation. It is the last step of
// `tallystick seq adopt`: until then the table is refused to everybody who
// did not set [Options.Adopt], so a process that dies half way leaves counters
// that were moved and nobody who uses them. Servers that have the table open
// must be restarted.
func (s *Store) Adopt(ctx context.Context) error {
	table, err := s.describe(ctx)
	if err != nil {
		return wrap("adopt", "", err)
	}
	id := cmp.Or(aws.ToString(table.TableId), rand.Text())
	err = s.updateMeta(ctx, "SET #table_id = :new ADD #generation :one", item{":new": text(id), ":one": number(1)})
	if err == nil {
		s.guard.open(id, false)
	}
	return wrap("adopt", "", err)
}

// updateMeta changes the meta item of the table that was opened.
func (s *Store) updateMeta(ctx context.Context, update string, values item) error {
	if err := s.sound(ctx, never); err != nil {
		return err
	}
	values[":identity"] = text(s.guard.identity())
	_, err := write(ctx, s, (*dynamodb.Client).UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(metaName), UpdateExpression: &update, ExpressionAttributeValues: values,
		ConditionExpression: aws.String("#table_id = :identity"), ExpressionAttributeNames: names(attrIdentity, attrGeneration),
	})
	if _, other := errors.AsType[failedCondition](err); other {
		return s.guard.refuse(adoptedTable(s.table))
	}
	return err
}
