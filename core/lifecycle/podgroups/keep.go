package podgroups

// This file keeps the places of members whose binds have failed. The others of their gang may be bound
// already, and do nobody any good without them: no pod of the same priority may come into the place
// while the member backs off. It is kept as a nomination, which the API shows: a process that takes over
// keeps it, too, with the devices that the member claims. After PermitTime it is given up, the time for which
// members with nodes wait for one another.

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
)

// keptPlace is the place of a member whose bind has failed.
type keptPlace struct {
	pod   types.UID
	node  string
	until time.Time
}

// BindFailed keeps the place on a node of a member of a gang whose bind has failed there.
func (m *Machine) BindFailed(t *lifecycle.Turn, item *queue.Item, node string) {
	if key := item.Pod().Group; key != nil && isGang(t.State, *key) {
		m.keepPlace(t, item, node)
	}
}

func isGang(s *cluster.State, key cluster.PodGroupKey) bool {
	g := s.PodGroup(key)
	return g != nil && g.Spec.SchedulingPolicy.Gang != nil
}

func (m *Machine) keepPlace(t *lifecycle.Turn, item *queue.Item, node string) {
	if t.State.NodeByName(node) == nil {
		return
	}
	m.kept = append(m.kept, keptPlace{item.Pod().UID, node, t.Now.Add(PermitTime)})
	m.members.KeepPlace(t, item, node)
}

// keepShown keeps the places that a process before this one has kept for members of a group: they are nominated, and
// others of their gang have nodes. What a member is nominated to for pods that leave the node isn't such a place.
func (m *Machine) keepShown(t *lifecycle.Turn, g *queue.Group) {
	if !m.members.Decides() || t.State.PlacedMembers(g.Key()) == 0 || !isGang(t.State, g.Key()) {
		return
	}
	for _, item := range g.Members() {
		node := m.members.Shown(item)
		if node != "" && !m.scheduler.VictimTerminating(item.Pod(), m.members.Class(item), node) {
			m.keepPlace(t, item, node)
		}
	}
}

// Advance repeats writes that have failed, gives up the places whose time is over, and keeps room for gangs
// that have waited for long. A member that has a node, or was nominated elsewhere since, is passed over.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.repeatWrites(t)
	for len(m.kept) > 0 && !t.Now.Before(m.kept[0].until) {
		x := m.kept[0]
		m.kept = m.kept[1:]
		if item := t.Queue.Get(x.pod); item != nil && !m.keeps(x.pod) && t.State.NominatedTo(x.pod) == x.node {
			m.members.FreePlace(t, item)
		}
	}
	m.advanceRoom(t)
}

// keeps reports whether a place is kept for a member: another bind has failed since.
func (m *Machine) keeps(uid types.UID) bool {
	for i := range m.kept {
		if m.kept[i].pod == uid {
			return true
		}
	}
	return false
}

// NextWake returns when writes are repeated, the first place is given up, or room is to be kept or given
// back, zero for never.
func (m *Machine) NextWake() (at time.Time) {
	if len(m.kept) > 0 {
		at = m.kept[0].until
	}
	if len(m.unwritten) > 0 {
		at = lifecycle.Earliest(at, m.unwrittenSince.Add(retryAfter))
	}
	return lifecycle.Earliest(at, m.roomWake())
}
