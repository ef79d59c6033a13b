package sim

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/checker"
)

// This file checks pod groups: after each Step that no member of a gang is bound without enough others,
// and that all are in one domain; while gangs are being bound that none stays without the rest; and at rest
// that no group waits that would fit.

// gangLimit is how long a gang may have too few members bound without one more: the time for which members
// wait for one another, and as much again for Berth to be told and to start again.
const gangLimit = 2 * podgroups.PermitTime

// gang is how far the members of a gang have been bound for the first time.
type gang struct {
	priority int32
	bound    int           // so far, those that have succeeded since included
	since    time.Duration // the last one was bound
	// excused is set once something has happened after which the others may have no place, or too few
	// others come: a node or a member was lost, or somebody of a higher priority came.
	excused bool
}

// podGroup returns the PodGroup of a pod as the API has it, nil when it has none.
func (w *World) podGroup(p *v1.Pod) *schedulingv1beta1.PodGroup {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return nil
	}
	g, _ := w.objects[objectKey{cluster.PodGroupKind, p.Namespace, *p.Spec.SchedulingGroup.PodGroupName}].(*schedulingv1beta1.PodGroup)
	return g
}

func keyOfGroup(g *schedulingv1beta1.PodGroup) cluster.PodGroupKey {
	return cluster.PodGroupKey{Namespace: g.Namespace, Name: g.Name}
}

// gangBound notes that a pod was bound. A gang that has begun has to be whole in time.
func (w *World) gangBound(p *pod) {
	for _, x := range w.gangs {
		x.excused = x.excused || priority(p) > x.priority
	}
	g := w.podGroup(p.obj)
	if g == nil || g.Spec.SchedulingPolicy.Gang == nil {
		return
	}
	key := keyOfGroup(g)
	x := w.gangs[key]
	if x == nil {
		x = &gang{priority: priority(p)}
		w.gangs[key] = x
	}
	x.bound++
	w.checkGangLater(key, 0)
}

// checkGangLater looks at a gang again when its time is over, which begins after a while.
func (w *World) checkGangLater(key cluster.PodGroupKey, after time.Duration) {
	x := w.gangs[key]
	x.since = w.now + after
	w.afterInBackground(after+gangLimit, phaseWorld, func() { w.checkGang(key, x) })
}

// gangsWait has the time of gangs begin anew after a while: nothing goes on while Berth is down.
func (w *World) gangsWait(down time.Duration) {
	for _, key := range slices.SortedFunc(maps.Keys(w.gangs), cluster.PodGroupKey.Compare) {
		w.checkGangLater(key, down)
	}
}

// checkGang looks whether a gang that has begun is whole, when no member was bound for long.
func (w *World) checkGang(key cluster.PodGroupKey, x *gang) {
	g, _ := w.objects[objectKey{cluster.PodGroupKind, key.Namespace, key.Name}].(*schedulingv1beta1.PodGroup)
	if g == nil || x.excused || w.now-x.since < gangLimit || !w.opt.Check {
		return
	}
	if need := podgroups.MinCount(g); x.bound < need {
		w.violation("only %d of %d members of pod group %s are bound, the last one %s ago", x.bound, need, key, w.now-x.since)
		x.excused = true
	}
}

// excuseGangs notes that something has happened after which gangs that are being bound may not become
// whole.
func (w *World) excuseGangs() {
	for _, x := range w.gangs {
		x.excused = true
	}
}

// memberLost notes that a member of a group is gone, or has ended: fewer are left to be placed together
// with those that aren't bound yet.
func (w *World) memberLost(p *pod) {
	if g := w.podGroup(p.obj); g != nil && w.gangs[keyOfGroup(g)] != nil {
		w.gangs[keyOfGroup(g)].excused = true
	}
}

// checkMembersBound verifies the members that a Step has bound, on what Berth knew: enough others of their
// gang have nodes, all in one domain.
func (w *World) checkMembersBound(r *step.Ready) {
	state := w.berth.core().State()
	checked := map[cluster.PodGroupKey]bool{}
	for i := range r.Binds {
		p := state.PodOn(r.Binds[i].UID)
		if p == nil || p.Group == nil || checked[*p.Group] {
			continue
		}
		key := *p.Group
		checked[key] = true
		g := state.PodGroup(key)
		if g == nil {
			continue
		}
		if placed := state.PlacedMembers(key); g.Spec.SchedulingPolicy.Gang != nil && placed < podgroups.MinCount(g) {
			w.violation("a member of pod group %s is to be bound, and only %d of %d have nodes", key, placed, podgroups.MinCount(g))
		}
		for _, label := range cluster.RequiredTopologies(g) {
			if in := state.MemberDomains(key, label); len(in) != 1 {
				w.violation("members of pod group %s are to be bound in the domains %q of %s", key, in, label)
			}
		}
	}
}

// checkGroupsPending looks for pod groups that wait though enough of their members would fit, as a search
// finds that puts one after the other on the first node that takes it. pods are those on nodes.
func (w *World) checkGroupsPending(members []*pod, nodes []*v1.Node, pods []*v1.Pod) {
	byGroup := map[cluster.PodGroupKey][]*pod{}
	var keys []cluster.PodGroupKey
	for _, p := range members {
		g := w.podGroup(p.obj)
		if g == nil {
			continue // its members wait for it
		}
		key := keyOfGroup(g)
		if byGroup[key] == nil {
			keys = append(keys, key)
		}
		byGroup[key] = append(byGroup[key], p)
	}
	for _, key := range keys {
		waiting := byGroup[key]
		g := w.podGroup(waiting[0].obj)
		labels := cluster.RequiredTopologies(g)
		placed, domains := w.placedMembers(key, labels)
		need := max(podgroups.MinCount(g)-placed, 1)
		if len(waiting) < need || slices.ContainsFunc(waiting, func(p *pod) bool { return len(p.obj.Spec.SchedulingGates) > 0 }) {
			continue
		}
		for _, some := range w.byDomain(nodes, labels, domains) {
			if w.membersFit(waiting, some, nodes, pods) >= need {
				w.violation("pod group %s waits, though %d of its members would fit", key, need)
				break
			}
		}
	}
}

// placedMembers returns how many members of a group are on nodes in the API, and in which domains of some labels.
func (w *World) placedMembers(key cluster.PodGroupKey, labels []string) (n int, domains []string) {
	for _, p := range w.sortedPods() {
		g := w.podGroup(p.obj)
		if p.ended || p.obj.Spec.NodeName == "" || g == nil || keyOfGroup(g) != key {
			continue
		}
		n++
		if node := w.nodes[p.obj.Spec.NodeName]; node != nil && len(labels) > 0 {
			domain, _ := cluster.DomainOf(node.obj.Labels, labels)
			domains = append(domains, domain)
		}
	}
	return n, domains
}

// waitsForMembers reports whether a pod is of a gang of which too few members exist: nobody tries it, and
// what an earlier attempt has left of it stays.
func (w *World) waitsForMembers(p *pod) bool {
	g := w.podGroup(p.obj)
	if g == nil {
		return p.obj.Spec.SchedulingGroup != nil
	}
	n := 0
	for _, x := range w.pods { // in any order: they are counted
		if other := w.podGroup(x.obj); other != nil && keyOfGroup(other) == keyOfGroup(g) && !x.ended && !x.terminating() {
			n++
		}
	}
	return n < podgroups.MinCount(g)
}

// byDomain returns the nodes among which a group has to be: those of each domain of some labels, or of the one in
// which members are; all of them when no topology is required.
func (w *World) byDomain(nodes []*v1.Node, labels, in []string) (out [][]*v1.Node) {
	if len(labels) == 0 {
		return [][]*v1.Node{nodes}
	}
	var values []string
	by := map[string][]*v1.Node{}
	for _, n := range nodes {
		value, ok := cluster.DomainOf(n.Labels, labels)
		if !ok || len(in) > 0 && !slices.Contains(in, value) {
			continue
		}
		if by[value] == nil {
			values = append(values, value)
		}
		by[value] = append(by[value], n)
	}
	for _, value := range values {
		out = append(out, by[value])
	}
	return out
}

// membersFit returns how many of some pods fit on some of the nodes, one after the other. Those with claims
// aren't counted: what one takes the next can't have.
func (w *World) membersFit(members []*pod, some, nodes []*v1.Node, pods []*v1.Pod) (n int) {
	for _, p := range members {
		if len(p.obj.Spec.ResourceClaims) > 0 || len(p.obj.Spec.Volumes) > 0 {
			continue
		}
		around := w.withRoomKept(p, pods)
		for _, node := range some {
			if !checker.Fits(w.byPlugins(p.obj, node), node, nodes, around) {
				continue
			}
			there := *p.obj
			there.Spec.NodeName = node.Name
			pods = append(pods[:len(pods):len(pods)], &there)
			n++
			break
		}
	}
	return n
}
