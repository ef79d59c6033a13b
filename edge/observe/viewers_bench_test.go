package observe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/internal/test/testkit"
)

// What BenchmarkViewers has: a cluster, and pods that come one by one for a while.
const (
	viewedNodes, viewedPods, viewedPending = 5000, 20_000, 500
	viewedRate                             = 5 * time.Millisecond // between two pods
	viewedFor                              = 20 * time.Second
)

// BenchmarkViewers measures how long a pod waits from when it is seen until its bind is out, and what memory
// Berth has, in a cluster of 5,000 nodes with 20,000 pods, to which 200 pods a second come:
//   - without viewers;
//   - with three of the page, each of which follows the stream and asks for a page of 1,000 nodes every 2 seconds;
//   - with these and 20 that open a stream and read nothing;
//   - with these and 8 that ask for one thing after the other without a pause.
//
// Each has a connection over loopback to the server as berth run has it. All share this machine's processors, as
// they do not where viewers are on machines of their own: what they take there is theirs.
func BenchmarkViewers(b *testing.B) {
	for _, x := range []struct {
		name                      string
		viewers, stalled, hostile int
	}{{"none", 0, 0, 0}, {"three", 3, 0, 0}, {"three-and-20-stalled", 3, 20, 0}, {"three-and-8-hostile", 3, 0, 8}} {
		b.Run(x.name, func(b *testing.B) {
			for range b.N {
				v := newViewed(b)
				ctx, cancel := context.WithCancel(b.Context())
				var all sync.WaitGroup
				for range x.viewers {
					all.Go(func() { v.view(ctx) })
				}
				for range x.stalled {
					all.Go(func() { v.stall(ctx) })
				}
				for i := range x.hostile {
					all.Go(func() { v.attack(ctx, i) })
				}
				v.run()
				cancel()
				all.Wait()
				v.server.CloseClientConnections()
				v.server.Close()
			}
		})
	}
}

// viewed is a Berth with viewers. Its core is run's.
type viewed struct {
	b       *testing.B
	observe *Server
	server  *httptest.Server
	driver  *drive.Driver
	ready   step.Ready
}

func newViewed(b *testing.B) *viewed {
	b.Helper()
	v := &viewed{b: b, observe: NewServer(slog.New(slog.DiscardHandler))}
	keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { v.ready = *r })
	schema, cfg := cluster.NewSchema(), core.DefaultConfig()
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	driver, err := drive.New(drive.Config{Schema: schema, Core: cfg, Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: []drive.Hook{v.observe, keep}, Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	v.driver = driver
	var in []step.Input
	for i := range viewedNodes {
		in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "16", "memory", "64Gi", "pods", "110").Zone(fmt.Sprint("z", i%3)).Obj()})
	}
	for i := range viewedPods {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("old", i)).Req("cpu", "500m", "memory", "1Gi").On(fmt.Sprint("n", i%viewedNodes)).Obj()})
	}
	for i := range viewedPending {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("huge", i)).Req("cpu", "64").Obj()})
	}
	v.step(in...)
	for range 1000 { // until all pods were tried
		v.step()
	}
	v.observe.BecomeLeader()
	v.observe.State(driver.Core())
	v.server = httptest.NewServer(v.observe.handler(false))
	return v
}

func (v *viewed) step(in ...step.Input) {
	if _, err := v.driver.Step(time.Now(), in...); err != nil {
		v.b.Fatal(err)
	}
}

// run has pods come, and answers what viewers ask between two Steps. It reports the latencies and the memory.
func (v *viewed) run() {
	var latencies []time.Duration
	began := time.Now()
	due, i := began, 0
	state := time.NewTicker(time.Second) // as the live loop shows its state
	defer state.Stop()
	for time.Since(began) < viewedFor {
		wait := time.NewTimer(time.Until(due))
		select {
		case question := <-v.observe.Questions:
			question(v.driver.Core())
		case <-state.C:
			v.observe.State(v.driver.Core())
		case <-wait.C:
			pod := testkit.Pod(fmt.Sprint("new", i)).Req("cpu", "100m", "memory", "64Mi").Obj()
			pod.UID = types.UID(pod.Name)
			v.step(step.PodSet{Pod: pod})
			for n := 0; len(v.ready.Binds) == 0 && n < 1000; n++ { // one Step does a bounded amount of work
				v.step()
			}
			if len(v.ready.Binds) != 1 {
				v.b.Fatalf("pod %d: %d binds", i, len(v.ready.Binds))
			}
			latencies = append(latencies, time.Since(due))
			bound := pod.DeepCopy()
			bound.Spec.NodeName = v.ready.Binds[0].Node
			v.step(step.BindDone{UID: pod.UID}, step.PodSet{Pod: bound})
			i++
			due = due.Add(viewedRate)
		}
		wait.Stop()
	}
	slices.Sort(latencies)
	at := func(share float64) float64 {
		return float64(latencies[int(math.Ceil(share*float64(len(latencies))))-1]) / 1e6
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v.b.ReportMetric(at(0.5), "p50-ms")
	v.b.ReportMetric(at(0.99), "p99-ms")
	v.b.ReportMetric(at(1), "max-ms")
	v.b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/1e6, "MB")
	v.b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(v)
}

// view is a viewer of the page.
func (v *viewed) view(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { v.ask(ctx, "stream") })
	for next := ""; ; {
		path := "nodes?limit=1000"
		if next != "" {
			path += "&continue=" + next
		}
		next = v.ask(ctx, path)
		select {
		case <-ctx.Done():
			both.Wait()
			return
		case <-time.After(2 * time.Second):
		}
	}
}

// ask asks for a path, reads the answer to its end, and returns where the list in it goes on, "" for nowhere.
func (v *viewed) ask(ctx context.Context, path string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.server.URL+api.Prefix+path, nil)
	if err != nil {
		v.b.Error(err)
		return ""
	}
	resp, err := v.server.Client().Do(r)
	if err != nil {
		return "" // the end
	}
	defer func() { _ = resp.Body.Close() }()
	if !strings.HasPrefix(path, "nodes?") {
		_, _ = io.Copy(io.Discard, resp.Body)
		return ""
	}
	var list struct{ Continue string }
	_ = json.NewDecoder(resp.Body).Decode(&list) // of a refusal there is none
	return list.Continue
}

// stall opens a stream and reads nothing.
func (v *viewed) stall(ctx context.Context) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", v.server.Listener.Addr().String())
	if err != nil {
		v.b.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(1 << 10)
	w := bufio.NewWriter(conn)
	_, _ = fmt.Fprintf(w, "GET %sstream HTTP/1.1\r\nHost: berth\r\n\r\n", api.Prefix)
	_ = w.Flush()
	<-ctx.Done()
}

// attack asks for what costs most, one thing after the other.
func (v *viewed) attack(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		switch n % 4 {
		case 0:
			v.ask(ctx, "nodes?limit=5000&sort=cpu")
		case 1:
			v.ask(ctx, fmt.Sprintf("pods/default/huge%d", (n+i*61)%viewedPending))
		case 2:
			v.ask(ctx, "pods?limit=5000")
		case 3:
			v.ask(ctx, fmt.Sprintf("nodes/n%d", (n*7+i)%viewedNodes))
		}
	}
}
