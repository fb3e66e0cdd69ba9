package migrate

// A Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Refusal Severity = "refusal" // nothing may be written before it is mended
	Warning Severity = "warning" // somebody should think about it
	Note    Severity = "note"    // good to know
)

// A Finding is what a look at the source, the sink or the state before the
// first write brought up.
type Finding struct {
	Severity Severity `json:"severity"`
	Field    string   `json:"field,omitempty"` // of the plan, like "source.key"
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy,omitempty"`
}

// Error returns the finding in one line, so that it can be an error.
func (f Finding) Error() string {
	s := f.Message
	if f.Field != "" {
		s = f.Field + ": " + s
	}
	if f.Remedy != "" {
		s += " (" + f.Remedy + ")"
	}
	return s
}
