package pricelist

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// This file reads a scrape of OpenCost: node_total_hourly_cost says what each node of a cluster costs an hour,
// kubecost_node_is_spot which of them are spot nodes.

// The metrics that are read, with the labels instance, node, instance_type, region, provider_id and arch.
const (
	metricCost = "node_total_hourly_cost"
	metricSpot = "kubecost_node_is_spot"
)

// costNode is a node of a scrape.
type costNode struct {
	name, instanceType, region, provider string
	cost                                 float64
	raw                                  string
}

// openCost is the state of reading scrapes.
type openCost struct {
	*table
	nodes map[string]costNode
	spot  map[string]bool
}

func newOpenCost() *source {
	c := &openCost{nodes: map[string]costNode{}, spot: map[string]bool{}}
	return &source{
		name: "opencost",
		read: func(t *table, in *bufio.Reader, _ string) error {
			c.table = t
			return c.readScrape(in)
		},
		finish: func(*table) { c.finish() },
	}
}

// readScrape reads the lines of the metrics; a scrape has many more of containers.
func (c *openCost) readScrape(in *bufio.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	found := false
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(text, metricCost+"{") && !strings.HasPrefix(text, metricSpot+"{") {
			continue
		}
		found = true
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text + "\n"))
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		for name, family := range families {
			for _, m := range family.GetMetric() {
				c.sample(name, m)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no %s, as /metrics of OpenCost has", metricCost)
	}
	return nil
}

// sample takes a sample of one of the metrics.
func (c *openCost) sample(name string, m *dto.Metric) {
	label := map[string]string{}
	for _, pair := range m.GetLabel() {
		label[pair.GetName()] = pair.GetValue()
	}
	node := cmp.Or(label["node"], label["instance"])
	value := m.GetUntyped().GetValue()
	if name == metricSpot {
		c.spot[node] = value == 1
		return
	}
	n := costNode{node, label["instance_type"], label["region"], label["provider_id"], value, strconv.FormatFloat(value, 'g', -1, 64)}
	if old, ok := c.nodes[node]; ok && old != n {
		c.fault(fmt.Errorf("node %s is there twice, with %s %s and %s", node, metricCost, old.raw, n.raw))
		return
	}
	c.nodes[node] = n
}

// spotLabels are the labels of spot nodes by what their provider ID begins with.
var spotLabels = map[string]string{"aws": newAWS().spotLabel, "azure": newAzure().spotLabel, "gce": newGCP().spotLabel}

// finish prices the kinds of nodes that there are.
func (c *openCost) finish() {
	c.currency = cmp.Or(c.opts.Currency, "USD")
	costs := map[kind][]float64{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		if !c.wants(n.instanceType, n.region) {
			continue
		}
		k := kind{instanceType: n.instanceType, region: n.region, spot: c.spot[name]}
		if _, err := number(n.raw); err != nil {
			c.fault(fmt.Errorf("node %s: %s is %s: %w", name, metricCost, n.raw, err))
			continue
		}
		if n.instanceType == "" || n.cost == 0 {
			k.instanceType = "node " + name
			c.gap(k, fmt.Sprintf("%s is %s, and its instance type %q", metricCost, n.raw, n.instanceType))
			continue
		}
		if k.spot && !c.spotLabelOf(&n) {
			continue
		}
		costs[k] = append(costs[k], n.cost)
	}
	for k, of := range costs {
		c.offers[k] = offer{price: c.typical(k, of), where: metricCost}
	}
}

// spotLabelOf reports whether the label of spot nodes is known; all of a cluster's have the same.
func (c *openCost) spotLabelOf(n *costNode) bool {
	if c.opts.SpotLabel != "" {
		return true
	}
	cloud, _, _ := strings.Cut(n.provider, "://")
	label := spotLabels[cloud]
	switch {
	case label == "":
		c.fault(fmt.Errorf("node %s is a spot node, and its provider_id %q doesn't say of which cloud; give --spot-label", n.name, n.provider))
	case c.source.spotLabel != "" && c.source.spotLabel != label:
		c.fault(fmt.Errorf("node %s and others are spot nodes of different clouds; give --spot-label, or a scrape of one cluster", n.name))
	default:
		c.source.spotLabel = label
		return true
	}
	return false
}

// notable is from which difference on, as a share, nodes of one kind are noted to cost differently. OpenCost counts
// the memory that a node reports, which differs a little between nodes of one instance type.
const notable = 0.05

// typical returns the median of what nodes of a kind cost: the lower one of an even number.
func (c *openCost) typical(k kind, costs []float64) float64 {
	slices.Sort(costs)
	median := costs[(len(costs)-1)/2]
	if low, high := costs[0], costs[len(costs)-1]; high-low > notable*median {
		c.notes = append(c.notes, fmt.Sprintf("%d nodes are %v and cost from %v to %v; the median counts", len(costs), k, low, high))
	}
	return median
}
