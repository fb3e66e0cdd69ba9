package migdynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// A batched is a row in a batch.
type batched struct {
	entry
	result *migrate.Result
}

// putBatch overwrites the items of the rows with those indexes.
func (s *Sink) putBatch(ctx context.Context, rows []migrate.Row, indexes []int, results []migrate.Result) error {
	batch := make([]batched, 0, len(indexes))
	for _, i := range indexes {
		e, err := s.encode(rows[i])
		if err != nil {
			results[i] = refused(err)
			continue
		}
		batch = append(batch, batched{e, &results[i]})
	}
	return s.sendBatch(ctx, batch)
}

// sendBatch sends a batch until nothing of it is left unprocessed. One that is
// refused is cut in halves.
func (s *Sink) sendBatch(ctx context.Context, batch []batched) error {
	pace := patience{delays: s.delays}
	for len(batch) > 0 {
		left, err := s.sendOnce(ctx, batch)
		switch {
		case classOf(err) == invalid:
			return s.bisect(ctx, batch, err)
		case err != nil:
			return err
		case len(left) < len(batch):
			pace.progress()
		}
		if batch = left; len(batch) > 0 && !pace.wait(ctx, true) {
			if err := over(ctx); err != nil {
				return err
			}
			return &failure{class: throttled, err: fmt.Errorf("%d items of a batch stay unprocessed", len(batch))}
		}
	}
	return nil
}

// bisect writes the halves of a batch that DynamoDB refuses as a whole.
func (s *Sink) bisect(ctx context.Context, batch []batched, err error) error {
	if len(batch) == 1 {
		*batch[0].result = refused(err)
		return nil
	}
	half := len(batch) / 2
	if err := s.sendBatch(ctx, batch[:half]); err != nil {
		return err
	}
	return s.sendBatch(ctx, batch[half:])
}

// sendOnce sends a batch and returns what is left unprocessed.
func (s *Sink) sendOnce(ctx context.Context, batch []batched) ([]batched, error) {
	n, requests := 0, make([]types.WriteRequest, len(batch))
	for i, b := range batch {
		n += units(b.size)
		requests[i].PutRequest = &types.PutRequest{Item: b.item}
	}
	out, err := do(ctx, s.newCall(n), (*dynamodb.Client).BatchWriteItem, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{s.table: requests}})
	if err != nil {
		return nil, err
	}
	return s.unprocessed(batch, out.UnprocessedItems[s.table])
}

// unprocessed returns the rows of the items that came back, and marks the
// others written.
func (s *Sink) unprocessed(batch []batched, back []types.WriteRequest) ([]batched, error) {
	refs := make(map[string]bool, len(back))
	for _, r := range back {
		if r.PutRequest == nil {
			return nil, errors.New("DynamoDB gives back a request that was not sent")
		}
		ref, err := s.schema.ref(r.PutRequest.Item)
		if err != nil {
			return nil, fmt.Errorf("DynamoDB gives back an item that was not sent: %w", err)
		}
		refs[ref] = true
	}
	var left []batched
	for _, b := range batch {
		if refs[b.ref] {
			left = append(left, b)
			continue
		}
		*b.result = migrate.Result{Outcome: migrate.Written}
	}
	return left, nil
}
