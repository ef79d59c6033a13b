package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core"
)

// This file holds what is shown of the prices of node groups: metrics, and what became of the price file.

// priceMetrics are the metrics of prices of node groups.
type priceMetrics struct {
	without prometheus.Gauge
	price   *prometheus.GaugeVec // by group
	reload  *prometheus.GaugeVec // without labels: absent until a file was read
}

func newPriceMetrics(r *registry) priceMetrics {
	r.subsystem = "berth"
	return priceMetrics{
		without: r.gauge("node_groups_without_price", "Number of node groups without a price, from the provider or --node-prices: the expanders cost and price pass them over, and consolidation leaves their nodes alone."),
		price:   r.groupGauges("node_group_price_hourly", "Hourly price of a node of a node group, in the currency of --node-prices or of the provider. Absent for a node group without a price.", "node_group"),
		reload:  r.gauges("node_prices_last_reload_successful", "1 if the file of --node-prices is used as it is now, 0 if it can't be used and the prices of before hold. Absent without --node-prices."),
	}
}

// state reads the prices of the groups.
func (m *priceMetrics) state(c *core.Core) {
	without := 0
	m.price.Reset()
	for _, g := range c.State().Groups() {
		if g.Price > 0 {
			m.price.WithLabelValues(g.ID).Set(g.Price)
		} else {
			without++
		}
	}
	m.without.Set(float64(without))
}

// NodePrices is what became of the price file (--node-prices).
type NodePrices struct {
	Currency string `json:"currency"`
	// Error is why the file isn't used as it is now, "" when it is. The prices of before hold then.
	Error string `json:"error,omitempty"`
}

// PricesRead records what became of the price file: its currency, and why it isn't used as it is now, "" when
// it is.
func (s *Server) PricesRead(currency, failure string) {
	s.prices.Store(&NodePrices{currency, failure})
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.prices.reload.WithLabelValues().Set(oneIf(failure == ""))
}
