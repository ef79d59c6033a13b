package homes

// This file keeps homes for pods that will lose their node before any plan has found one: their node
// is about to be taken by the cloud. Such a home begins without room. It is tried on the nodes that
// are there; if none has room, its stand-in is queued like a pod, so that a plan has a place for it on a
// coming node, or buys one. When the stand-in is placed it leaves the queue, and its room is kept
// like that of any home. A replacement that comes before that takes over the stand-in's place.

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// Orders queues stand-ins, which are then scheduled and planned for as pods are.
type Orders interface {
	// Queue makes a record of a stand-in and queues it.
	Queue(t *lifecycle.Turn, standIn *cluster.Pod)
	// Drop forgets a stand-in: it leaves the queue and the state, and its place ends.
	Drop(standIn types.UID)
	// HandOver gives the place of a stand-in on a coming node to a pod, if it has one.
	HandOver(t *lifecycle.Turn, standIn, pod types.UID)
	// Coming reports whether a stand-in has a place on a coming node.
	Coming(standIn types.UID) bool
}

// Connect sets what queues stand-ins. It must be called before Anticipate.
func (m *Machine) Connect(orders Orders) { m.orders = orders }

// Anticipate keeps homes for the replacements of pods that will lose their node. Pods that leave
// already have none, nor do those of which WhyNone returns why.
//
// The home of a pod that shares a resource claim with others is where the devices of that can be used: no node is
// bought for it.
// Members of pod groups are asked about one by one, as if they were in none.
func (m *Machine) Anticipate(t *lifecycle.Turn, node string, pods []*cluster.Pod) {
	for _, pod := range pods {
		h := m.byPod[pod.UID]
		if h != nil && h.left.IsZero() && !h.taken && !h.standIn.Request.Equal(&t.State.Schema.AsWanted(pod).Request) {
			m.endAll(t, []*home{h}, func(*home) string { return "its pod is to have other requests" })
			h = nil
		}
		switch {
		case h != nil:
			m.untried = m.untried || h.node == "" && !h.queued && !h.asks
			h.asks = true
		case leaves(pod) || m.WhyNone(t.State, pod) != "":
		default:
			h = newHome(t.State, pod, node, "")
			h.standIn.Group = nil
			h.asks, m.untried = true, true
			m.add(h)
			m.roomless[pod.UID] = h
			m.version++
		}
	}
}

// WhyNone returns why no home can be kept for the replacement of a pod, in words that follow its name;
// "" when one can be.
func (m *Machine) WhyNone(s *cluster.State, pod *cluster.Pod) string {
	switch {
	case !m.scheduler.Responsible(pod):
		return "is placed by scheduler " + pod.Object.Spec.SchedulerName
	case pod.Group != nil:
		if levels, err := cluster.TopologyLevels(s.PodGroup(*pod.Group)); err != nil || len(levels) > 0 {
			return "has to be near the others of PodGroup " + pod.Group.Name
		}
	}
	return ""
}

// queueAll queues the stand-ins for which nodes may be bought and that have found no room.
func (m *Machine) queueAll(t *lifecycle.Turn) {
	for _, h := range inOrder(maps.Values(m.roomless)) {
		if h.asks && !h.queued && !h.shares() {
			m.queue(t, h)
		}
	}
}

// queue queues the stand-in of a home.
func (m *Machine) queue(t *lifecycle.Turn, h *home) {
	h.queued = true
	m.orders.Queue(t, h.standIn)
}

// unqueue takes the stand-in of a home out of the queue, if it is there.
func (m *Machine) unqueue(h *home) {
	if h.queued {
		h.queued = false
		m.orders.Drop(h.standIn.UID)
	}
}

// StandInPlaced keeps room on the node on which a decision has placed a stand-in, in the turn that it had there: was
// is how it was nominated before, nil for not at all. One that tolerates
// everything may have been placed on a node that is going, too: it is queued anew, for other nodes.
func (m *Machine) StandInPlaced(t *lifecycle.Turn, standIn *cluster.Pod, node string, was *cluster.Nomination) {
	h := m.byPod[leaver(standIn)]
	t.State.Remove(standIn.UID)
	m.unqueue(h)
	h.why = ""
	if !h.mayBeOn(t.State.NodeByName(node)) {
		h.avoid(t.State)
		m.queue(t, h)
		return
	}
	t.State.NominateInTurn(h.standIn, node, was)
	m.nominate(t, h, node)
}

// NoHelp records why no node group would help a stand-in.
func (m *Machine) NoHelp(standIn *cluster.Pod, reasons string) {
	if h := m.byPod[leaver(standIn)]; h != nil {
		h.why = reasons
	}
}

// NodeTaken records that a node is gone with its pods: their replacements are expected, though the API may
// show the pods for a while.
func (m *Machine) NodeTaken(t *lifecycle.Turn, node string) {
	for _, h := range m.byNode[node] {
		if h.taken = true; h.left.IsZero() {
			h.until = t.Now.Add(m.cfg.Time)
			m.unsettled, m.wake = true, lifecycle.Earliest(m.wake, h.until)
		}
	}
}

// ReleasePod ends the home of a pod that wasn't told to leave, since it stays. The ledger has nothing of one that never
// had room: a hopeless one is looked for again and again.
func (m *Machine) ReleasePod(t *lifecycle.Turn, pod types.UID) {
	switch h := m.byPod[pod]; {
	case h == nil || !h.left.IsZero() || h.taken:
	case !h.told:
		m.end(t, h)
	default:
		m.endAll(t, []*home{h}, func(*home) string { return "its pod stays" })
	}
}

// Version changes whenever a home has begun, has ended, or has its room elsewhere.
func (m *Machine) Version() int { return m.version }

// Kept is what is kept for the replacement of one pod.
type Kept struct {
	Node   string // that has the room; "" while none has
	Coming bool   // a place on a coming node is kept instead
	Waits  bool   // room is looked for still
	Shares bool   // no node is bought for it: it has devices of a claim that it shares with others
	Why    string // why no node group helps, as the last plan has it; "" when that isn't known
}

// Kept returns what is kept for the replacement of a pod; ok is false when there is no home.
func (m *Machine) Kept(pod types.UID) (k Kept, ok bool) {
	h := m.byPod[pod]
	if h == nil {
		return Kept{}, false
	}
	return Kept{Node: h.node, Coming: h.queued && m.orders.Coming(h.standIn.UID), Waits: h.node == "" && h.asks, Shares: h.shares(), Why: h.why}, true
}
