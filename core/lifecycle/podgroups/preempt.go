package podgroups

import (
	"maps"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
)

// This file has others leave for groups. The victims are followed by core/lifecycle/preemption.

// preempts has the victims of a decision leave first: so rejected members are nominated for good, and what
// comes free at once helps the group.
func (m *Machine) preempts(t *lifecycle.Turn, object *schedulingv1beta1.PodGroup, r *scheduler.GroupRequest, d *scheduler.GroupDecision) {
	if d.Victims == nil {
		return
	}
	pods := make([]*cluster.Pod, len(r.Members))
	for i := range r.Members {
		pods[i] = r.Members[i].Pod
	}
	m.members.Preempts(t, object, pods, d.Victims, d.Weighed)
}

// NodesChanged retries the groups whose nominated nodes have changed, if all of their nominated members wait in
// vain. Core has tried those whose members have places.
func (m *Machine) NodesChanged(t *lifecycle.Turn, groups map[*queue.Group]bool) {
	for _, g := range slices.SortedFunc(maps.Keys(groups), func(a, b *queue.Group) int { return a.Key().Compare(b.Key()) }) {
		awaited := func(item *queue.Item) bool { return !m.scheduler.WaitsInVain(item.Pod(), item.Class()) }
		if g.Item().Stage() == queue.Unschedulable && !slices.ContainsFunc(g.Members(), awaited) {
			t.Queue.RetryGroup(g)
		}
	}
}

// VictimStays retries a group that waits for a victim which won't leave. It implements preemption.Groups.
func (m *Machine) VictimStays(t *lifecycle.Turn, key cluster.PodGroupKey) {
	if g := t.Queue.Group(key); g != nil {
		t.Queue.RetryGroup(g)
	}
}
