package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// BenchmarkScenario plays the large examples.
func BenchmarkScenario(b *testing.B) {
	for _, name := range []string{"night-20k", "day-150k", "month", "spread-3k"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				runs, err := scenario.Load([]string{"../examples/scale/" + name + ".yaml"})
				if err != nil {
					b.Fatal(err)
				}
				w, err := sim.New(runs[0], sim.Options{})
				if err != nil {
					b.Fatal(err)
				}
				s, err := w.Run(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.Pods.Bound), "pods")
				b.ReportMetric(float64(s.Nodes.Peak), "nodes")
			}
		})
	}
}

// BenchmarkDrains plays the examples of parallel drains: how many times as fast are 1,000
// nodes drained fifty at a time as one after the other, to the same end?
func BenchmarkDrains(b *testing.B) {
	for b.Loop() {
		one := playExampleWith(b, sim.Options{}, "scale-down/drain-1")
		fifty := playExampleWith(b, sim.Options{}, "scale-down/drain-50")
		if fifty.Nodes.Final > one.Nodes.Final {
			b.Errorf("got %d nodes in the end, want %d as when drained one after the other", fifty.Nodes.Final, one.Nodes.Final)
		}
		b.ReportMetric(one.Drain.Duration, "s-one-by-one")
		b.ReportMetric(fifty.Drain.Duration, "s-fifty")
		b.ReportMetric(one.Drain.Duration/fifty.Drain.Duration, "times-as-fast")
		b.ReportMetric(float64(fifty.Nodes.Final), "nodes-left")
	}
}
