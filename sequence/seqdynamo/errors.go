package seqdynamo

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/tallystick/tallystick/sequence"
)

// How long to leave the table alone.
const (
	throttleDelay = 100 * time.Millisecond // on-demand tables and partitions adapt within seconds
	rightsDelay   = 5 * time.Second        // somebody has to do something
)

// translate returns what an error of the SDK means here. sent tells whether a
// request may have left, writes whether it may have changed something. A
// failed condition stays what it is.
//
// The SDK reports an answer as a smithy.APIError within an
// awshttp.ResponseError, which has the status; a request that got none as a
// smithy.CanceledError or as a RequestSendError; and one whose answer was cut
// short as a response without an APIError.
func (s *Store) translate(err error, sent, writes bool) error {
	api, answered := errors.AsType[smithy.APIError](err)
	switch {
	case answered && s.refusal(api) != nil:
		return s.refusal(api)
	case status(err) == http.StatusTooManyRequests: // by something in between
		return throttled(err)
	case answered && status(err) < http.StatusInternalServerError:
		return &sequence.Error{Code: sequence.CodeInternal, Message: "DynamoDB refuses the request", Err: briefly(api)}
	case !sent && strings.Contains(err.Error(), "get credentials: "): // the SDK has no type for it
		return noCredentials(err)
	case !sent:
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "no request to DynamoDB could be sent", Err: briefly(err)}
	case writes:
		return &sequence.Error{Code: sequence.CodeUnknown, Message: "no answer from DynamoDB", Err: briefly(err)}
	}
	return &sequence.Error{Code: sequence.CodeUnavailable, Message: "no answer from DynamoDB", Err: briefly(err)}
}

// refusal returns the error for an answer that says that nothing was done, and
// nil for any other.
func (s *Store) refusal(api smithy.APIError) error {
	code := api.ErrorCode()
	switch code {
	case "ConditionalCheckFailedException":
		failed, _ := api.(*types.ConditionalCheckFailedException)
		return failedCondition{failed}
	case "ResourceNotFoundException":
		s.guard.missing()
		return noTable(s.table)
	case "TransactionConflictException", "ReplicatedWriteConflictException":
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "the item is being written elsewhere", Err: briefly(api), RetryAfter: throttleDelay}
	case "AccessDeniedException":
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "AWS denies access", Err: briefly(api), RetryAfter: rightsDelay,
			Remedy: "give this role the rights that the documentation of seqdynamo lists"}
	case "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException", "IncompleteSignature",
		"MissingAuthenticationTokenException", "MissingAuthenticationToken", "ExpiredTokenException", "InvalidClientTokenId", "NotAuthorized":
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "AWS does not accept the credentials: " + code, RetryAfter: rightsDelay,
			Remedy: "check the credentials and the clock of this machine"} // without the text, which may quote what was signed
	}
	if _, throttles := retry.DefaultThrottleErrorCodes[code]; throttles {
		return throttled(api)
	}
	return nil
}

// throttled is never taken for a conflict: the item may be as the write wants
// it, and asking again at once makes it worse.
func throttled(err error) error {
	return &sequence.Error{Code: sequence.CodeUnavailable, Message: "DynamoDB throttles", Err: briefly(err), RetryAfter: throttleDelay}
}

// A failedCondition is a write that was refused because the item is not as it
// must be.
type failedCondition struct {
	*types.ConditionalCheckFailedException
}

// brief is an error of the SDK in fewer words. It matches what the whole one
// matches.
type brief struct {
	text string
	err  error
}

func (b brief) Error() string { return b.text }
func (b brief) Unwrap() error { return b.err }

// briefly leaves out what the SDK puts around an error: its operation, host
// and request.
func briefly(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return brief{api.ErrorCode() + ": " + api.ErrorMessage(), err}
	}
	if sending, ok := errors.AsType[*url.Error](err); ok {
		return brief{sending.Err.Error(), err}
	}
	if code := status(err); code >= http.StatusMultipleChoices {
		return brief{fmt.Sprintf("HTTP status %d, and the answer is not DynamoDB's", code), err}
	}
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		return brief{op.Err.Error(), err}
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

func notDone(err error) error {
	return &sequence.Error{Code: sequence.CodeUnavailable, Message: "not done", Err: err}
}

// noCredentials returns the error for a request that could not be signed.
func noCredentials(err error) error {
	cause := brief{"none in the environment, in AWS's files, and no role of this machine", err}
	if text := err.Error(); !strings.Contains(text, "no EC2 IMDS role found") {
		for _, around := range []string{"get credentials: ", "failed to refresh cached credentials, "} {
			if _, inner, ok := strings.Cut(text, around); ok {
				text = inner
			}
		}
		cause.text = text
	}
	return &sequence.Error{Code: sequence.CodeUnavailable, Field: "credentials", Message: "there are no AWS credentials", Err: cause, RetryAfter: rightsDelay,
		Remedy: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
}

func noTable(table string) error {
	return &sequence.Error{Code: sequence.CodePrecondition, Field: "table", Message: fmt.Sprintf("table %q does not exist", table),
		Remedy: "check its name and region, or have it created"}
}

func foreignItem(name string, err error) error {
	return &sequence.Error{Code: sequence.CodeInternal, Message: fmt.Sprintf("item %q was not written by Tallystick", name), Err: err,
		Remedy: "restore the item or remove it"}
}

// wrap names the operation and the sequence.
func wrap(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case name == "":
		return fmt.Errorf("seqdynamo: %s: %w", op, err)
	}
	return fmt.Errorf("seqdynamo: %s %q: %w", op, name, err)
}
