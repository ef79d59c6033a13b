package core_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPreemption fills 5,000 nodes with four pods of low priority each, as
// scheduler_perf's case does, and has 5,000 pods take the place of three of them
// each: what a decision takes, and then what it takes per pod until all are
// placed, with every victim told and gone.
func BenchmarkPreemption(b *testing.B) {
	for _, kind := range []string{"plain", "hard zone spread"} {
		b.Run(kind, func(b *testing.B) { benchmarkPreemption(b, 5000, kind != "plain") })
	}
}

func benchmarkPreemption(b *testing.B, nodes int, spread bool) {
	var deciding, settling time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		schema := cluster.NewSchema()
		cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
		cfg.PodsPerStep = 1 << 20
		c, err := core.New(schema, cfg)
		if err != nil {
			b.Fatal(err)
		}
		now := time.Unix(1000, 0)
		var in []step.Input
		for i := range nodes {
			name := fmt.Sprint("n", i)
			in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%3)).Obj()})
			for k := range 4 {
				in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("low", i, "-", k)).Req("cpu", "900m", "memory", "500Mi").On(name).Obj()})
			}
		}
		c.Step(now, door.Must(in...)...)
		in = nil
		for i := range nodes {
			p := testkit.Pod(fmt.Sprint("high", i)).Label("app", "web").Req("cpu", "3", "memory", "500Mi").Priority(10)
			if spread {
				p.SpreadHard("topology.kubernetes.io/zone", 1, "app", "web")
			}
			in = append(in, step.PodSet{Pod: p.Obj()})
		}
		b.StartTimer()
		start := b.Elapsed()
		r := c.Step(now, door.Must(in...)...)
		deciding += b.Elapsed() - start
		if len(r.Preemptions) != 3*nodes {
			b.Fatalf("%d victims, want %d", len(r.Preemptions), 3*nodes)
		}
		start = b.Elapsed()
		placed := 0
		for k := 0; k < len(r.Preemptions); k += 300 { // as answers and watches bring them
			var in []step.Input
			for _, x := range r.Preemptions[k:min(k+300, len(r.Preemptions))] {
				in = append(in, step.PreemptionDone{UID: x.UID, By: x.By}, step.PodGone{UID: x.UID})
			}
			now = now.Add(20 * time.Millisecond)
			placed += len(c.Step(now, door.Must(in...)...).Binds)
		}
		settling += b.Elapsed() - start
		if placed != nodes {
			b.Fatalf("%d of %d pods placed", placed, nodes)
		}
	}
	per := float64(b.N * nodes)
	b.ReportMetric(float64(deciding.Microseconds())/per, "µs/decision")
	b.ReportMetric(float64(settling.Microseconds())/per, "µs/pod-until-placed")
}

// BenchmarkUnschedulable has 50,000 pods of 100 classes wait in a full cluster of
// 5,000 nodes, and one thing after the other change that helps none of them: a
// pod goes and a smaller one comes, a node's labels change. An operation is a
// Step with one change.
func BenchmarkUnschedulable(b *testing.B) {
	c, now := newFullCluster(b)
	before := c.Stats().Unschedulable
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now = now.Add(time.Millisecond)
		k := i / 2 % fullNodes
		switch i % 2 {
		case 0:
			c.Step(now, door.Must(fullNode(k, fmt.Sprint(i)))...)
		case 1:
			name := fmt.Sprint("on", k)
			c.Step(now, door.Must(step.PodSet{Pod: testkit.Pod(name).Req("cpu", fmt.Sprint(3000+i%500, "m"), "memory", "1Gi").Priority(100).On(fmt.Sprint("n", k)).Obj()})...)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(c.Stats().Unschedulable-before)/float64(b.N), "attempts/change")
}

// BenchmarkReplicasWritten has the status of a ReplicaSet change beside the same waiting pods,
// as controllers write it all the time: no class may be asked about that. An operation is a
// Step with one change.
func BenchmarkReplicasWritten(b *testing.B) {
	c, now := newFullCluster(b)
	o := testkit.ReplicaSet("web", "app", "web")
	c.Step(now, door.Must(step.WorkloadSet{Workload: cluster.WorkloadOf(o)})...)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now = now.Add(time.Millisecond)
		o.Status.Replicas = int32(i)
		c.Step(now, door.Must(step.WorkloadSet{Workload: cluster.WorkloadOf(o)})...)
	}
}

const fullNodes = 5000

func fullNode(i int, more string) step.Input {
	return step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%3)).Label("more", more).Obj()}
}

// newFullCluster returns a core of fullNodes full nodes with 50,000 pods of 100 classes that
// wait.
func newFullCluster(b *testing.B) (*core.Core, time.Time) {
	const pods, classes = 50_000, 100
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	cfg.PodsPerStep = 1 << 20
	c, err := core.New(schema, cfg)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Unix(1000, 0)
	var in []step.Input
	for i := range fullNodes {
		in = append(in, fullNode(i, ""), step.PodSet{Pod: testkit.Pod(fmt.Sprint("on", i)).Req("cpu", "3500m", "memory", "1Gi").Priority(100).On(fmt.Sprint("n", i)).Obj()})
	}
	c.Step(now, door.Must(in...)...)
	in = nil
	for i := range pods {
		p := testkit.Pod(fmt.Sprint("waits", i)).Label("app", fmt.Sprint(i%classes)).Req("cpu", fmt.Sprint(2000+i%classes, "m"), "memory", "1Gi")
		if i%classes < 20 { // some look beyond single nodes
			p.SpreadHard("topology.kubernetes.io/zone", 1, "app", fmt.Sprint(i%classes))
		}
		in = append(in, step.PodSet{Pod: p.Obj()})
	}
	c.Step(now, door.Must(in...)...)
	if q := c.Queue(); q.Unschedulable != pods {
		b.Fatalf("queue %+v", q)
	}
	return c, now
}

// BenchmarkNodesArriveOneByOne has 150 classes of 50 pods each wait while 2,000 nodes arrive one by
// one, each in a Step of its own: it takes a few pods of the first classes that it lets in, and the
// others are refused again. An operation is all arrivals.
func BenchmarkNodesArriveOneByOne(b *testing.B) {
	const classes, podsPerClass, nodes = 150, 50, 2000
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		schema := cluster.NewSchema()
		c := testkit.Must(core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{}))))
		now := time.Unix(1000, 0)
		var in []step.Input
		for i := range classes {
			app := fmt.Sprint("app", i)
			for k := range podsPerClass {
				in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint(app, "-", k)).Owner("apps/v1", "ReplicaSet", app).Label("app", app).
					Req("cpu", fmt.Sprint(900+i, "m"), "memory", fmt.Sprint(500+i, "Mi")).Obj()})
			}
		}
		c.Step(now, door.Must(in...)...)
		b.StartTimer()
		placed := 0
		for i := range nodes {
			now = now.Add(30 * time.Millisecond)
			r := c.Step(now, door.Must(step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Zone(fmt.Sprint("z", i%3)).Alloc("cpu", "4", "memory", "32Gi", "pods", "110").Obj()})...)
			for placed += len(r.Binds); !r.NextWake.After(now) && !r.NextWake.IsZero(); placed += len(r.Binds) {
				r = c.Step(now)
			}
		}
		b.ReportMetric(float64(placed), "placed")
	}
}

// BenchmarkDaemonSetRollout has the controller of a DaemonSet make 5,000 pods, 250 at a time, each
// bound to its node by name, and the API show each bound before the next come. Then the DaemonSet
// goes. An operation is all of that, without what the API shows later; reported are the time for
// one pod, the bytes that it takes, and the bytes that are kept in the end.
func BenchmarkDaemonSetRollout(b *testing.B) {
	for _, nodes := range []int{5000, 50000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) { benchmarkDaemonSetRollout(b, nodes) })
	}
}

func benchmarkDaemonSetRollout(b *testing.B, nodes int) {
	const pods, atATime = 5000, 250
	schema := cluster.NewSchema()
	c := testkit.Must(core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{}))))
	now := time.Unix(1000, 0)
	for i := range nodes {
		c.Step(now, door.Must(step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "32Gi", "pods", "110").Zone(fmt.Sprint("z", i%3)).Obj()})...)
	}
	var allocated uint64
	rollout := func(start, stop func()) {
		for from := 0; from < pods; from += atATime {
			var created, bound []step.Input
			for i := from; i < from+atATime; i++ {
				p := testkit.DaemonPod("agent", fmt.Sprint("n", i)).Req("cpu", "100m", "memory", "200Mi").Obj()
				on := p.DeepCopy()
				on.Spec.NodeName = fmt.Sprint("n", i)
				created, bound = append(created, step.PodSet{Pod: p}), append(bound, step.PodSet{Pod: on})
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start()
			now = now.Add(100 * time.Millisecond)
			placed := 0
			r := c.Step(now, door.Must(created...)...)
			for placed += len(r.Binds); !r.NextWake.After(now) && !r.NextWake.IsZero(); placed += len(r.Binds) {
				r = c.Step(now)
			}
			stop()
			runtime.ReadMemStats(&after)
			allocated += after.TotalAlloc - before.TotalAlloc
			if placed != atATime {
				b.Fatalf("%d of %d pods were placed", placed, atATime)
			}
			now = now.Add(100 * time.Millisecond)
			c.Step(now, door.Must(bound...)...)
		}
		var gone []step.Input
		for i := range pods {
			gone = append(gone, step.PodGone{UID: testkit.DaemonPod("agent", fmt.Sprint("n", i)).UID})
		}
		now = now.Add(time.Minute)
		c.Step(now, door.Must(gone...)...)
		forgetPods(c, &now)
	}
	rollout(func() {}, func() {}) // so that tables have the size that they need for so many pods
	allocated = 0
	heap := liveHeap()
	b.ResetTimer()
	b.StopTimer()
	for range b.N {
		rollout(b.StartTimer, b.StopTimer)
	}
	per := float64(b.N * pods)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/per, "ns/pod")
	b.ReportMetric(float64(allocated)/per, "B/pod")
	b.ReportMetric(float64(int64(liveHeap())-int64(heap))/per, "kept-B/pod")
	runtime.KeepAlive(c)
}

// forgetPods has so much happen, in a minute, that the journal names no pod any more that came before.
func forgetPods(c *core.Core, now *time.Time) {
	for range 1000 {
		*now = now.Add(60 * time.Millisecond)
		var in []step.Input
		for range 10 {
			p := testkit.Pod("other").On("n0").Obj()
			in = append(in, step.PodSet{Pod: p}, step.PodGone{UID: p.UID})
		}
		c.Step(*now, door.Must(in...)...)
	}
}

// liveHeap returns how many bytes of the heap are in use.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
