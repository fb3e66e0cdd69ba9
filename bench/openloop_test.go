package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// An httpCall is one call of a REST path.
type httpCall struct {
	kind   string      // what it is counted as
	at     shard.Shard // that it needs
	method string
	url    string
	body   string
}

// A httpAnswer is what became of a call. Its time counts from when the call was
// due, so that a caller who comes late is not taken for a server that is fast.
type httpAnswer struct {
	httpCall
	due        time.Time
	took       time.Duration
	status     int // 0: there was no answer
	code       string
	retryAfter string
	err        error
}

// openLoop makes calls at a fixed rate for d, whatever becomes of those before, and
// returns the answers, by when the calls were due, once the last one has come.
func openLoop(client *http.Client, rate int, d time.Duration, next func(i int) httpCall) []httpAnswer {
	answers := make([]httpAnswer, int(d.Seconds()*float64(rate)))
	var calls sync.WaitGroup
	start := time.Now()
	for i := range answers {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		<-time.After(time.Until(due))
		call := next(i)
		calls.Go(func() { answers[i] = call.make(client, due) })
	}
	calls.Wait()
	return answers
}

// make makes the call. What the server may take is the test's to judge: the time
// limit only ends what would never.
func (c httpCall) make(client *http.Client, due time.Time) httpAnswer {
	a := httpAnswer{httpCall: c, due: due}
	a.status, a.code, a.retryAfter, a.err = c.ask(client)
	a.took = time.Since(due)
	return a
}

func (c httpCall) ask(client *http.Client) (status int, code, retryAfter string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewBufferString(c.body))
	if err != nil {
		return 0, "", "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode >= http.StatusBadRequest && err == nil {
		var problem struct{ Code string }
		err = json.Unmarshal(body, &problem)
		code = problem.Code
	}
	return resp.StatusCode, code, resp.Header.Get("Retry-After"), err
}
