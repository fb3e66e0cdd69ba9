package migdynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/tallystick/tallystick/migrate"
)

// An operation is a method of the SDK's client.
type operation[In, Out any] func(*dynamodb.Client, context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// A class says what may be done about a failure.
type class int

const (
	final     class = iota // the same will happen again
	passing                // it may have been done, or may work when tried again
	throttled              // nothing was done; wait
	condition              // the item is not as the request wants it
	invalid                // what was sent can never be stored
)

// A failure is an error of DynamoDB.
type failure struct {
	class class
	code  string // DynamoDB's, "" without an answer
	err   error
	old   item // with condition: the item, if the server tells
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Is makes failures that may pass match.
func (f *failure) Is(target error) bool {
	return target == migrate.ErrTransient && (f.class == passing || f.class == throttled)
}

// A call is one request with its retries.
type call struct {
	sink  *Sink
	units int // of writing
	tries patience
	maybe bool // an attempt that failed may have been done
}

func (s *Sink) newCall(units int) *call {
	return &call{sink: s, units: units, tries: patience{delays: s.delays}}
}

// do makes a request until it is done, fails for good, or patience or ctx
// ends. Its errors are failures, or that of ctx.
func do[In, Out any](ctx context.Context, c *call, op operation[In, Out], in *In) (*Out, error) {
	for {
		out, err := attempt(ctx, c, op, in)
		f, failed := err.(*failure)
		if !failed || f.class != passing && f.class != throttled {
			return out, err
		}
		c.maybe = c.maybe || f.class == passing
		if !c.tries.wait(ctx, f.class == throttled) {
			return nil, cmp.Or(over(ctx), err)
		}
	}
}

// attempt makes one HTTP request.
func attempt[In, Out any](ctx context.Context, c *call, op operation[In, Out], in *In) (*Out, error) {
	if err := c.sink.limiter.wait(ctx, c.units); err != nil {
		return nil, err
	}
	if err := over(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(callersOwn(ctx), c.sink.timeout)
	defer cancel()
	out, err := op(c.sink.client, limited, in)
	if err == nil {
		return out, nil
	}
	f := classify(err)
	if f.class == passing && over(ctx) != nil {
		return nil, over(ctx)
	}
	return nil, f
}

// refusals are answers that say that nothing was done, beside throttling.
var refusals = map[string]class{
	"ValidationException":                      invalid,
	"ItemCollectionSizeLimitExceededException": invalid, // 10 GB in one partition, with local indexes
	"TransactionConflictException":             passing,
	"ReplicatedWriteConflictException":         passing,
	"ExpiredTokenException":                    passing, // the SDK gets another
}

// classify returns what an error of the SDK means.
//
// The SDK reports an answer as a smithy.APIError within an
// awshttp.ResponseError, which has the status; a request that got none as a
// smithy.CanceledError or a RequestSendError; and one whose answer was cut
// short as a response without an APIError.
func classify(err error) *failure {
	f := &failure{class: passing, err: briefly(err)}
	api, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		if status(err) == http.StatusTooManyRequests { // by something in between
			f.class = throttled
		}
		return f
	}
	f.code = api.ErrorCode()
	if failed, ok := api.(*types.ConditionalCheckFailedException); ok {
		f.class, f.old = condition, failed.Item
		return f
	}
	_, throttles := retry.DefaultThrottleErrorCodes[f.code]
	known, refused := refusals[f.code]
	switch {
	case throttles || status(err) == http.StatusTooManyRequests:
		f.class = throttled
	case refused:
		f.class = known
	case status(err) < http.StatusInternalServerError:
		f.class = final
	}
	return f
}

// classOf returns the class of err; final for what is no failure.
func classOf(err error) class {
	if f, ok := err.(*failure); ok {
		return f.class
	}
	return final
}

// codeOf returns what DynamoDB calls err, "" if it is no answer.
func codeOf(err error) string {
	if f, ok := err.(*failure); ok {
		return f.code
	}
	return ""
}

// secretive are refusals whose text may quote what was signed.
var secretive = map[string]bool{
	"UnrecognizedClientException": true, "InvalidSignatureException": true, "IncompleteSignatureException": true, "IncompleteSignature": true,
	"MissingAuthenticationTokenException": true, "MissingAuthenticationToken": true, "ExpiredTokenException": true, "InvalidClientTokenId": true, "NotAuthorized": true,
}

// briefly leaves out what the SDK puts around an error, and what it may quote.
func briefly(err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case ok && secretive[api.ErrorCode()]:
		return fmt.Errorf("AWS does not accept the credentials: %s (check them and the clock of this machine)", api.ErrorCode())
	case ok:
		return fmt.Errorf("%s: %s", api.ErrorCode(), api.ErrorMessage())
	}
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		return op.Err
	}
	return err
}

// status returns the HTTP status of the answer that err reports, 0 for none.
func status(err error) int {
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}
