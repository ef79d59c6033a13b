package podgroups

// This file finds the groups that the API shows placed and whose condition doesn't say so: a member may be
// bound by a process that ended before it wrote the condition, and nothing decides on the group again.

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// BecomeLeader looks at all groups: the process that led before may have placed members and ended before
// the conditions were written. It takes O(groups).
func (m *Machine) BecomeLeader(t *lifecycle.Turn) {
	for _, key := range t.State.PlacedGroups() {
		m.shownPlaced(t, key)
	}
}

// changesShown looks at the groups of changes by which enough members may be shown on nodes.
func (m *Machine) changesShown(t *lifecycle.Turn, changes []cluster.Change) {
	if !m.members.Decides() {
		return
	}
	for i := range changes {
		switch c := &changes[i]; c.Op {
		case cluster.ObjectSet:
			if key, ok := c.Object.PodGroup(); ok {
				m.shownPlaced(t, key)
			}
		case cluster.PodAdded, cluster.OrphanAdded:
			if c.Pod.Group != nil {
				m.shownPlaced(t, *c.Pod.Group)
			}
		}
	}
}

// shownPlaced writes that a group is placed if enough of its members have nodes, and one of them is ours.
func (m *Machine) shownPlaced(t *lifecycle.Turn, key cluster.PodGroupKey) {
	g := t.State.PodGroup(key)
	if g == nil || t.State.PlacedMembers(key) < MinCount(g) || meta.IsStatusConditionTrue(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
		return
	}
	if x := m.said[g.UID]; x != nil && x.last[schedulingv1beta1.PodGroupInitiallyScheduled].Status == metav1.ConditionTrue {
		return
	}
	ours := false
	t.State.EachPlacedMember(key, func(p *cluster.Pod) { ours = ours || m.scheduler.Responsible(p) })
	if ours {
		m.tell(t, g, placedCondition())
	}
}
