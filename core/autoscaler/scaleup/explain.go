package scaleup

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// This file says why groups would, or wouldn't, be bought for a pod: by reason and number
// for the plan, and by group, with what falls short, for people who ask.

// Answer is what there is to say about one pod and of every group, at one moment.
type Answer struct {
	// Node is the node that the pod has a place on, after those who come before it: one that
	// exists, is coming, or is to stay; nil for none. One that isn't registered yet has a name of the
	// planner's.
	Node       *cluster.NodeInfo
	Registered bool // whether the API has Node
	Stays      bool // whether Node is on its way out, and stays with the next plan
	Groups     []GroupAnswer
}

// GroupAnswer is what there is to say about a pod and a group.
type GroupAnswer struct {
	Group string
	// Room is how many nodes a plan might buy of the group now.
	Room int
	// Limit is why that is none, in Cluster Autoscaler's words; "" when there is room.
	Limit string
	// Next is the limit that the group meets with as many nodes as there is room for; "" when
	// there is none.
	Next string
	// Reason is why an empty node of the group doesn't take the pod, nil when it does, or when
	// it isn't known what its nodes look like. Quantities in the reason are those of such a node,
	// with its daemon pods and nothing else.
	Reason *framework.Reason
	// Detail is what such a node lacks, where the rule that rejects it can tell people more than its reason
	// does; "" for nothing.
	Detail string
}

// Explain answers for a pod. The request's pending pods have their places first, as in a
// plan; the pod may be one of them. It costs as much as the first two steps of a plan, and
// O(groups × rules).
func (p *Packer) Explain(req autoscaler.Request, pod *cluster.Pod) Answer {
	mark := p.State.Mark()
	defer p.State.Rollback(mark)
	registered := map[string]bool{}
	p.State.Nodes(func(n *cluster.Node) { registered[n.Name] = true })
	b := p.covered(&req)
	var out Answer
	if n := p.State.NodeOf(pod.UID); n != nil {
		out.Node, out.Registered = n.NodeInfo, registered[n.Name]
		out.Stays = slices.ContainsFunc(b.plan.Recalls, func(r autoscaler.Recall) bool { return r.Node == n.Name })
		p.Engine(pod).TakeOff(pod) // it isn't to stand in its own way
	}
	class := p.Engine(pod).Class(pod)
	out.Groups = b.rooms()
	for i, g := range p.State.Groups() {
		if !b.unknown(g) {
			out.Groups[i].Reason, out.Groups[i].Detail = b.rejectsFor(g, class, pod)
		}
	}
	return out
}

// Rooms says how far groups may grow, in the order of State.Groups, as Explain does of any
// pod. Where pods go changes no limit, so nodes that are coming are counted and needn't stand
// in the state: it costs O(nodes + groups).
func (p *Packer) Rooms(req autoscaler.Request) []GroupAnswer {
	mark := p.State.Mark()
	defer p.State.Rollback(mark)
	req.Pending = nil
	b := p.begin(&req, autoscaler.NewPlan(&req, 0))
	b.plan.Sick = Sick(p.State, &req)
	b.limits = b.newLimits()
	for _, g := range p.State.Groups() {
		b.limits.addComing(b, g)
	}
	return b.rooms()
}

// covered returns the builder of a plan after its first three steps.
func (p *Packer) covered(req *autoscaler.Request) *builder {
	b := p.begin(req, autoscaler.NewPlan(req, 0))
	b.plan.Sick = Sick(p.State, req)
	b.recall(b.cover(b.runs(req.Pending)))
	b.limits = b.newLimits()
	return b
}

func (b *builder) rooms() []GroupAnswer {
	out := []GroupAnswer{}
	for _, g := range b.State.Groups() {
		room, limit := b.headroom(g)
		a := GroupAnswer{Group: g.ID, Room: max(room, 0), Limit: limit}
		if room > 0 {
			b.add(b.models[g.ID], room)
			_, a.Next = b.headroom(g)
			b.add(b.models[g.ID], -room)
		}
		out = append(out, a)
	}
	return out
}

// rejects returns why an empty new node of a group doesn't take a pod, nil when it does. It is the slow twin
// of whys.
func (b *builder) rejects(g *cluster.NodeGroup, class *engine.Class, pod *cluster.Pod) (why *framework.Reason) {
	b.probe(g, class, pod, func(e *engine.Engine, class *engine.Class, i cluster.NodeIndex) { why = e.Explain(class, i) })
	return why
}

// rejectsFor is rejects, and says what such a node lacks, for people. It is slower.
func (b *builder) rejectsFor(g *cluster.NodeGroup, class *engine.Class, pod *cluster.Pod) (why *framework.Reason, detail string) {
	b.probe(g, class, pod, func(e *engine.Engine, class *engine.Class, i cluster.NodeIndex) {
		if why = e.Explain(class, i); why != nil {
			detail = e.Detail(class, i)
		}
	})
	return why, detail
}

// probe calls ask with an empty new node of a group, which is in the state meanwhile.
func (b *builder) probe(g *cluster.NodeGroup, class *engine.Class, pod *cluster.Pod, ask func(*engine.Engine, *engine.Class, cluster.NodeIndex)) {
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	i := b.addNode(b.models[g.ID], g.ID+"/probe")
	e := b.Engine(pod)
	ask(e, e.Current(class, pod), i)
}

func uids(pods expander.Pods) []types.UID {
	out := make([]types.UID, 0, pods.Len())
	for _, piece := range pods {
		for _, pod := range piece {
			out = append(out, pod.UID)
		}
	}
	return out
}
