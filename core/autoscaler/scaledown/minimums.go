package scaledown

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Minimums counts down how much may go before a node group, or the cluster, has its minimum
// left (Limits.Totals). Nodes on their way out are gone already. It is made for one pass.
type Minimums struct {
	state  *cluster.State
	groups map[string]int // how many more nodes of a group may go, by its ID
	totals []minimum
}

// minimum is one resource of which the cluster keeps some, in the state's units.
type minimum struct {
	autoscaler.Total
	id    cluster.ResourceID
	spare int64 // how much may still go; below 0 when there is too little
}

// NewMinimums counts what there is, in O(nodes).
func NewMinimums(s *cluster.State, req *autoscaler.Request) *Minimums {
	m := &Minimums{state: s, groups: map[string]int{}}
	for _, g := range s.Groups() {
		m.groups[g.ID] = g.Target - req.ScaleDown.Leaving[g.ID] - g.Min
	}
	for _, t := range req.Limits.Totals {
		if t.Min > 0 {
			m.totals = append(m.totals, minimum{t, cluster.ResourceOf(t.Resource), -inUnits(t.Resource, t.Min)})
		}
	}
	if len(m.totals) == 0 {
		return m
	}
	s.Nodes(func(n *cluster.Node) {
		if Leaving(n.NodeInfo) || virtual(n.NodeInfo) {
			return
		}
		for i := range m.totals {
			m.totals[i].spare += s.AmountOf(n, m.totals[i].id)
		}
	})
	return m
}

// inUnits converts a bound of Limits.Totals into the state's units.
func inUnits(name v1.ResourceName, amount int64) int64 {
	if name == v1.ResourceCPU {
		return 1000 * amount
	}
	return amount
}

// virtual reports whether a node stands for another cluster or service. Cluster Autoscaler
// doesn't count what it says it has.
func virtual(n *cluster.NodeInfo) bool { return n.Object.Labels["type"] == "virtual-kubelet" }

// May returns why a node can't go after those that were taken, nil when it can. The node is
// of a group that exists.
func (m *Minimums) May(n *cluster.Node) *autoscaler.Kept {
	if m.groups[n.Group] <= 0 {
		return newKept(n, autoscaler.KeptMinSize, fmt.Sprintf("its node group %s is at its minimum size of %d", n.Group, m.state.Group(n.Group).Min))
	}
	for i := range m.totals {
		t := &m.totals[i]
		if has := m.state.AmountOf(n, t.id); has > 0 && has > t.spare {
			k := newKept(n, autoscaler.KeptMinTotal, "the cluster minimum is "+t.amount())
			k.Resource = t.Resource
			return k
		}
	}
	return nil
}

// amount is the minimum, for people.
func (t *minimum) amount() string {
	format := resource.DecimalSI
	if t.Resource == v1.ResourceMemory {
		format = resource.BinarySI
	}
	return resource.NewQuantity(t.Min, format).String() + " " + string(t.Resource)
}

// Remove counts a node as gone.
func (m *Minimums) Remove(n *cluster.Node) {
	m.groups[n.Group]--
	for i := range m.totals {
		m.totals[i].spare -= m.state.AmountOf(n, m.totals[i].id)
	}
}
