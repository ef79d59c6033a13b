package scaleup

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// This file leaves out of what was packed for a gang the nodes without which it has room for as many members: options are
// packed one after the other, and nodes of the second may have room for what the first was opened for.

// maxNeedless is how many nodes are found to be needed before the others are taken to be.
const maxNeedless = 16

// unit is new nodes that are bought together: one, or all of an atomic group.
type unit struct {
	nodes   []newNodeOf
	members []*cluster.Pod
	price   float64
}

// dropNeedless takes new nodes out of the state, and out of what is proposed, whose members have room elsewhere: those
// with the fewest members first, of these the dearest. It returns the others.
func (b *builder) dropNeedless(nodes []newNodeOf) []newNodeOf {
	units := b.units(nodes)
	if len(units) < 2 {
		return nodes
	}
	slices.SortStableFunc(units, func(x, y *unit) int {
		return cmp.Or(cmp.Compare(len(x.members), len(y.members)), cmp.Compare(y.price, x.price))
	})
	dropped, needed := map[string]bool{}, 0
	for _, u := range units {
		if needed == maxNeedless {
			break
		}
		if !b.drop(u) {
			needed++
			continue
		}
		for _, n := range u.nodes {
			dropped[n.name] = true
		}
	}
	return slices.DeleteFunc(nodes, func(n newNodeOf) bool { return dropped[n.name] })
}

// units divides new nodes into what is bought together.
func (b *builder) units(nodes []newNodeOf) (out []*unit) {
	for i, n := range nodes {
		if i == 0 || n.model != nodes[i-1].model || !atomicGroup(n.model.group) {
			out = append(out, &unit{})
		}
		u := out[len(out)-1]
		u.nodes, u.price = append(u.nodes, n), u.price+n.model.group.Price
		for _, pod := range b.State.NodeByName(n.name).Pods {
			if b.gangs.byMember[pod.UID] != nil {
				u.members = append(u.members, pod)
			}
		}
	}
	return out
}

// drop takes a unit out of the state if its members have room elsewhere, and reports whether they have.
func (b *builder) drop(u *unit) bool {
	b.gangs.work += len(u.members) + len(u.nodes)
	mark := b.State.Mark()
	for _, pod := range u.members {
		b.State.Remove(pod.UID)
	}
	for _, n := range u.nodes {
		for _, pod := range slices.Clone(b.State.NodeByName(n.name).Pods) {
			b.State.Remove(pod.UID)
		}
		b.State.RemoveNode(n.name)
	}
	if len(b.place(b.memberRuns(u.members))) > 0 {
		b.State.Rollback(mark)
		return false
	}
	b.State.Release(mark)
	for _, n := range u.nodes {
		b.add(n.model, -1)
	}
	return true
}
