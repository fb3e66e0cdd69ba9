package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/rollout"
)

// A new_ is the table in DynamoDB, as a rollout.NewSide. Its items are those
// that migdynamo writes.
type new_ struct{ client *dynamodb.Client }

type item = map[string]types.AttributeValue

// openNew returns the new side. The SDK repeats nothing: a write that is sent
// twice may replace what somebody built on the first.
func openNew(ctx context.Context, endpoint string) (new_, error) {
	options := []func(*config.LoadOptions) error{config.WithDefaultRegion("local")}
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return new_{}, err
	}
	return new_{dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Retryer = &endpoint, aws.NopRetryer{}
	})}, nil
}

// Put implements rollout.NewSide.
func (n new_) Put(ctx context.Context, k key, row rollout.Row[string]) (rollout.Held[string], error) {
	i := k.item()
	i["data"], i["version"], i[migdynamo.AttrVersion] = text(row.Value), number(row.Version), number(row.Version)
	return n.write(ctx, k, i, rollout.Held[string]{Row: row, Written: true})
}

// Bury implements rollout.NewSide.
func (n new_) Bury(ctx context.Context, k key, version int64) (rollout.Held[string], error) {
	i := k.item()
	i[migdynamo.AttrVersion], i[migdynamo.AttrDeleted] = number(version), &types.AttributeValueMemberBOOL{Value: true}
	return n.write(ctx, k, i, rollout.Held[string]{Row: rollout.Row[string]{Version: version}, Deleted: true, Written: true})
}

// write puts an item where there is none or an older one.
func (n new_) write(ctx context.Context, k key, i item, done rollout.Held[string]) (rollout.Held[string], error) {
	_, err := n.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: i,
		ConditionExpression:       aws.String("attribute_not_exists(#p) OR #v < :v"),
		ExpressionAttributeNames:  map[string]string{"#p": "room_id", "#v": migdynamo.AttrVersion},
		ExpressionAttributeValues: item{":v": i[migdynamo.AttrVersion]},
	})
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return n.Get(ctx, k)
	}
	if err != nil {
		return rollout.Held[string]{}, fmt.Errorf("%w: %w", rollout.ErrUnknownOutcome, err)
	}
	return done, nil
}

// Get implements rollout.NewSide.
func (n new_) Get(ctx context.Context, k key) (h rollout.Held[string], err error) {
	out, err := n.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(table), Key: k.item(), ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return h, err
	}
	_, h.Deleted = out.Item[migdynamo.AttrDeleted]
	if data, ok := out.Item["data"].(*types.AttributeValueMemberS); ok {
		h.Value = data.Value
	}
	version, ok := out.Item[migdynamo.AttrVersion].(*types.AttributeValueMemberN)
	if !ok {
		return h, fmt.Errorf("item %s has no version", k)
	}
	h.Version, err = strconv.ParseInt(version.Value, 10, 64)
	return h, err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
