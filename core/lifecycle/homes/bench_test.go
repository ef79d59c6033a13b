package homes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

// drained returns a bench with 5,000 nodes of 30 pods, which are of 200 owners, and the
// removals of n of them, with homes on the others.
func drained(n int) (*lifecycletest.Bench, []*autoscaler.Removal) {
	const nodes, pods, owners = 5000, 30, 200
	b := lifecycletest.NewBench()
	var out []*autoscaler.Removal
	for i := range nodes {
		name := fmt.Sprint("n", i)
		b.Node(testkit.Node(name).Alloc("cpu", "32", "memory", "128Gi", "pods", "110").Zone(fmt.Sprint("z", i%3)).Obj())
		r := &autoscaler.Removal{Node: name}
		for k := range pods {
			owner := (i + k) % owners
			p := b.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("p", i, "-", k)).Label("app", fmt.Sprint(owner)).Req("cpu", "250m", "memory", "1Gi").
				Owner("apps/v1", "ReplicaSet", fmt.Sprint("web", owner)).SpreadSoft("topology.kubernetes.io/zone", 1, "app", fmt.Sprint(owner)).On(name).Obj())
			b.State.Place(p, name)
			r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID, Node: fmt.Sprint("n", n+(i*pods+k)%(nodes-n))})
		}
		if i < n {
			out = append(out, r)
		}
	}
	return b, out
}

// BenchmarkKeep is what it takes to keep room for the 30 pods of a node, and to free it, when
// pods of these classes were decided on before: otherwise the facts that their spreading reads are
// counted first, as when their replacements are tried.
func BenchmarkKeep(b *testing.B) {
	bench, removals := drained(1)
	m := homes.New(homes.Config{Time: 5 * time.Minute}, bench.Scheduler)
	keep := func() {
		if why := m.Reserve(bench.Turn, removals[0]); why != "" {
			b.Fatal(why)
		}
	}
	keep()
	m.ReleaseUnevicted(bench.Turn, removals[0].Node)
	b.ReportAllocs()
	for b.Loop() {
		keep()
		m.ReleaseUnevicted(bench.Turn, removals[0].Node)
		bench.State.Trim(bench.State.Head())
		bench.Flush()
	}
}

// BenchmarkAdvance is what homes add to a Step while 50 nodes with 30 pods each are drained and
// 10 pods come to nodes that have homes.
func BenchmarkAdvance(b *testing.B) {
	bench, removals := drained(50)
	m := homes.New(homes.Config{Time: 5 * time.Minute}, bench.Scheduler)
	var to []string
	for _, r := range removals {
		if why := m.Reserve(bench.Turn, r); why != "" {
			b.Fatal(why)
		}
		for _, x := range r.Homes {
			to = append(to, x.Node)
			m.PodEvicted(bench.Turn, bench.State.PodOn(x.Pod))
		}
	}
	m.Advance(bench.Turn)
	pods := make([]*cluster.Pod, 10)
	for i := range pods {
		pods[i] = bench.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("new", i)).Req("cpu", "10m").Obj())
	}
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		b.StopTimer()
		for _, p := range pods {
			bench.State.Place(p, to[at%len(to)])
			at++
		}
		b.StartTimer()
		m.Advance(bench.Turn)
		bench.State.Trim(bench.State.Head())
	}
}
