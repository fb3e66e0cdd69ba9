package awsdynamo

import (
	"context"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	transport "github.com/aws/smithy-go/endpoints"
)

// rememberedEndpoints asks the SDK once for each endpoint. The SDK finds it
// out anew for each request and compiles regular expressions for that: 60 % of
// all memory that a put allocates.
type rememberedEndpoints struct {
	dynamodb.EndpointResolverV2
	known sync.Map // of transport.Endpoint, by endpointKey
}

// An endpointKey is what an endpoint depends on. There are few: one per table,
// and account of the credentials.
type endpointKey struct {
	region, endpoint, account, mode, resource, resources string
	dualStack, fips, search                              bool
}

func keyOfEndpoint(p dynamodb.EndpointParameters) endpointKey {
	return endpointKey{
		aws.ToString(p.Region), aws.ToString(p.Endpoint), aws.ToString(p.AccountId), aws.ToString(p.AccountIdEndpointMode),
		aws.ToString(p.ResourceArn), strings.Join(p.ResourceArnList, " "),
		aws.ToBool(p.UseDualStack), aws.ToBool(p.UseFIPS), aws.ToBool(p.IsSearchOperation),
	}
}

// ResolveEndpoint implements [dynamodb.EndpointResolverV2].
func (r *rememberedEndpoints) ResolveEndpoint(ctx context.Context, p dynamodb.EndpointParameters) (transport.Endpoint, error) {
	key := keyOfEndpoint(p)
	if e, ok := r.known.Load(key); ok {
		return e.(transport.Endpoint), nil
	}
	e, err := r.EndpointResolverV2.ResolveEndpoint(ctx, p)
	if err == nil {
		r.known.Store(key, e)
	}
	return e, err
}
