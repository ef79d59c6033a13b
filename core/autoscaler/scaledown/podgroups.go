package scaledown

// This file has the nodes of pod groups whose disruptionMode is all go together, or stay: all members are
// evicted, and find homes as a whole. Members of other groups move one by one.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// nodeSet are nodes that go together, at least two, sorted by name: whichever of them was found first, they are
// simulated in one order.
type nodeSet struct {
	nodes []cluster.NodeIndex
	names []string
}

// same reports whether a set, nil for a node that goes alone, has these names.
func (s *nodeSet) same(names []string) bool {
	if s == nil {
		return len(names) == 0
	}
	return slices.Equal(s.names, names)
}

// goesWith returns a node with all others that have pods which leave with its own, or with pods of
// such a node; nil for a node that goes alone. It takes O(1) but for the first node of a set since the primary
// changed: then O(the pods on the set's nodes).
func (s *Simulator) goesWith(i cluster.NodeIndex) *nodeSet {
	if !s.primary.AnyMemberOn(i) {
		return nil
	}
	if set, known := s.sets[i]; known {
		return set
	}
	seen, in := map[cluster.PodGroupKey]bool{}, map[cluster.NodeIndex]bool{i: true}
	set := &nodeSet{nodes: []cluster.NodeIndex{i}}
	for k := 0; k < len(set.nodes); k++ {
		s.world.Turn()
		for _, pod := range s.primary.Node(set.nodes[k]).Pods {
			key, whole := s.primary.GoesWhole(pod)
			if !whole || seen[key] {
				continue
			}
			seen[key] = true
			for _, n := range s.primary.MemberNodes(key) {
				if !in[n] {
					in[n] = true
					set.nodes = append(set.nodes, n)
				}
			}
		}
	}
	if len(set.nodes) == 1 {
		s.sets[i] = nil
		return nil
	}
	slices.SortFunc(set.nodes, func(a, b cluster.NodeIndex) int {
		return strings.Compare(s.primary.Node(a).Name, s.primary.Node(b).Name)
	})
	for _, n := range set.nodes {
		set.names = append(set.names, s.primary.Node(n).Name)
		s.sets[n] = set
	}
	return set
}

// simulateWith simulates the removal of a node and of all that go together with it. list are the nodes that
// may be candidates.
func (p *pass) simulateWith(x eligibleNode, list []eligibleNode) {
	set := p.goesWith(x.node.Index)
	if set == nil {
		p.simulate(x)
		return
	}
	if p.together[set] {
		return // with another of them
	}
	if p.together == nil {
		p.together, p.listed = map[*nodeSet]bool{}, map[cluster.NodeIndex]int{}
		for at := range list {
			p.listed[list[at].node.Index] = at
		}
	}
	p.together[set] = true
	var all []eligibleNode
	missing := ""
	for _, i := range set.nodes {
		at, listed := p.listed[i]
		if !listed || p.byNode[i] != nil || p.isHome(i) {
			missing = p.world.Node(i).Name
			continue
		}
		all = append(all, list[at])
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
// were any. It takes O(candidates).
func (p *pass) wholePodGroups() (undone bool) {
	stays := map[*nodeSet]string{} // one node of the set that stays, "" for none
	for _, c := range slices.Clone(p.candidates) {
		set := p.goesWith(c.node)
		if set == nil || p.byNode[c.node] != c {
			continue
		}
		if _, known := stays[set]; !known {
			stays[set] = p.staysOf(set)
		}
		if name := stays[set]; name != "" {
			node, utilization := p.world.Node(c.node), c.removal.Utilization
			p.undo(c)
			p.keepWhole(node, name, utilization)
			undone = true
		}
	}
	return undone
}

// staysOf returns the first node of a set that isn't a candidate, "" when all are.
func (p *pass) staysOf(set *nodeSet) string {
	for _, name := range set.names {
		if n := p.world.NodeByName(name); n == nil || p.byNode[n.Index] == nil {
			return name
		}
	}
	return ""
}

// maxDomainsMovedTo is how many topology domains are tried for a pod group beside the one that its first member
// finds by itself.
const maxDomainsMovedTo = 16

// mayFollow reports whether a pod's successor may be on a node. Members that get successors before they leave
// (--surge) are still in their domains then, and the rules keep the successors there.
func (p *pass) mayFollow(pod *cluster.Pod, at cluster.NodeIndex) bool {
	in := p.mustFollowTo(pod)
	if in == nil {
		return true
	}
	labels := p.world.Node(at).Object.Labels
	for i, label := range cluster.RequiredTopologies(p.primary.PodGroup(*pod.Group)) {
		if in[i] != "" && labels[label] != in[i] {
			return false
		}
	}
	return true
}

// mustFollowTo returns the values of the labels that a pod's group requires topologies of, which the node of its successor must
// have, "" for any; nil for a pod whose successor is free.
func (p *pass) mustFollowTo(pod *cluster.Pod) (in []string) {
	key, whole := p.primary.SurgesWhole(pod)
	if !whole || !p.down.Rules.Surge {
		return nil
	}
	for _, label := range cluster.RequiredTopologies(p.primary.PodGroup(key)) {
		value := ""
		if now := p.primary.MemberDomains(key, label); len(now) > 0 {
			value = now[0]
		}
		in = append(in, value)
	}
	return in
}

// otherDomains returns the member of a pod group that moves first, and a node that takes it in each of the domains that
// all members could move to but that of its last try, those with the most nodes first. first is nil when no domain is
// required, or when members stay, whose domain counts.
func (p *pass) otherDomains(list []*candidate, movers [][]*cluster.Pod, key cluster.PodGroupKey) (first *cluster.Pod, names []string) {
	labels := cluster.RequiredTopologies(p.world.PodGroup(key))
	if len(labels) == 0 {
		return nil, nil
	}
	tried, leaving := cluster.NoNode, 0
	for i, pods := range movers {
		for _, pod := range pods {
			if pod.Group == nil || *pod.Group != key {
				continue
			}
			if leaving++; first != nil {
				continue
			}
			first = pod
			if at := slices.IndexFunc(list[i].homes, func(h home) bool { return h.pod == pod }); at >= 0 {
				tried = list[i].homes[at].at
			}
		}
	}
	if leaving < p.world.PlacedMembers(key) {
		return nil, nil
	}
	mark := p.world.Mark()
	defer p.world.Rollback(mark)
	p.takeOffAll(list, movers)
	_, domains := p.world.DomainsOf(labels)
	domains = slices.Clone(domains)
	slices.SortStableFunc(domains, func(a, b []cluster.NodeIndex) int { return cmp.Compare(len(b), len(a)) })
	e := p.engine(first)
	class := e.Class(first)
	for _, nodes := range domains {
		p.world.Turn()
		if slices.Contains(nodes, tried) {
			continue
		}
		// Which of them it is mustn't depend on the order in which nodes came.
		name := ""
		for _, i := range nodes {
			n := p.world.Node(i)
			if (name == "" || n.Name < name) && p.mayFollow(first, i) && e.FitsOn(class, n) {
				name = n.Name
			}
		}
		if name != "" {
			names = append(names, name)
		}
		if len(names) == maxDomainsMovedTo {
			break
		}
	}
	return first, names
}
