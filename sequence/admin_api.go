package sequence

import "context"

// An Admin manages sequences. [Service] does so in a store, and seqrpc.Client
// at a server far away.
type Admin interface {
	// Create creates sequences; the result has one entry per spec. See
	// [Service.Create].
	Create(ctx context.Context, req CreateRequest) ([]CreateResult, error)
	// Alter changes a definition and returns the sequence after it.
	Alter(ctx context.Context, req AlterRequest) (Record, error)
	// Get returns a sequence, or [ErrNotFound].
	Get(ctx context.Context, name string) (Record, error)
	// List returns one page of sequences.
	List(ctx context.Context, req ListRequest) (ListResponse, error)
	// Delete deletes a sequence, leaving a tombstone with its counter.
	Delete(ctx context.Context, name string) error
	// Restart moves a counter and returns the sequence after it.
	Restart(ctx context.Context, req RestartRequest) (Record, error)
}

// MaxCreate is how many sequences one [CreateRequest] may create.
const MaxCreate = 10_000

// A CreateRequest creates sequences, each on its own: one that is refused
// does not stop the others.
type CreateRequest struct {
	Specs []Spec
	// ReuseValues lets a name that was deleted begin at its start, or in
	// the other direction, although values were handed out there before.
	ReuseValues bool
}

// A CreateResult is a created sequence, or why it was not.
type CreateResult struct {
	Record Record
	Err    *Error
}

// An AlterRequest changes what Spec says and leaves the rest.
type AlterRequest struct {
	Spec        Spec
	IfVersion   uint32 // 0: whichever version it has
	ReuseValues bool   // allows a change of direction, which begins a new epoch
}

// A RestartRequest moves the counter of a sequence.
type RestartRequest struct {
	Name        string
	With        *int64 // the next value; nil: the definition's start
	ReuseValues bool   // allows moving back, which begins a new epoch
}

// MaxPageSize is the most sequences one page lists.
const MaxPageSize = 1_000

// A ListRequest asks for one page.
type ListRequest struct {
	Prefix    string // names to list begin with it
	PageSize  int    // 0: 100; at most MaxPageSize
	PageToken string // from the page before; "": the first
}

// A ListResponse is one page.
type ListResponse struct {
	Records       []Record
	NextPageToken string // "": this was the last page
}
