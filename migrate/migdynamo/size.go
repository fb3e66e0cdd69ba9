package migdynamo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB's limits, in bytes.
const (
	maxItem      = 400 << 10
	maxPartition = 2048
	maxSort      = 1024
	maxLevels    = 32 // of lists and maps within each other
	unit         = 1 << 10
)

// sizeOf returns the bytes of an item as DynamoDB counts them: names and
// values, text in UTF-8.
func sizeOf(i item) int {
	n := 0
	for name, v := range i {
		n += len(name) + valueSize(v)
	}
	return n
}

// valueSize counts what [encodeValue] makes.
func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		d, _ := parseDecimal(v.Value)
		return d.size()
	case *types.AttributeValueMemberL:
		n := 3
		for _, e := range v.Value {
			n += 1 + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	}
	return 1 // null, or a boolean
}

// checkSize returns why an item of n bytes is too large.
func checkSize(i item, n int) error {
	if n <= maxItem {
		return nil
	}
	largest := slices.MaxFunc(slices.Collect(maps.Keys(i)), func(a, b string) int {
		return cmp.Or(cmp.Compare(valueSize(i[a]), valueSize(i[b])), cmp.Compare(b, a))
	})
	return fmt.Errorf("the item has %d bytes, at most %d; attribute %q alone has %d", n, maxItem, largest, valueSize(i[largest]))
}

// units returns the write units of n bytes.
func units(n int) int { return max(1, (n+unit-1)/unit) }
