package homes

// This file looks for room for homes that have none. What must hold: no home is on the node that
// its pod has to leave, nor on a node that is going, whatever its pod tolerates.
//
// A home is first asked about as its stand-in, beside the pod that still runs. Where none is found
// and rules look at other pods, or the pod may have devices that other nodes reach or shares some, it is asked about
// once more as if the pod had gone.

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
)

// rejections are the classes for which no node was found, in one search.
type rejections struct {
	standIns map[*engine.Class]bool
	gone     map[fromNode]bool // when pods on a node were taken off it, one at a time
}

type fromNode struct {
	class *engine.Class
	node  string
}

// findRoom tries the homes that have no room, if anything has changed since it did so last. Of
// stand-ins that no rule can tell apart one that finds no node speaks for all. Those that find
// none and for which nodes may be bought are queued.
func (m *Machine) findRoom(t *lifecycle.Turn) {
	if len(m.roomless) == 0 || m.tried == t.State.Head() && !m.untried {
		return
	}
	m.untried = false
	rejected := rejections{map[*engine.Class]bool{}, map[fromNode]bool{}}
	for _, h := range inOrder(maps.Values(m.roomless)) {
		if h.queued || m.cfg.NoRoom && !h.asks || !m.scheduler.Responsible(h.standIn) {
			continue
		}
		if node := m.roomFor(t, h, &rejected); node != "" {
			m.nominate(t, h, node)
		}
	}
	m.queueAll(t)
	m.tried = t.State.Head()
}

// roomFor returns a node that takes a home's stand-in, "" for none.
func (m *Machine) roomFor(t *lifecycle.Turn, h *home, rejected *rejections) (node string) {
	e := m.scheduler.Engine(h.standIn)
	class := e.Class(h.standIn)
	if !rejected.standIns[class] {
		best, ok := e.Best(class)
		rejected.standIns[class] = !ok
		if ok {
			if n := t.State.Node(best.Node); h.mayBeOn(n) {
				return n.Name
			}
			if node := m.bestAmong(t, h, e, h.standIn); node != "" {
				return node
			}
		}
	}
	key := fromNode{class, h.from}
	elsewhere := h.shares() || !t.State.Devices().NodesOnly() && t.State.ClaimsDevices(h.standIn)
	if !h.asks || rejected.gone[key] || !elsewhere && !e.LooksBeyondNode(class) {
		return ""
	}
	node = m.roomWithoutPod(t, h)
	rejected.gone[key] = node == ""
	return node
}

// roomWithoutPod returns a node that would take the stand-in of a home if the pod had left its node, with those that
// it shares claims with if they have to; "" for none. It costs O(nodes).
func (m *Machine) roomWithoutPod(t *lifecycle.Turn, h *home) (node string) {
	if !h.holds(t.State) {
		return ""
	}
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	m.takeLeaversOff(t, h)
	return m.bestAmong(t, h, m.scheduler.Engine(h.standIn), h.standIn)
}

// bestAmong returns the best node on which a home may be, as a pod would be placed; "" for none.
func (m *Machine) bestAmong(t *lifecycle.Turn, h *home, e *engine.Engine, as *cluster.Pod) (node string) {
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	choice, _, ok := e.PlaceAmong(e.Class(as), as, func(n *cluster.Node) (int64, bool) { return 0, h.mayBeOn(n) })
	if !ok {
		return ""
	}
	return t.State.Node(choice.Node).Name
}

// mayBeOn reports whether a home may be on a node, if that takes its stand-in. n may be nil.
func (h *home) mayBeOn(n *cluster.Node) bool {
	return n != nil && n.Name != h.from && !autoscaler.Going(n.NodeInfo)
}

// avoid excludes by node affinity the node of a home's pod, and all nodes that are going now: the pod
// tolerates their taints, which keep others away.
func (h *home) avoid(s *cluster.State) {
	var names []v1.NodeSelectorRequirement
	s.Nodes(func(n *cluster.Node) {
		if !h.mayBeOn(n) {
			names = append(names, v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpNotIn, Values: []string{n.Name}})
		}
	})
	object := *h.standIn.Object
	affinity, node, required := v1.Affinity{}, v1.NodeAffinity{}, v1.NodeSelector{}
	if object.Spec.Affinity != nil {
		affinity = *object.Spec.Affinity
	}
	if affinity.NodeAffinity != nil {
		node = *affinity.NodeAffinity
	}
	terms := []v1.NodeSelectorTerm{{}}
	if of := h.pod.Object.Spec.Affinity; of != nil && of.NodeAffinity != nil && of.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = of.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	for _, term := range terms {
		term.MatchFields = append(term.MatchFields[:len(term.MatchFields):len(term.MatchFields)], names...)
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	node.RequiredDuringSchedulingIgnoredDuringExecution, affinity.NodeAffinity, object.Spec.Affinity = &required, &node, &affinity
	standIn := *h.standIn
	standIn.Object, h.standIn = &object, &standIn
}
