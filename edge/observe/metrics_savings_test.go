package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMetricsOfWhatChoicesSave orders nodes of a choice for two groups together, then part of what was chosen, and
// then without an alternative.
func TestMetricsOfWhatChoicesSave(t *testing.T) {
	s := newScaled(t, nil)
	s.wants(`berth_scale_up_price_hourly_total{option="chosen"} 0`, `berth_scale_up_price_hourly_total{option="next"} 0`, `berth_scale_up_price_hourly_total{option="dearest"} 0`)
	choice := func() *autoscaler.Choice {
		c := &autoscaler.Choice{By: "price", Nodes: 4, Price: 2}
		for _, price := range []float64{3, 2.5, 8} {
			c.Compare(autoscaler.Alternative{Group: "x", Nodes: 1, Price: price})
		}
		return c
	}
	together := choice()
	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 3, Choice: together}, {Group: "gpu", Nodes: 1, Choice: together}}
	})
	s.wants(`berth_scale_up_price_hourly_total{option="chosen"} 2`, `berth_scale_up_price_hourly_total{option="next"} 2.5`, `berth_scale_up_price_hourly_total{option="dearest"} 8`)
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 3}, step.ScaleUpDone{Group: "gpu", Nodes: 1})

	s.step(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "9").Obj()})
	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 2, Choice: choice(), Pods: []types.UID{"pod-p", "gone"}, Bins: [][]types.UID{{"pod-p"}, {"gone"}}}}
	})
	s.wants(`berth_scale_up_price_hourly_total{option="chosen"} 2.5`, `berth_scale_up_price_hourly_total{option="next"} 3.125`, `berth_scale_up_price_hourly_total{option="dearest"} 10`)
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 1})

	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 1, Choice: &autoscaler.Choice{By: "price", Nodes: 1, Price: 1}}}
	})
	s.wants(`berth_scale_up_price_hourly_total{option="chosen"} 2.5`, `berth_scale_up_price_hourly_total{option="next"} 3.125`)
}
