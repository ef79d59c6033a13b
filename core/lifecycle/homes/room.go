package homes

// This file holds the room of homes that are kept: whether there is still some, and what becomes of
// a stand-in whose room is lost. search.go looks for room. A stand-in counts beside the pod that it stands
// for, which still runs on another node: where the two keep each other away (anti-affinity or
// spread over zones), the stand-in is asked about as if the pod had gone, for only then its
// replacement comes.

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// prefix begins the UIDs of this machine's stand-ins; the pod's follows.
const prefix = "home/"

// standInFor returns what keeps room for the replacement of a pod: where its volumes can be reached. It
// has the claims that are bound and that outlive the pod.
func standInFor(s *cluster.State, pod *cluster.Pod) *cluster.Pod {
	out := lifecycle.StandInOf(s.Schema.AsWanted(pod), prefix, "home-of-"+pod.Object.Name)
	for _, ref := range pod.Claims {
		if claim := s.Claim(pod.Object.Namespace, ref.Name); !ref.Ephemeral && claim != nil && cluster.ClaimBound(claim) {
			out.Claims = append(out.Claims, cluster.ClaimRef{Name: ref.Name, Inherited: true})
		}
	}
	return out
}

// leaver returns the UID of the pod whose home a stand-in keeps, "" when it is another
// machine's.
func leaver(standIn *cluster.Pod) types.UID {
	uid, ours := strings.CutPrefix(string(standIn.UID), prefix)
	if !ours || !standIn.StandsIn() {
		return ""
	}
	return types.UID(uid)
}

// noRoom returns why the homes can't all be kept, "" when they can. It leaves the state as it
// is.
func (m *Machine) noRoom(t *lifecycle.Turn, list []*home) (why string) {
	if m.allFit(t, list) { // by rules for which it is no matter that their pods run still
		for _, h := range list {
			m.fitting[h.standIn.UID] = true
		}
		return ""
	}
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	for _, h := range list {
		m.takeOff(t, h.pod)
	}
	for _, h := range list {
		n := t.State.NodeByName(h.node)
		switch {
		case !m.scheduler.Responsible(h.pod):
			h.node = "" // who places it takes no notice of what is kept
			continue
		case n == nil:
			return fmt.Sprintf("node %s, where room was reserved for pod %s, no longer exists", h.node, h.pod.Name())
		case autoscaler.Going(n.NodeInfo):
			return fmt.Sprintf("node %s, where room was reserved for pod %s, %s", h.node, h.pod.Name(), whyGoing(n))
		}
		if e := m.scheduler.Engine(h.standIn); !e.FitsOn(e.Class(h.standIn), n) {
			return fmt.Sprintf("node %s no longer has room for pod %s", h.node, h.pod.Name())
		}
		t.State.Nominate(h.standIn, h.node)
	}
	return ""
}

// allFit reports whether the nodes of homes take their stand-ins all together, with those that
// are nominated there already. When it returns false, each has to be checked by itself.
func (m *Machine) allFit(t *lifecycle.Turn, list []*home) bool {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *home) int { return strings.Compare(a.node, b.node) })
	var pods []*cluster.Pod
	for i, h := range list {
		pods = append(pods, h.standIn)
		if i+1 < len(list) && list[i+1].node == h.node {
			continue
		}
		if n := t.State.NodeByName(h.node); n == nil || !lifecycle.FitBeside(t.State, m.scheduler, n, pods) {
			return false
		}
		pods = pods[:0]
	}
	return true
}

// nominate keeps room for a home on a node, "" for none.
func (m *Machine) nominate(t *lifecycle.Turn, h *home, node string) {
	m.version++
	if h.node = node; node == "" {
		m.roomless[h.pod.UID] = h
	} else {
		delete(m.roomless, h.pod.UID)
	}
	t.State.Nominate(h.standIn, node)
	if node != "" {
		h.told = true
		t.Decide(step.Decision{Kind: step.HomeKept, Pod: h.pod.Name(), Node: node})
	}
}

// takes reports whether a home's node takes a pod in the place of the stand-in.
func (m *Machine) takes(t *lifecycle.Turn, h *home, pod *cluster.Pod) bool {
	n := t.State.NodeByName(h.node)
	if n == nil || !m.scheduler.Responsible(pod) {
		return false
	}
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	t.State.Nominate(h.standIn, "")
	e := m.scheduler.Engine(pod)
	return e.FitsOn(e.Class(pod), n)
}

// dropLostRoom takes from homes the room that changes since the last call have taken.
func (m *Machine) dropLostRoom(t *lifecycle.Turn) {
	claims := false
	known := m.watch.EachEndangered(t.State, m.scheduler, func(p *cluster.Pod) bool { return m.fitting[p.UID] }, func(c *cluster.Change) {
		switch c.Op {
		case cluster.WorkloadSet, cluster.WorkloadRenewed:
			m.unsettled = true
		case cluster.ObjectSet, cluster.ObjectRenewed:
			claims = claims || c.Object.Kind() == cluster.ResourceClaimKind
		}
	}, func(pod *cluster.Pod) {
		h := m.byPod[leaver(pod)]
		if h == nil || h.node == "" {
			return
		}
		m.dropIfLost(t, h)
	})
	clear(m.fitting)
	m.unsettled = m.unsettled || !known
	if claims || !known {
		m.followClaims(t)
	}
}

// dropIfLost takes its room from a home whose node doesn't keep it any more.
func (m *Machine) dropIfLost(t *lifecycle.Turn, h *home) {
	if why := m.lost(t, h); why != "" {
		t.Decide(step.Decision{Kind: step.HomeLost, Pod: h.pod.Name(), Node: h.node, Reason: why})
		m.nominate(t, h, "")
	}
}

// lost returns why a home's node doesn't keep its room any more, "" when it does.
func (m *Machine) lost(t *lifecycle.Turn, h *home) string {
	n := t.State.NodeByName(h.node)
	switch {
	case n == nil:
		return "the node no longer exists"
	case autoscaler.Going(n.NodeInfo):
		return "the node " + whyGoing(n)
	}
	if m.scheduler.FitsNominated(h.standIn, m.scheduler.Engine(h.standIn).Class(h.standIn)) || m.fitsWithoutPod(t, h) {
		return ""
	}
	return "the node no longer has room for it"
}

// fitsWithoutPod reports whether the stand-in would fit if its pod had left its node.
func (m *Machine) fitsWithoutPod(t *lifecycle.Turn, h *home) bool {
	if !h.holds(t.State) {
		return false
	}
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	m.takeLeaversOff(t, h)
	return m.scheduler.FitsNominated(h.standIn, m.scheduler.Engine(h.standIn).Class(h.standIn))
}

// holds reports whether the pod of a home may hold something that its replacement needs: it is on its node, or claims
// may be reserved for it still.
func (h *home) holds(s *cluster.State) bool { return h.shares() || s.NodeOf(h.pod.UID) != nil }

// takeLeaversOff takes the pod of a home off its node in a what-if, and if it shares a claim all that have to leave
// the node: when the last of them has ended, the claim loses its devices. Of those that are gone the claim may not
// say so yet.
func (m *Machine) takeLeaversOff(t *lifecycle.Turn, h *home) {
	if !h.shares() {
		m.takeOff(t, h.pod)
		return
	}
	for _, x := range m.byNode[h.from] {
		if t.State.PodOn(x.pod.UID) == nil {
			t.State.Place(x.pod, h.from)
		}
		m.takeOff(t, x.pod)
	}
}

// takeOff takes a pod off its node in a what-if. What a pod of another scheduler has taken isn't known.
func (m *Machine) takeOff(t *lifecycle.Turn, pod *cluster.Pod) {
	if e := m.scheduler.Engine(pod); e != nil {
		e.TakeOff(pod)
		return
	}
	t.State.Remove(pod.UID)
}

// whyGoing describes a node that is going, in words that follow its name.
func whyGoing(n *cluster.Node) string {
	if n.HasTaint(autoscaler.InterruptedTaint) {
		return "is about to be taken by the cloud"
	}
	return "is being removed"
}
