package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/framework"
	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/plugins"
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
		c, err := core.New(schema, core.Config{Profiles: []*framework.Profile{plugins.Default(schema, plugins.Options{})}, PodsPerStep: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		now := time.Unix(1000, 0)
		var in []core.Input
		for i := range nodes {
			name := fmt.Sprint("n", i)
			in = append(in, core.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%3)).Obj()})
			for k := range 4 {
				in = append(in, core.PodSet{Pod: testkit.Pod(fmt.Sprint("low", i, "-", k)).Req("cpu", "900m", "memory", "500Mi").On(name).Obj()})
			}
		}
		c.Step(now, in...)
		in = nil
		for i := range nodes {
			p := testkit.Pod(fmt.Sprint("high", i)).Label("app", "web").Req("cpu", "3", "memory", "500Mi").Priority(10)
			if spread {
				p.SpreadHard("topology.kubernetes.io/zone", 1, "app", "web")
			}
			in = append(in, core.PodSet{Pod: p.Obj()})
		}
		b.StartTimer()
		start := b.Elapsed()
		r := c.Step(now, in...)
		deciding += b.Elapsed() - start
		if len(r.Preemptions) != 3*nodes {
			b.Fatalf("%d victims, want %d", len(r.Preemptions), 3*nodes)
		}
		start = b.Elapsed()
		placed := 0
		for k := 0; k < len(r.Preemptions); k += 300 { // as answers and watches bring them
			var in []core.Input
			for _, x := range r.Preemptions[k:min(k+300, len(r.Preemptions))] {
				in = append(in, core.PreemptionDone{UID: x.UID, By: x.By}, core.PodGone{UID: x.UID})
			}
			now = now.Add(20 * time.Millisecond)
			placed += len(c.Step(now, in...).Binds)
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
