package scaledown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file has what a consolidation that is under way means for a pass. From the order of its
// new nodes to the end of its last old one, it holds in each pass that
//
//   - no pod gets a home on the nodes that are to go, so that none of them is kept for others;
//   - these are simulated first, in their order, whatever their utilization is;
//   - no other node of the groups that have grown is a candidate: the new ones are empty at
//     first, and then have less on them than they will.

// replacedTaint marks, in the world and during a pass, nodes that are to go and aren't
// candidates.
var replacedTaint = v1.Taint{Key: "berth.dev/replaced", Effect: v1.TaintEffectNoSchedule}

// readReplacing takes what the request says.
func (p *pass) readReplacing() {
	r := p.down.Replacing
	if r == nil {
		return
	}
	p.replaced, p.grown = map[string]int{}, map[string]bool{}
	for i, name := range r.Nodes {
		p.replaced[name] = i + 1
	}
	for _, id := range r.Groups {
		p.grown[id] = true
	}
}

// isReplacement reports whether a node may be one of those that replace others.
func (p *pass) isReplacement(n *cluster.Node) bool {
	return p.grown[n.Group] && p.replaced[n.Name] == 0
}

// closeReplaced has no pod get a home on the nodes that are to go. Candidates with homes there
// are undone.
func (p *pass) closeReplaced() {
	if p.replaced == nil {
		return
	}
	onReplaced := func(h home) bool { return p.replaced[p.world.Node(h.at).Name] > 0 }
	for _, c := range slices.Clone(p.candidates) {
		if slices.ContainsFunc(c.homes, onReplaced) {
			p.undo(c)
		}
	}
	p.eachReplaced(func(n *cluster.Node) { p.world.SetNode(n.WithTaint(replacedTaint)) })
}

// openReplaced has those nodes be as the primary has them.
func (p *pass) openReplaced() {
	p.eachReplaced(func(n *cluster.Node) { p.world.SetNode(p.primary.Node(n.Index).NodeInfo) })
}

// eachReplaced calls f with each node that is to go and isn't a candidate.
func (p *pass) eachReplaced(f func(*cluster.Node)) {
	if p.replaced == nil {
		return
	}
	for _, name := range p.down.Replacing.Nodes {
		if n := p.world.NodeByName(name); n != nil && p.byNode[n.Index] == nil {
			f(n)
		}
	}
}
