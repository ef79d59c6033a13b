package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// This file adds up what scale-ups cost, beside what else would have held the same pods.

// savingMetrics compare the prices of scale-ups with those of their alternatives.
type savingMetrics struct {
	price *prometheus.CounterVec // by option
}

// The options of which prices are added up.
const (
	optionChosen  = "chosen"
	optionNext    = "next"
	optionDearest = "dearest"
)

func newSavingMetrics(r *registry) savingMetrics {
	r.subsystem = "berth"
	m := savingMetrics{price: r.counters("scale_up_price_hourly_total", "Sum of the hourly prices of scale-ups for which there was an alternative: of the nodes ordered (chosen), and of the cheapest (next) and the dearest (dearest) alternative for the same pods, in the currency of --node-prices or of the provider. next minus chosen is what the choices save an hour while the nodes run; it is negative where the cheapest was not chosen.", "option")}
	for _, option := range []string{optionChosen, optionNext, optionDearest} {
		m.price.WithLabelValues(option)
	}
	return m
}

// step counts each choice of a Step once: it is shared by the groups that grow together. Of an order of fewer nodes
// than were chosen, their share counts.
func (m *savingMetrics) step(ready *step.Ready) {
	var ordered map[*autoscaler.Choice]int
	for i := range ready.Decisions {
		if d := &ready.Decisions[i]; d.Kind == step.ScaledUp && d.Choice != nil && d.Choice.Next != nil {
			if ordered == nil {
				ordered = map[*autoscaler.Choice]int{}
			}
			ordered[d.Choice] += d.Nodes
		}
	}
	for choice, nodes := range ordered {
		share := float64(min(nodes, choice.Nodes)) / float64(choice.Nodes)
		m.price.WithLabelValues(optionChosen).Add(share * choice.Price)
		m.price.WithLabelValues(optionNext).Add(share * choice.Next.Price)
		m.price.WithLabelValues(optionDearest).Add(share * choice.Dearest.Price)
	}
}
