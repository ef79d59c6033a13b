package scaleup

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// Balancing: new nodes are shared over similar groups (similar.go), the group with the fewest
// nodes first, within the groups' limits. It happens while an option is packed, so that an
// expander sees what it chooses, in two ways:
//
//   - A node for pods whose place depends on what is elsewhere is at once made one of the
//     smallest group that it helps them in (inTurn): in another zone the rules may answer
//     otherwise. The option is packed without that, too, and the way that needs fewer nodes is
//     taken.
//   - A node whose pods were counted onto it is moved to a smaller group after packing
//     (balance), if that group's node takes these pods.
//
// Invariant of both: every node is of a group whose node takes its pods, and there are no more
// nodes than without balancing.

// inTurn returns the groups that a new node of an option is tried in: that which is packed,
// and those that it shares nodes with, the smallest first.
func (p *packing) inTurn() []*model {
	out := append([]*model{p.model}, p.sharing...)
	if len(out) > 1 {
		slices.SortStableFunc(out, func(x, y *model) int { return cmp.Compare(p.size(x), p.size(y)) })
	}
	return out
}

// balance moves nodes of bundles that stand in no state to similar groups that are smaller, as
// long as it makes the groups' sizes more alike. It returns the bundles, split where not all
// of their nodes move; proposed counts the nodes as they then are.
func (b *builder) balance(bundles []*bundle) []*bundle {
	var out []*bundle
	for _, x := range bundles {
		if x.model != nil && x.at == cluster.NoNode {
			if homes := b.homes(x); len(homes) > 0 {
				out = append(out, b.move(x, homes)...)
			}
		}
		out = append(out, x)
	}
	return slices.DeleteFunc(out, func(x *bundle) bool { return x.nodes == 0 })
}

// home is a group that a bundle's nodes could be of as well, with one of them as it would be.
type home struct {
	model *model
	node  *cluster.Node
	moved int
}

// homes returns the similar groups whose nodes take what a bundle has.
func (b *builder) homes(x *bundle) []*home {
	var out []*home
	for _, m := range b.similar(x.model) {
		if n := b.filled(m, x.fills); n != nil {
			out = append(out, &home{model: m, node: n})
		}
	}
	return out
}

// filled returns a new node of a group with one node's share of fills, which are of countable
// classes; nil when it doesn't take
// them, or they prefer other groups.
func (b *builder) filled(m *model, fills []fill) *cluster.Node {
	n := b.blank(m).Detached()
	for _, f := range fills {
		pods := f.pods[:f.each]
		if !f.prefers.includes(m.group) {
			return nil
		}
		e := b.Engine(pods[0])
		if e.Count(e.Class(pods[0]), n) < f.each {
			return nil
		}
		n.Add(pods...)
	}
	return n
}

// move takes nodes off a bundle and returns them as bundles of other groups.
func (b *builder) move(x *bundle, homes []*home) (moved []*bundle) {
	for open, left := slices.Clone(homes), x.nodes; left > 0 && len(open) > 0; {
		to := slices.MinFunc(open, func(x, y *home) int { return cmp.Compare(b.size(x.model), b.size(y.model)) })
		if b.size(to.model)+1 >= b.size(x.model) {
			break
		}
		b.add(x.model, -1) // the node counts once
		if room, _ := b.headroom(to.model.group); room <= 0 {
			b.add(x.model, 1)
			open = slices.DeleteFunc(open, func(h *home) bool { return h == to })
			continue
		}
		b.add(to.model, 1)
		to.moved++
		left--
	}
	for _, h := range homes {
		if h.moved > 0 {
			y := x.split(h.moved)
			y.model, y.node = h.model, h.node
			moved = append(moved, y)
		}
	}
	return moved
}
