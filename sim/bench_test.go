package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// BenchmarkScenario plays the large examples.
func BenchmarkScenario(b *testing.B) {
	for _, name := range []string{"night-20k", "day-150k"} {
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
