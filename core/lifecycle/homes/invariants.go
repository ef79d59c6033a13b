package homes

import (
	"fmt"
	"maps"

	"github.com/berthproject/berth/core/cluster"
)

// Invariants says what doesn't hold of the machine's own fields.
func (m *Machine) Invariants() (out []string) {
	owned := 0
	for o, list := range m.byOwner { // in any order: none of it holds but by a defect
		last := 0
		for _, h := range list {
			owned++
			if h.owner != o || m.byPod[h.pod.UID] != h || h.number <= last {
				out = append(out, fmt.Sprintf("the home of %s is the %d-th, after the %d-th, among those of %s", h.pod.Name(), h.number, last, o))
			}
			last = h.number
		}
	}
	roomless := 0
	for _, h := range inOrder(maps.Values(m.byPod)) {
		if h.node == "" {
			roomless++
		}
		if (h.node == "") != (m.roomless[h.pod.UID] == h) {
			out = append(out, fmt.Sprintf("the home of %s is on %q, and is listed among those without room: %t", h.pod.Name(), h.node, h.node != ""))
		}
		if h.evicted && h.left.IsZero() || !h.left.IsZero() && h.until.Before(h.left) {
			out = append(out, fmt.Sprintf("the pod %s has left at %s, evicted: %t, and its home ends at %s", h.pod.Name(), h.left, h.evicted, h.until))
		}
	}
	if owned != len(m.byPod) || roomless != len(m.roomless) {
		out = append(out, fmt.Sprintf("there are %d homes, %d without room; listed are %d by their owners and %d", len(m.byPod), roomless, owned, len(m.roomless)))
	}
	return out
}

// InvariantsIn says what doesn't hold between the machine and the state: the stand-in of a
// home is nominated where the home is, and nowhere else.
func (m *Machine) InvariantsIn(s *cluster.State) (out []string) {
	for _, h := range inOrder(maps.Values(m.byPod)) {
		if h.queued && h.node != "" {
			out = append(out, fmt.Sprintf("the home of %s is on %q, and its stand-in is queued", h.pod.Name(), h.node))
		}
		if at := s.NominatedTo(h.standIn.UID); at != h.node && !h.queued {
			out = append(out, fmt.Sprintf("the home of %s is on %q, and the state says %q", h.pod.Name(), h.node, at))
		}
	}
	return out
}

// Knows reports whether a stand-in keeps a home.
func (m *Machine) Knows(standIn *cluster.Pod) bool { return m.byPod[leaver(standIn)] != nil }
