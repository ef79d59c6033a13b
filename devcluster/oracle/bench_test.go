package oracle_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

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
	"github.com/berthproject/berth/internal/testkit"
)

// BenchmarkPlacement measures Berth's engine and kube-scheduler's algorithm on the same
// cluster and pods: the default profile with all plugins, no API, one processor each.
// Placing the pod in the state, or assuming it in the cache, is included.
// benchstat -col /by prints the ratio.
func BenchmarkPlacement(b *testing.B) {
	const nodes = 5000
	for _, c := range testkit.PlacementCases() {
		b.Run(fmt.Sprintf("case=%s/by=kube-scheduler", c.Name), func(b *testing.B) { benchmarkUpstream(b, nodes, &c) })
		b.Run(fmt.Sprintf("case=%s/by=berth", c.Name), func(b *testing.B) { benchmarkBerth(b, nodes, &c) })
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
	measure(b, c, place)
}

// measure times placements after the first of every class, whose caches are
// cold.
func measure(b *testing.B, c *testkit.PlacementCase, place func(i int)) {
	for i := range c.Classes {
		place(i)
	}
	b.ReportAllocs()
	for i := c.Classes; b.Loop(); i++ {
		place(i)
	}
}

func benchmarkBerth(b *testing.B, nodes int, c *testkit.PlacementCase) {
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
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{Seed: 1}))
	var placed []types.UID
	measure(b, c, func(i int) {
		p := schema.ParsePod(podOf(c, i)) // as kube-scheduler makes a PodInfo
		if _, ok := e.Place(e.Class(p), p); !ok {
			b.Fatal(e.Diagnose(e.Class(p)).Message())
		}
		if placed = append(placed, p.UID); len(placed) == nodes*4/5 {
			b.StopTimer()
			for _, uid := range placed {
				s.Remove(uid)
			}
			placed = placed[:0]
			s.Trim(s.Head())
			b.StartTimer()
		}
	})
}
