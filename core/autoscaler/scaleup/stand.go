package scaleup

import "github.com/berthproject/berth/core/autoscaler"

// Stand adds the nodes that are proposed to the state, as a plan for the request has them, with
// the pods that they get by themselves. The caller has opened a what-if, and rolls it back.
func (p *Packer) Stand(req *autoscaler.Request, ups []autoscaler.ScaleUp) {
	b := p.begin(req, autoscaler.NewPlan(req, 0))
	for i := range ups {
		m := b.models[ups[i].Group]
		for range ups[i].Nodes {
			b.addNode(m, newNode(m.group, b.proposed.of(m)))
			b.add(m, 1)
		}
	}
}
