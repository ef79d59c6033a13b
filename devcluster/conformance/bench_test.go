package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/gate"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPlacement measures Berth's engine and kube-scheduler's algorithm on the same
// cluster and pods: the default profile with all plugins, no API, one processor each.
// Placing the pod in the state, or assuming it in the cache, is included.
// benchstat -col /by prints the ratio.
func BenchmarkPlacement(b *testing.B) {
	const nodes = 5000
	for _, c := range testkit.PlacementCases() {
		b.Run(fmt.Sprintf("case=%s/by=kube-scheduler", c.Name), func(b *testing.B) { benchmarkUpstream(b, nodes, &c) })
		b.Run(fmt.Sprintf("case=%s/by=berth", c.Name), func(b *testing.B) { benchmarkBerth(b, nodes, &c, engine.Options{Seed: 1}) })
	}
}

// podOf returns the i-th pod; the classes of the case take turns.
func podOf(c *testkit.PlacementCase, i int) *v1.Pod {
	p := c.CasePod(i % c.Classes).Obj()
	p.Name = fmt.Sprint("pod-", i)
	p.UID = types.UID(p.Name)
	return p
}

func service(k int) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("s", k)}, Spec: v1.ServiceSpec{Selector: testkit.CaseSelector(k)}}
}

func benchmarkUpstream(b *testing.B, nodes int, c *testkit.PlacementCase) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	klog.SetLogger(klog.Logger{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(1) }
	sched, err := scheduler.New(ctx, client, factory, nil, profile.RecorderFactory(recorder))
	if err != nil {
		b.Fatal(err)
	}
	if c.Service {
		for k := range c.Classes {
			if err := factory.Core().V1().Services().Informer().GetIndexer().Add(service(k)); err != nil {
				b.Fatal(err)
			}
		}
	}
	logger := klog.FromContext(ctx)
	for i := range nodes {
		sched.Cache.AddNode(logger, c.CaseNode(i).Obj())
	}
	assume := func(p *v1.Pod) {
		if err := sched.Cache.AssumePod(logger, p); err != nil {
			b.Fatal(err)
		}
	}
	for _, p := range c.Neighbours() {
		assume(p.Obj())
	}
	fwk := sched.Profiles[v1.DefaultSchedulerName]
	snapshot := fwk.SnapshotSharedLister().(*internalcache.Snapshot)
	place := func(i int) {
		p := podOf(c, i)
		if err := sched.Cache.UpdateSnapshot(logger, snapshot); err != nil {
			b.Fatal(err)
		}
		info, err := framework.NewPodInfo(p)
		if err != nil {
			b.Fatal(err)
		}
		result, err := sched.SchedulePod(ctx, fwk, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			b.Fatal(err)
		}
		p.Spec.NodeName = result.SuggestedHost
		assume(p)
	}
	measure(b, c, func(_ *stopwatch, i int) { place(i) })
}

// measure times placements after the first of every class, whose caches are cold. What it reports
// per placement is the process's CPU time, garbage collection included: other work on the machine
// adds to the time of day and not to that.
func measure(b *testing.B, c *testkit.PlacementCase, place func(w *stopwatch, i int)) {
	w := &stopwatch{b: b}
	for i := range c.Classes {
		place(w, i)
	}
	runtime.GC() // of what was made before
	b.ReportAllocs()
	w.used = 0
	w.start()
	for i := c.Classes; b.Loop(); i++ {
		place(w, i)
	}
	w.stop()
	b.ReportMetric(float64(w.used.Nanoseconds())/float64(b.N), "ns/op")
}

// stopwatch measures CPU time.
type stopwatch struct {
	b     *testing.B
	used  time.Duration
	since time.Duration // CPU time of the process at the last start
}

func (w *stopwatch) start() {
	w.b.StartTimer()
	w.since = w.now()
}

func (w *stopwatch) stop() {
	w.used += w.now() - w.since
	w.b.StopTimer()
}

func (w *stopwatch) now() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		w.b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchmarkBerth(b *testing.B, nodes int, c *testkit.PlacementCase, o engine.Options) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for i := range nodes {
		s.SetNode(schema.ParseNode(c.CaseNode(i).Obj(), ""))
	}
	for _, p := range c.Neighbours() {
		s.Place(schema.ParsePod(p.Obj()), p.Spec.NodeName)
	}
	if c.Service {
		for k := range c.Classes {
			s.SetWorkload(cluster.WorkloadOf(service(k)))
		}
	}
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), o))
	var placed []types.UID
	measure(b, c, func(w *stopwatch, i int) {
		p := schema.ParsePod(podOf(c, i)) // as kube-scheduler makes a PodInfo
		if _, ok := e.Place(e.Class(p), p); !ok {
			b.Fatal(e.Diagnose(e.Class(p)).Message())
		}
		if placed = append(placed, p.UID); len(placed) == nodes*4/5 {
			w.stop()
			for _, uid := range placed {
				s.Remove(uid)
			}
			placed = placed[:0]
			s.Trim(s.Head())
			w.start()
		}
	})
}

// TestTheGateCatchesASlowDown plants one: an engine that keeps no answers and evaluates all nodes
// for every pod. The gate has what the engine with its answers was measured at.
func TestTheGateCatchesASlowDown(t *testing.T) {
	const nodes = 1000
	c := testkit.PlacementCases()[0]
	measured := func(o engine.Options) []gate.Figure {
		t.Helper()
		var printed bytes.Buffer
		for who, f := range map[string]func(*testing.B){
			"kube-scheduler": func(b *testing.B) { benchmarkUpstream(b, nodes, &c) },
			"berth":          func(b *testing.B) { benchmarkBerth(b, nodes, &c, o) },
		} {
			fmt.Fprintf(&printed, "BenchmarkPlacement/case=%s/by=%s %s\n", c.Name, who, testing.Benchmark(f))
		}
		figures, err := gate.Ratios(&printed)
		if err != nil {
			t.Fatal(err)
		}
		return figures
	}
	h := gate.History(nil).Record(measured(engine.Options{Seed: 1}), time.Now(), "before")
	got := h.Failures(measured(engine.Options{Seed: 1, Rebuilt: true}))
	if len(got) != 1 || !strings.Contains(got[0], `the ratio of "plain" is`) {
		t.Errorf("of an engine without answers the gate says %q; before it was %v", got, h)
	}
}
