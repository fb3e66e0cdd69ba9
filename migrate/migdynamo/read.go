package migdynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

const readRows = 100 // of one BatchGetItem

// Expect implements [migrate.Sink]. It keeps nothing of the item, so that one
// serves for row after row.
func (s *Sink) Expect(r migrate.Row) (migrate.Stored, error) {
	i, _ := s.items.Get().(item)
	if i == nil {
		i = make(item, len(r.Fields)+2)
	}
	defer func() {
		clear(i)
		s.items.Put(i)
	}()
	e, err := s.encodeInto(i, r)
	if err != nil {
		return migrate.Stored{}, err
	}
	version, _ := versionOf(e.item)
	return migrate.Stored{Found: true, Version: version, Key: r.Key, Digest: s.digestOf(e.item), Ref: e.ref}, nil
}

// Read implements [migrate.Sink]. Rows that DynamoDB cannot hold are not
// found; what is not found has its Ref.
func (s *Sink) Read(ctx context.Context, rows []migrate.Row) ([]migrate.Stored, error) {
	refs := make([]string, len(rows))
	for i, r := range rows {
		if ref, _, err := s.schema.refOf(r); err == nil {
			refs[i] = ref
		}
	}
	return s.readAll(ctx, refs)
}

// Refresh implements [migrate.Sink]. What has a Ref that can name no item is not
// found.
func (s *Sink) Refresh(ctx context.Context, items []migrate.Stored) ([]migrate.Stored, error) {
	refs := make([]string, len(items))
	for i, it := range items {
		if _, err := s.schema.parseRef(it.Ref); err == nil {
			refs[i] = it.Ref
		}
	}
	return s.readAll(ctx, refs)
}

// readAll reads the items that refs name; "" names none.
func (s *Sink) readAll(ctx context.Context, refs []string) ([]migrate.Stored, error) {
	wanted := map[string]bool{}
	for _, ref := range refs {
		wanted[ref] = true
	}
	delete(wanted, "")
	found := finds{by: make(map[string]migrate.Stored, len(wanted))}
	batches := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(wanted)), readRows))
	err := each(ctx, inFlight, len(batches), func(ctx context.Context, n int) error { return s.readBatch(ctx, batches[n], &found) })
	if err != nil {
		return nil, fmt.Errorf("migdynamo: read from %q: %w", s.table, err)
	}
	all := make([]migrate.Stored, len(refs))
	for i, ref := range refs {
		all[i] = found.by[ref]
		all[i].Ref = ref
	}
	return all, nil
}

// finds are what several reads found, by ref.
type finds struct {
	mu sync.Mutex
	by map[string]migrate.Stored
}

func (f *finds) add(s migrate.Stored) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[s.Ref] = s
}

// readBatch reads the items that refs name until no key is left unprocessed.
func (s *Sink) readBatch(ctx context.Context, refs []string, found *finds) error {
	keys := make([]map[string]types.AttributeValue, len(refs))
	for i, ref := range refs {
		var err error
		if keys[i], err = s.schema.parseRef(ref); err != nil {
			return err
		}
	}
	pace := patience{delays: s.delays}
	for len(keys) > 0 {
		out, err := do(ctx, s.newCall(0), (*dynamodb.Client).BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
		if err != nil {
			return err
		}
		for _, i := range out.Responses[s.table] {
			found.add(s.stored(i))
		}
		left := out.UnprocessedKeys[s.table].Keys
		if len(out.Responses[s.table]) > 0 { // a page of 16 MB: go on at once
			pace.progress()
		} else if len(left) > 0 && !pace.wait(ctx, true) {
			return errUnread(ctx, len(left))
		}
		keys = left
	}
	return nil
}

func errUnread(ctx context.Context, n int) error {
	if err := over(ctx); err != nil {
		return err
	}
	return &failure{class: throttled, err: fmt.Errorf("%d keys of a batch stay unprocessed", n)}
}
