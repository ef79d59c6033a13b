package scaledown

// This file has the nodes of pod groups whose disruptionMode is all go together, or stay: all members are
// evicted, and find homes as a whole. Members of other groups move one by one.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// nodeSet are nodes that go together, by index; nil for a node that goes alone.
type nodeSet struct {
	nodes []cluster.NodeIndex
	names []string // sorted
}

// same reports whether a set has these names.
func (s nodeSet) same(names []string) bool { return slices.Equal(s.names, names) }

// goesWith returns a node with all others that have pods which leave with its own, or with pods of
// such a node.
func (p *pass) goesWith(i cluster.NodeIndex) (out nodeSet) {
	if !p.primary.AnyMemberOn(i) {
		return nodeSet{}
	}
	seen := map[cluster.PodGroupKey]bool{}
	out.nodes = []cluster.NodeIndex{i}
	for k := 0; k < len(out.nodes); k++ {
		for _, pod := range p.primary.Node(out.nodes[k]).Pods {
			key, whole := p.primary.GoesWhole(pod)
			if !whole || seen[key] {
				continue
			}
			seen[key] = true
			for _, n := range p.primary.MemberNodes(key) {
				if !slices.Contains(out.nodes, n) {
					out.nodes = append(out.nodes, n)
				}
			}
		}
	}
	if len(out.nodes) == 1 {
		return nodeSet{}
	}
	for _, n := range out.nodes {
		out.names = append(out.names, p.primary.Node(n).Name)
	}
	slices.Sort(out.names)
	return out
}

// simulateWith simulates the removal of a node and of all that go together with it. list are the nodes that
// may be candidates.
func (p *pass) simulateWith(x eligibleNode, list []eligibleNode) {
	set := p.goesWith(x.node.Index)
	if set.nodes == nil {
		p.simulate(x)
		return
	}
	if p.together[x.node.Index] {
		return // with another of them
	}
	var all []eligibleNode
	missing := ""
	for _, i := range set.nodes {
		at := slices.IndexFunc(list, func(y eligibleNode) bool { return y.node.Index == i })
		if at < 0 || p.byNode[i] != nil || p.isHome(i) {
			missing = p.world.Node(i).Name
			continue
		}
		all = append(all, list[at])
	}
	if p.together == nil {
		p.together = map[cluster.NodeIndex]bool{}
	}
	for _, y := range all {
		p.together[y.node.Index] = true
	}
	if missing == "" {
		missing = p.simulateSet(all, set.names)
	}
	for _, y := range all {
		if missing != "" && p.kept[y.node.Index] == nil {
			p.keepWhole(y.node, missing, y.utilization)
		}
	}
}

// simulateSet makes nodes candidates, all or none: then it returns the name of one that stays for its own
// reason, which it has said.
func (p *pass) simulateSet(all []eligibleNode, names []string) (stays string) {
	left, groups, totals := maps.Clone(p.budgets.left), maps.Clone(p.minimums.groups), slices.Clone(p.minimums.totals)
	var list []*candidate
	var movers [][]*cluster.Pod
	for _, x := range all {
		c := p.prepare(x)
		if c == nil {
			stays = x.node.Name
			break
		}
		c.removal.With = names
		list, movers = append(list, c), append(movers, slices.Clone(p.movers))
		p.budgets.draw(c.uses)
		p.minimums.Remove(x.node)
	}
	p.budgets.left, p.minimums.groups, p.minimums.totals = left, groups, totals
	if stays == "" {
		if stuck := p.moveAll(list, movers); stuck != nil {
			at := slices.IndexFunc(movers, func(pods []*cluster.Pod) bool { return slices.Contains(pods, stuck) })
			p.keepStuck(all[at], stuck)
			stays = all[at].node.Name
		}
	}
	if stays != "" {
		p.retired = append(p.retired, list...)
		return stays
	}
	for _, c := range list {
		p.add(c)
	}
	return ""
}

// keepWhole says that a node stays since another does, where pods are that leave together with its own.
func (p *pass) keepWhole(n *cluster.Node, other string, utilization float64) {
	k := autoscaler.Kept{Reason: autoscaler.KeptBlockedByPod, Utilization: utilization}
	for _, pod := range p.primary.Node(n.Index).Pods {
		if key, whole := p.primary.GoesWhole(pod); whole {
			k.Pod, k.Detail = pod.Name(), fmt.Sprintf("is a member of PodGroup %s, whose members are evicted together or not at all, and node %s stays", key.Name, other)
			break
		}
	}
	p.setKept(n, k)
}

// wholePodGroups undoes the candidates that go together with nodes that stay, and reports whether there
// were any.
func (p *pass) wholePodGroups() (undone bool) {
	for _, c := range slices.Clone(p.candidates) {
		if p.byNode[c.node] != c {
			continue
		}
		for _, name := range c.removal.With {
			if n := p.world.NodeByName(name); n == nil || p.byNode[n.Index] == nil {
				node, utilization := p.world.Node(c.node), c.removal.Utilization
				p.undo(c)
				p.keepWhole(node, name, utilization)
				undone = true
				break
			}
		}
	}
	return undone
}
