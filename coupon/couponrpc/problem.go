package couponrpc

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tallystick/tallystick/coupon"
)

// statusHeader carries the status of a REST answer from a handler. Callers do
// not see it.
const statusHeader = "Tallystick-Status"

// statusCanceled is what the transcoder answers with for a call that ended before
// it was done.
const statusCanceled = 499

// maxProblem bounds an error's body before it is made a problem.
const maxProblem = 64 << 10

// A problem is an error as application/problem+json, RFC 9457.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	Retryable bool         `json:"retryable"`
	TraceID   string       `json:"trace_id"`
	CouponIDs []string     `json:"coupon_ids,omitempty"`
	Errors    []fieldError `json:"errors,omitempty"`
}

// A fieldError says what is wrong with a field, by its JSON pointer.
type fieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// restCodec prints JSON as the contract has it: its own names, false, 0 and
// empty lists.
func restCodec(types vanguard.TypeResolver) vanguard.Codec {
	return &vanguard.JSONCodec{
		MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true, Resolver: types},
		UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types},
	}
}

// rest gives REST answers their statuses and makes errors problems.
func rest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			writeProblem(w, r, problem{Code: coupon.ErrTooLarge.Code, Detail: "the request is over 1 MiB"})
			return
		}
		// A body here is always JSON, whatever curl -d calls it.
		if kind := r.Header.Get("Content-Type"); kind == "" || kind == "application/x-www-form-urlencoded" {
			r.Header.Set("Content-Type", "application/json")
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		if r.Body != nil && !decompressed(w, r) {
			writeProblem(w, r, problem{Code: coupon.ErrInvalid.Code, Detail: "the Content-Encoding of the request is not known: want gzip or none"})
			return
		}
		answer := &restWriter{ResponseWriter: w, request: r}
		next.ServeHTTP(answer, r)
		answer.finish()
	})
}

// A restWriter writes the answer of one REST call.
type restWriter struct {
	http.ResponseWriter
	request *http.Request
	begun   bool
	failed  int // status of an error whose body is being gathered; 0: none
	body    bytes.Buffer
}

// WriteHeader takes the status from the handler's header, or begins to gather an
// error.
func (w *restWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = true
	if status >= 400 {
		w.failed = status
		return
	}
	if asked, err := strconv.Atoi(w.Header().Get(statusHeader)); err == nil {
		status = asked
	}
	w.Header().Del(statusHeader)
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the body, or gathers that of an error.
func (w *restWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.failed == 0 {
		return w.ResponseWriter.Write(b)
	}
	if w.body.Len() < maxProblem {
		w.body.Write(b)
	}
	return len(b), nil
}

// Unwrap lets http.ResponseController get at the writer below.
func (w *restWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush does nothing to an error that is being gathered.
func (w *restWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok && w.failed == 0 {
		f.Flush()
	}
}

// finish writes the error that was gathered.
func (w *restWriter) finish() {
	if w.failed != 0 {
		writeProblem(w.ResponseWriter, w.request, parseStatus(w.failed, w.body.Bytes()))
	}
}

// parseStatus returns the problem behind the JSON of a google.rpc.Status, or
// behind a body that is none.
func parseStatus(status int, body []byte) problem {
	var s struct {
		Message string `json:"message"`
		Details []struct {
			Reason     string            `json:"reason"`
			Metadata   map[string]string `json:"metadata"`
			Violations []struct {
				Field       string `json:"field"`
				Description string `json:"description"`
			} `json:"fieldViolations"`
		} `json:"details"`
	}
	if err := json.Unmarshal(body, &s); err != nil {
		s.Message = strings.TrimSpace(string(body))
	}
	r := refusalOf(status)
	if m := unknownParameter.FindStringSubmatch(s.Message); m != nil {
		r, s.Message = coupon.ErrInvalid, fmt.Sprintf("there is no query parameter %q here", m[1])
	}
	if m := notRead.FindStringSubmatch(s.Message); m != nil {
		r, s.Message = coupon.ErrInvalid, "the request cannot be read: "+m[1]
	}
	if status == http.StatusMethodNotAllowed {
		s.Message = "the path is served, but not with this method: see /v1/openapi.json"
	}
	p := problem{Detail: s.Message, Code: r.Code, Retryable: r.Retryable}
	for _, d := range s.Details {
		if d.Reason != "" {
			p.Code = d.Reason
			p.Retryable = d.Metadata["retryable"] == "true"
			if held := d.Metadata["coupon_ids"]; held != "" {
				p.CouponIDs = strings.Split(held, ",")
			}
		}
		for _, v := range d.Violations {
			p.Errors = append(p.Errors, fieldError{"/" + v.Field, v.Description})
		}
	}
	return p
}

// notRead is what the transcoder says, with 500, of a body or a part of a path that
// does not fit the request's fields. The space is sometimes a hard one.
var notRead = regexp.MustCompile(`^proto:[ \x{A0}](.*)`)

// unknownParameter is what the transcoder says, with 500, of a query parameter that
// no field of the request is named after.
var unknownParameter = regexp.MustCompile(`^unknown field in field path "([^"]*)"`)

// refusalOf returns the kind of an error that carries none of ours: the transcoder
// says it of a request that it cannot read.
func refusalOf(status int) *coupon.Refusal {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return &coupon.Refusal{Code: codeNotFound}
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge: // its "resource exhausted" is a size
		return coupon.ErrTooLarge
	case statusCanceled, http.StatusRequestTimeout, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return coupon.ErrShardUnavailable
	}
	if status >= 500 {
		return &coupon.Refusal{Code: codeInternal}
	}
	return coupon.ErrInvalid
}

// writeProblem completes a problem and writes it.
func writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	p.Status = httpStatus(p.Code)
	p.Type = "urn:tallystick:problem:" + strings.ToLower(strings.ReplaceAll(p.Code, "_", "-"))
	p.Title = http.StatusText(p.Status)
	p.TraceID = traceID(r.Header.Get("Traceparent"))
	h := w.Header()
	h.Del(statusHeader)
	h.Del("Content-Length")
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller may be gone
}

// traceID returns the trace of a W3C traceparent, or a new one.
func traceID(parent string) string {
	if parts := strings.Split(parent, "-"); len(parts) == 4 && len(parts[1]) == 32 {
		if _, err := hex.DecodeString(parts[1]); err == nil {
			return parts[1]
		}
	}
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// unknownPath answers for a path that is none.
func unknownPath(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "no such path: "+r.Method+" "+r.URL.Path, http.StatusNotFound)
}

// Refuse answers a request with a refusal, in the protocol it speaks: for what is
// decided before the handler of [New] is reached.
func Refuse(w http.ResponseWriter, r *http.Request, refusal *coupon.Refusal) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		writeProblem(w, r, problem{Code: refusal.Code, Detail: refusal.Message, Retryable: refusal.Retryable})
		return
	}
	_ = connect.NewErrorWriter().Write(w, r, Encode(refusal)) // the caller may be gone
}
