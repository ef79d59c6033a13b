package preemption

import (
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// This file has victims leave for a pod group. Of the group itself nothing is followed here: no group is held
// for its victims.

// Groups is what preemption needs of pod groups.
type Groups interface {
	// Disrupted records that all members of a group leave their nodes for others of a higher priority.
	Disrupted(t *lifecycle.Turn, group cluster.PodGroupKey, message string)
	// VictimStays records that a pod stays that had to leave for a group: that one is tried again.
	VictimStays(t *lifecycle.Turn, group cluster.PodGroupKey)
}

// PreemptForGroup has victims leave their nodes for a pod group, whose members the decision has
// nominated. Nobody is held for that: the group waits for its classes, and doesn't preempt again while
// victims are on their way.
func (m *Machine) PreemptForGroup(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, members []*cluster.Pod, v *framework.Victims, w *weighing.Result) {
	NoteGroup(t, g, len(members), v, w)
	for _, p := range members {
		if n := t.State.NodeByName(t.State.NominatedTo(p.UID)); n != nil {
			m.withdrawLessImportant(t, n, p.Priority)
		}
	}
	m.leave(t, v, step.PodName{UID: g.UID, Namespace: g.Namespace, Name: g.Name, PodGroup: true}, members[0].Object.Spec.SchedulerName)
}

// NoteGroup is Note for a pod group.
func NoteGroup(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, members int, v *framework.Victims, w *weighing.Result) {
	t.Decide(preempts(t.State, v, step.Decision{PodGroup: g.Namespace + "/" + g.Name, Members: members, Weighed: w}))
}

// disruptions returns how many units of pod groups victims are, as kube-scheduler counts them: a group
// whose members go together is one unit, and so is each member that goes singly, whether or not its
// PodGroup exists.
func disruptions(s *cluster.State, v *framework.Victims) (n int) {
	var counted []cluster.PodGroupKey
	for _, p := range v.Pods {
		if p.Group == nil {
			continue
		}
		if key, whole := s.GoesWhole(p); whole {
			if slices.Contains(counted, key) {
				continue
			}
			counted = append(counted, key)
		}
		n++
	}
	return n
}

// kind is what kube-scheduler calls a preemptor.
func kind(by step.PodName) string {
	if by.PodGroup {
		return "podgroup"
	}
	return "pod"
}

// message is that of a victim's condition.
func message(scheduler string, by step.PodName) string {
	return scheduler + ": preempting to accommodate a higher priority " + kind(by)
}
