package scaleup

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// This file leaves out of what was packed for a gang the nodes without which it has room for as many members: options are
// packed one after the other, and nodes of the second may have room for what the first was opened for. Nodes that were
// ordered for members before may have become needless by others. As long as they aren't registered they can be given up,
// by a plan that buys nothing for the gang: until an order is accepted it isn't known whether they are needless.

// maxNeedless is how many nodes are found to be needed before the others are taken to be, for a gang; maxGivingUp bounds
// how many coming nodes a plan tries to do without, for gangs that need nothing else.
const maxNeedless, maxGivingUp = 16, 256

// unit is nodes that are bought, or given up, together: one, or all of an atomic group.
type unit struct {
	nodes   []newNodeOf
	members []*cluster.Pod
	price   float64
	coming  bool // ordered by a plan before
}

// dropNeedless takes nodes out of the state whose members of a gang have room elsewhere, those with the fewest members
// first, of these the dearest: new ones, which are out of what is proposed then, too, or coming ones when none is new. It
// returns the new ones that are left; moved reports whether members were moved that had places on coming nodes before.
func (b *builder) dropNeedless(g *gang, nodes []newNodeOf) (left []newNodeOf, moved bool) {
	units := b.units(nodes)
	switch len(units) {
	case 0:
		units = b.comingUnits(g)
	case 1:
		return nodes, false
	}
	slices.SortStableFunc(units, func(x, y *unit) int {
		return cmp.Or(cmp.Compare(len(x.members), len(y.members)), cmp.Compare(y.price, x.price))
	})
	inPlace, dropped, needed := map[*cluster.Pod]bool{}, map[string]bool{}, 0
	for _, pod := range g.inPlace {
		inPlace[pod] = true
	}
	for _, u := range units {
		if needed == maxNeedless || b.gangsOver() {
			break
		}
		if !b.drop(g, u) {
			needed++
			continue
		}
		moved = moved || slices.ContainsFunc(u.members, func(pod *cluster.Pod) bool { return inPlace[pod] })
		for _, n := range u.nodes {
			dropped[n.name] = true
		}
	}
	return slices.DeleteFunc(nodes, func(n newNodeOf) bool { return dropped[n.name] }), moved
}

// units divides new nodes into what is bought together.
func (b *builder) units(nodes []newNodeOf) (out []*unit) {
	for i, n := range nodes {
		if i == 0 || n.model != nodes[i-1].model || !atomicGroup(n.model.group) {
			out = append(out, &unit{})
		}
		u := out[len(out)-1]
		u.nodes, u.price = append(u.nodes, n), u.price+n.model.group.Price
		u.members = append(u.members, b.membersOn(b.State.NodeByName(n.name))...)
	}
	return out
}

// membersOn returns the pods on a node that are members of a gang of the request.
func (b *builder) membersOn(n *cluster.Node) (out []*cluster.Pod) {
	for _, pod := range n.Pods {
		if b.gangs.byMember[pod.UID] != nil {
			out = append(out, pod)
		}
	}
	return out
}

// comingUnits returns the coming nodes that may still be given up, as they aren't registered, and that are for members of
// one gang alone. An atomic group is given up as a whole.
func (b *builder) comingUnits(g *gang) (out []*unit) {
	for _, group := range b.State.Groups() {
		a, atomic := b.arriving[group.ID], atomicGroup(group)
		if a == nil || atomic && (a.starting > 0 || a.unregistered > 0 || b.coming[group.ID].Nodes() < group.Target) {
			continue
		}
		var units []*unit
		others := false
		for _, i := range a.nodes[a.starting:] {
			n := b.State.Node(i)
			u := &unit{nodes: []newNodeOf{{b.models[group.ID], n.Name}}, price: group.Price, coming: true, members: b.membersOn(n)}
			ofOthers := n.Workload > len(u.members) || slices.ContainsFunc(u.members, func(pod *cluster.Pod) bool { return b.gangs.byMember[pod.UID] != g })
			others = others || ofOthers
			switch {
			case atomic && len(units) > 0:
				units[0].nodes, units[0].price, units[0].members = append(units[0].nodes, u.nodes...), units[0].price+u.price, append(units[0].members, u.members...)
			case atomic || !ofOthers && len(u.members) > 0:
				units = append(units, u)
			}
		}
		if !atomic || !others && len(units) > 0 && len(units[0].members) > 0 {
			out = append(out, units...)
		}
	}
	return out
}

// giveUpComing returns an attempt in which a gang, all of whose members have places, does without some coming nodes; nil
// when it needs them all.
func (b *builder) giveUpComing(g *gang) (a *attempt) {
	if b.gangs.givingUp >= maxGivingUp {
		return nil
	}
	defer b.countAnswers()()
	before, mark := *b.plan, b.State.Mark()
	b.gangs.standing = true
	if _, moved := b.dropNeedless(g, nil); moved {
		a = b.record(g.Members, &gangDomain{}, &before, nil)
		a.anew = true
	}
	b.State.Rollback(mark)
	b.gangs.standing = false
	return a
}

// drop takes a unit out of the state if its members, which are a gang's, have room elsewhere, and reports whether they
// have.
func (b *builder) drop(g *gang, u *unit) bool {
	b.gangs.work += len(u.members) + len(u.nodes)
	if u.coming {
		b.gangs.givingUp++
	}
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
	if !b.placeElsewhere(g, u.members) {
		b.State.Rollback(mark)
		return false
	}
	b.State.Release(mark)
	for _, n := range u.nodes {
		if !u.coming {
			b.add(n.model, -1)
		}
	}
	return true
}

// placeElsewhere places members that were taken off their nodes, and reports whether all have room; what it leaves
// otherwise is the caller's to roll back. As long as other members have nodes these say in which domain they have to be.
// When none has, each domain that could hold them all is tried: nothing else keeps them together.
func (b *builder) placeElsewhere(g *gang, members []*cluster.Pod) bool {
	if len(g.Topologies) == 0 || b.State.PlacedMembers(g.Key) > 0 {
		return len(b.place(b.memberRuns(members))) == 0
	}
	tried := g.out.Tried
	domains := b.gangDomains(g, members, len(members))
	g.out.Tried = tried // what has no room for them all is no answer to where the gang could be
	for _, d := range domains {
		if b.gangsOver() {
			return false
		}
		if d.holds < len(members) {
			continue
		}
		b.gangs.work += tryGangWork + len(members)
		mark := b.State.Mark()
		weigh := b.anchor(g, d)
		if len(b.place(b.memberRuns(members))) == 0 {
			weigh()
			b.State.Release(mark)
			return true
		}
		b.State.Rollback(mark)
	}
	return false
}
