package sim

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/sim/scenario"
)

// This file checks pod groups: that none is half bound at rest, that none waits though a node group may grow for all of
// its members, and that no node is bought for one that can't complete.

// memberOf returns the name of the pod group of a pod, "" when it is in none.
func memberOf(p *v1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// checkGroupsAtRest verifies what must hold of pod groups when nothing has happened for long.
func (w *World) checkGroupsAtRest() {
	bound, waiting, ended := w.members()
	for _, g := range objectsOf[*schedulingv1beta1.PodGroup](w) {
		key, gang := g.Namespace+"/"+g.Name, g.Spec.SchedulingPolicy.Gang
		if gang == nil {
			continue
		}
		missing := int(gang.MinCount) - bound[key]
		if bound[key] > 0 && ended[key] == 0 && missing > 0 && len(waiting[key]) >= missing {
			w.violation("%d members of pod group %s are on nodes, and it needs %d", bound[key], key, gang.MinCount)
		}
		if bound[key]+ended[key] == 0 && len(waiting[key]) >= missing {
			w.checkWaitingGroup(key, waiting[key][:missing])
		}
	}
	w.checkBoughtInVain()
}

// checkWaitingGroup looks for a node group that may grow by enough nodes for members that are alike.
func (w *World) checkWaitingGroup(key string, members []*pod) {
	for _, g := range w.groups {
		room := g.cfg.Max - g.target
		if g.cfg.Stock != nil {
			room = min(room, *g.cfg.Stock-g.target)
		}
		if room > 0 && w.mayGrow(g) && room*perNode(g.cfg.Template.Allocatable, members[0].obj) >= len(members) && w.newNodeTakes(g, members[0], nil, nil) {
			w.violation("pod group %s waits, though %d more nodes of group %s would take it", key, room, g.id)
		}
	}
}

// perNode returns how many equal pods an empty node takes.
func perNode(allocatable v1.ResourceList, p *v1.Pod) int {
	most := allocatable.Pods().Value()
	for name, want := range p.Spec.Containers[0].Resources.Requests {
		if has := allocatable[name]; want.Cmp(resource.Quantity{}) > 0 {
			most = min(most, has.MilliValue()/want.MilliValue())
		}
	}
	return int(most)
}

// members returns how many members of each pod group, as namespace/name, are on nodes, those that wait, and how many have
// ended.
func (w *World) members() (bound map[string]int, waiting map[string][]*pod, ended map[string]int) {
	bound, waiting, ended = map[string]int{}, map[string][]*pod{}, map[string]int{}
	for _, p := range w.sortedPods() {
		key := p.obj.Namespace + "/" + memberOf(p.obj)
		switch {
		case memberOf(p.obj) == "":
		case p.ended:
			ended[key]++
		case p.obj.Spec.NodeName != "":
			bound[key]++
		default:
			waiting[key] = append(waiting[key], p)
		}
	}
	return bound, waiting, ended
}

// checkBoughtInVain looks for nodes that were bought and on which no pod has ever been, in worlds with pod groups whose
// members run for ever and in which nothing but stock is short: each node is bought for a group that can complete, and whose
// members have no room without it.
func (w *World) checkBoughtInVain() {
	spec := &w.run.Spec
	forever := !slices.ContainsFunc(spec.Workload, func(x scenario.Workload) bool {
		return x.RunFor != nil || x.DeleteAfter.Duration > 0 || x.Template.Spec.SchedulingGroup == nil
	})
	if !forever || slices.ContainsFunc(spec.Faults, func(f scenario.Fault) bool { return f.Kind != scenario.StockOut }) {
		return
	}
	for _, name := range w.stats.InVain {
		w.violation("node %s was bought for a pod group, and no pod has ever been on it", name)
	}
	for _, n := range w.sortedNodes() {
		if n.inVain() {
			w.violation("node %s was bought for a pod group, and no pod has ever been on it", n.obj.Name)
		}
	}
}

// inVain returns how many nodes were bought on which no pod has been so far but those of DaemonSets.
func (s *Stats) inVain() int {
	n := len(s.InVain)
	for _, x := range s.w.nodes { // in any order: they are counted
		if x.inVain() {
			n++
		}
	}
	return n
}

// atomic reports whether the group's nodes come and go all together.
func (g *group) atomic() bool { return g.cfg.Options != nil && g.cfg.Options.ZeroOrMax }

// inVain reports whether a node was bought and never used. One of an atomic group is used with any of the others.
func (n *node) inVain() bool { return n.instance != nil && n.instance.made > 0 && !n.instance.used }

// noteUsed records that a pod other than a daemon's is on a node.
func (n *node) noteUsed() {
	switch m := n.instance; {
	case m == nil:
	case m.group.atomic():
		for _, other := range m.group.instances {
			other.used = true
		}
	default:
		m.used = true
	}
}
