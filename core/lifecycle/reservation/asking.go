package reservation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file holds the pods that ask for a place: they could have others leave a node, and
// don't before plans have said whether a node that is coming, or that is bought for them,
// takes them. What must hold: a pod asks or has a place, never both; and every asking ends,
// with a place, with an answer, or with its time.

// Ask has a pod that waits, or is in flight, ask for a place until a time.
func (m *Machine) Ask(t *lifecycle.Turn, uid types.UID, until time.Time) {
	m.asks[uid] = until
	m.nominations.Reserve(t, uid, "")
}

// Asks reports whether a pod asks for a place.
func (m *Machine) Asks(uid types.UID) bool {
	_, asks := m.asks[uid]
	return asks
}

// WaitsFor reports whether a pod has a place or asks for one.
func (m *Machine) WaitsFor(uid types.UID) bool { return m.placeByPod[uid] != nil || m.Asks(uid) }

// Asking returns the pods that ask for a place, sorted.
func (m *Machine) Asking() []types.UID {
	if len(m.asks) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m.asks))
}

// AnyAsks reports whether a pod asks for a place.
func (m *Machine) AnyAsks() bool { return len(m.asks) > 0 }

// Limit has a pod that has a place wait for it until a time; then it is released, unless the
// pod is on its node.
func (m *Machine) Limit(uid types.UID, until time.Time) {
	if m.placeByPod[uid] != nil {
		m.limits[uid] = until
	}
}

// Advance releases the pods that have asked, or waited for their place, for long enough.
// Places change with inputs and plans only. TimedOut returns these pods.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.timedOut = m.timedOut[:0]
	for _, uid := range m.Asking() {
		if !t.Now.Before(m.asks[uid]) {
			m.ReleasePod(t, uid)
			m.timedOut = append(m.timedOut, uid)
		}
	}
	if len(m.limits) == 0 {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(m.limits)) {
		if t.Now.Before(m.limits[uid]) {
			continue
		}
		delete(m.limits, uid)
		if _, placed := t.State.Placed(uid); !placed {
			m.ReleasePod(t, uid)
			m.timedOut = append(m.timedOut, uid)
		}
	}
}

// TimedOut returns the pods that the last Advance has released. The list is valid until the next.
func (m *Machine) TimedOut() []types.UID { return m.timedOut }

// Join gives pods the room that a plan has found for them on a node that is coming, and
// returns them; none when the place that the node had is no more.
func (m *Machine) Join(t *lifecycle.Turn, j *autoscaler.Join, pods []types.UID) []types.UID {
	p := m.joined(t, j)
	if p == nil || len(pods) == 0 {
		return nil
	}
	for _, uid := range pods {
		if m.placeByPod[uid] != p {
			m.move(t, uid, p)
			p.Pods = append(p.Pods, uid)
		}
	}
	if !slices.Contains(m.places, p) {
		m.places = append(m.places, p)
	}
	if p.Node != "" {
		m.placeByNode[p.Node] = p
	}
	t.Decide(step.Decision{Kind: step.Reserved, Node: p.Node, Group: p.Group, Reason: fmt.Sprintf("for %d more pod(s) that fit on it", len(pods))})
	return pods
}

// joined returns the place that pods are to join; nil when there is none any more. The place
// of a node that had none isn't among the others yet.
func (m *Machine) joined(t *lifecycle.Turn, j *autoscaler.Join) *Place {
	var p *Place
	switch {
	case j.With != "":
		p = m.placeByPod[j.With]
	case j.Node != "":
		p = m.placeByNode[j.Node]
	}
	if p == nil && j.With == "" {
		p = &Place{Group: j.Group, Node: j.Node, Since: t.Now}
	}
	if p == nil || p.Group != j.Group {
		return nil
	}
	return p
}
