package bench

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/history"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
)

// faultSize is how long and hard the fault run is.
type faultSize struct {
	clients, rate int
	every         time.Duration // between two kills
	rounds        int
	values        int // that have to be logged at least
}

// TestFaultKillsUnderLoad runs three servers on one DynamoDB table and clients
// that switch servers with every lease, kills a server and a client with
// kill -9 every few seconds, pauses servers, alters a sequence, and drops and
// delays replies of the store and of the servers. No value may be handed out
// twice and no client may see its values out of order.
func TestFaultKillsUnderLoad(t *testing.T) {
	size := faultSize{clients: 6, rate: 8_000, every: 1500 * time.Millisecond, rounds: 6, values: 200_000}
	if full {
		size = faultSize{clients: 20, rate: 15_000, every: 5 * time.Second, rounds: 24, values: 20_000_000}
	}
	store := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	r := newFaultRun(t, size, store.URL)
	store.Inject(storeFaults)
	for i := range r.clients {
		r.launch(t, i)
	}
	tick := time.NewTicker(size.every)
	defer tick.Stop()
	for round := range size.rounds {
		<-tick.C
		r.disturb(t, round)
	}
	<-tick.C
	store.Inject(nil)
	r.stop(t)
	total := 0
	for _, name := range r.load.Sequences {
		total += judge(t, filepath.Join(r.load.Dir, name), name == "down")
	}
	t.Logf("%d values, %d clients, %d kills of servers and of clients", total, r.started, size.rounds)
	if total < size.values {
		t.Errorf("only %d values were logged, want %d", total, size.values)
	}
}

// A faultRun is servers and clients that are being disturbed.
type faultRun struct {
	every    time.Duration
	servers  []server
	networks []*realtest.Proxy // one before each server
	load     load              // of the client launched last
	clients  []*exec.Cmd
	started  int // clients launched so far
}

// newFaultRun starts three servers on the table at endpoint and creates the
// sequences. No client runs yet.
func newFaultRun(t *testing.T, size faultSize, endpoint string) *faultRun {
	r := &faultRun{every: size.every, clients: make([]*exec.Cmd, size.clients)}
	r.load = load{Dir: t.TempDir(), Sequences: []string{"up", "down"}, Callers: 3, Rate: size.rate,
		Capacity: size.rate * int(time.Duration(size.rounds+4)*size.every/time.Second)}
	for range 3 {
		s := startServer(t, onDynamo(endpoint)...)
		network := realtest.NewProxy(t, s.URL[len("http://"):])
		r.servers, r.networks = append(r.servers, s), append(r.networks, network)
		r.load.Servers = append(r.load.Servers, "http://"+network.Addr)
	}
	cache := new(int64(5000))
	results, err := dial(t, r.servers[0].URL).Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{
		{Name: "up", ClientCacheMax: cache}, {Name: "down", Increment: new(int64(-3)), ClientCacheMax: cache}}})
	if err != nil || results[0].Err != nil || results[1].Err != nil {
		t.Fatal(results, err)
	}
	return r
}

// launch starts a new client in place i.
func (r *faultRun) launch(t *testing.T, i int) {
	r.load.Client = fmt.Sprintf("%03d", r.started)
	r.started++
	r.clients[i] = r.load.start(t)
}

// replaceClient kills a client and starts another.
func (r *faultRun) replaceClient(t *testing.T) {
	i := rand.IntN(len(r.clients))
	r.clients[i].Process.Kill()
	r.clients[i].Wait()
	r.launch(t, i)
}

// disturb kills a server and a client, brings both back, slows a network down,
// and does one more thing to another server.
func (r *faultRun) disturb(t *testing.T, round int) {
	victim := rand.IntN(len(r.servers))
	r.servers[victim].Kill()
	r.replaceClient(t)
	r.servers[victim].Start()
	r.networks[round%3].Delay(time.Duration(rand.IntN(50)) * time.Millisecond)
	other := (victim + 1) % 3
	switch round % 3 {
	case 0: // a server that sleeps through what the others do
		r.servers[other].Pause()
		time.AfterFunc(r.every/2, r.servers[other].Resume)
	case 1: // replies that never arrive
		r.networks[other].Stall()
		time.AfterFunc(r.every/2, r.networks[other].Restore)
	case 2:
		_, err := dial(t, r.servers[victim].URL).Alter(t.Context(), sequence.AlterRequest{
			Spec: sequence.Spec{Name: "up", Labels: map[string]string{"round": fmt.Sprint(round)}}})
		if err != nil {
			t.Logf("alter in round %d: %v", round, err)
		}
	}
}

// stop ends the clients in order.
func (r *faultRun) stop(t *testing.T) {
	for _, c := range r.clients {
		c.Process.Signal(syscall.SIGTERM)
	}
	for _, c := range r.clients {
		if err := c.Wait(); err != nil {
			t.Errorf("client: %v", err)
		}
	}
}

// storeFaults loses, delays and refuses some of the store's requests.
func storeFaults(r realtest.DynamoRequest) realtest.Fault {
	p := rand.IntN(100)
	switch {
	case p < 3:
		return realtest.Fault{Action: realtest.LoseReply}
	case p < 5:
		return realtest.Fault{Action: realtest.LoseRequest}
	case p < 7:
		return realtest.Fault{Action: realtest.ThrottleOnDemand}
	case p < 8:
		return realtest.Fault{Action: realtest.ServerErrorAfterWrite}
	case p < 9: // arrives after its sender has given up
		return realtest.Fault{Before: 2500 * time.Millisecond}
	case p < 20:
		return realtest.Fault{After: time.Duration(rand.IntN(100)) * time.Millisecond}
	}
	return realtest.Fault{}
}

// judge reads the logs of all clients of a sequence, fails the test if they
// show a fault, and checks that the checker would have seen one. It returns
// how many values were logged.
func judge(t *testing.T, dir string, descending bool) int {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatal("no logs", err)
	}
	var clients [][]history.Event
	total := 0
	for _, f := range folders {
		events, err := history.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, events)
		total += len(events)
	}
	if v := history.Check(clients, descending); !v.Clean() {
		t.Errorf("%s: %+v", filepath.Base(dir), v)
	}
	plant(t, clients, descending)
	return total
}

// plant puts one duplicate and one violation of order into a real history, and
// expects both to be found.
func plant(t *testing.T, clients [][]history.Event, descending bool) {
	t.Helper()
	var long [][]history.Event
	for _, c := range clients {
		if len(c) > 1000 {
			long = append(long, c)
		}
	}
	if len(long) < 2 {
		t.Fatalf("%d clients with over 1,000 values", len(long))
	}
	a, b := long[0], long[1]
	saved := a[10].Value
	a[10].Value = b[len(b)/2].Value
	if v := history.Check(clients, descending); v.Duplicates == 0 {
		t.Error("a planted duplicate was not found")
	}
	a[10].Value = saved
	first, last := 0, len(a)-1
	for i, e := range a {
		if e.End < a[first].Start {
			first = i
		}
		if e.Start > a[last].End {
			last = i
		}
	}
	a[first].Value, a[last].Value = a[last].Value, a[first].Value
	if v := history.Check(clients, descending); v.Disorders == 0 {
		t.Error("a planted violation of order was not found")
	}
	a[first].Value, a[last].Value = a[last].Value, a[first].Value
}
