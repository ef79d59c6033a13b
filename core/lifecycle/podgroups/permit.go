package podgroups

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// PluginName is the name of kube-scheduler's plugin that has members wait for one another.
const PluginName = "GangScheduling"

// PermitTime is how long a member that was given a node waits until enough others have one and are
// past all plugins, too, as in kube-scheduler. Then it loses its node.
const PermitTime = 5 * time.Minute

var _ framework.Permitter = (*Machine)(nil)

// Name implements framework.Permitter.
func (*Machine) Name() string { return PluginName }

// Permit implements framework.Permitter: a member waits until enough members of its group have got past
// everything that could refuse them, or are bound. Where no plugin could refuse a member, those that are
// to come count: each has its place.
func (m *Machine) Permit(pod *cluster.Pod, _ *cluster.Node, waiting framework.WaitingPods) framework.Permission {
	if pod.Group == nil {
		return framework.Permission{}
	}
	m.toCome = max(m.toCome-1, 0)
	object := m.state.PodGroup(*pod.Group)
	if object == nil || object.Spec.SchedulingPolicy.Gang == nil {
		return framework.Permission{}
	}
	have := m.state.PlacedMembers(*pod.Group)
	if profile := m.scheduler.Profile(pod); len(profile.Reservers) > 0 || len(profile.Permitters) > 1 {
		have -= m.toCome
	}
	if have < MinCount(object) {
		return framework.Permission{Wait: PermitTime}
	}
	waiting.EachMember(*pod.Group, func(w framework.WaitingPod) { w.Allow(PluginName) })
	return framework.Permission{}
}

// In returns profiles whose members of pod groups wait for one another.
func (m *Machine) In(profiles []*framework.Profile) []*framework.Profile {
	out := make([]*framework.Profile, len(profiles))
	for i, p := range profiles {
		own := *p
		own.Permitters = append(slices.Clone(p.Permitters), m)
		out[i] = &own
	}
	return out
}
