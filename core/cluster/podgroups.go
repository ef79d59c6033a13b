package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file holds the pod groups (KEP-4671): the PodGroup objects, and which members are on nodes.
// Members without a node are the queue's to know. Invariants:
//
//   - a member counts while it is on a node, known or not, assumed or shown;
//   - no group without such members is kept.

// PodGroupKey names a PodGroup.
type PodGroupKey struct{ Namespace, Name string }

// String returns namespace/name.
func (k PodGroupKey) String() string { return k.Namespace + "/" + k.Name }

// PodGroupNamed returns the key that String has written as namespace/name.
func PodGroupNamed(name string) PodGroupKey {
	namespace, name, _ := strings.Cut(name, "/")
	return PodGroupKey{namespace, name}
}

// Compare orders groups by namespace and name.
func (k PodGroupKey) Compare(o PodGroupKey) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// podGroupKind: a pod group says how many of its members have to be placed together, and where. The
// queue and what decides on groups read it; no local rule does. Of its status the conditions count
// that Berth writes.
var podGroupKind = kindOf[*schedulingv1beta1.PodGroup]{
	new: func() *schedulingv1beta1.PodGroup { return &schedulingv1beta1.PodGroup{} },
	reads: func(o *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
		out := &schedulingv1beta1.PodGroup{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Generation, out.Annotations = o.Generation, annotated(o.Annotations, TopologyLevelsAnnotation)
		out.Spec = schedulingv1beta1.PodGroupSpec{
			ParentCompositePodGroupName: o.Spec.ParentCompositePodGroupName,
			SchedulingPolicy:            o.Spec.SchedulingPolicy,
			SchedulingConstraints:       o.Spec.SchedulingConstraints,
			DisruptionMode:              o.Spec.DisruptionMode,
			Priority:                    o.Spec.Priority,
		}
		for _, c := range o.Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupInitiallyScheduled || c.Type == schedulingv1beta1.DisruptionTarget {
				out.Status.Conditions = append(out.Status.Conditions, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime})
			}
		}
		return out
	},
}

// PodGroup returns a pod group, or nil.
func (s *State) PodGroup(k PodGroupKey) *schedulingv1beta1.PodGroup {
	return find[*schedulingv1beta1.PodGroup](s, PodGroupKind, k.Namespace, k.Name)
}

// GoesWhole returns the group with whose other members a pod leaves its node, or not at all
// (spec.disruptionMode.all); ok is false when it goes alone.
func (s *State) GoesWhole(p *Pod) (key PodGroupKey, ok bool) {
	if p.Group == nil {
		return PodGroupKey{}, false
	}
	g := s.PodGroup(*p.Group)
	return *p.Group, g != nil && g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil
}

// GroupPriority returns the priority of a pod group: 0 when it has none.
func GroupPriority(g *schedulingv1beta1.PodGroup) int32 {
	if g.Spec.Priority != nil {
		return *g.Spec.Priority
	}
	return 0
}

// groupOf returns the group of a pod, nil when it is a member of none.
func groupOf(p *v1.Pod) *PodGroupKey {
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName != "" {
		return &PodGroupKey{p.Namespace, *g.PodGroupName}
	}
	return nil
}

// placedMembers counts the members of a group that are on nodes: by node, NoNode for those whose
// node isn't known.
type placedMembers struct {
	count int
	nodes map[NodeIndex]int
}

// countMember counts a pod that came to a node (delta is 1) or left it (-1), if it is a member of a
// group.
func (s *State) countMember(p *Pod, n NodeIndex, delta int) {
	if p.Group == nil {
		return
	}
	x := s.members[*p.Group]
	if x == nil {
		x = &placedMembers{nodes: map[NodeIndex]int{}}
		s.members[*p.Group] = x
	}
	addTo(x.nodes, n, delta)
	if x.count += delta; x.count == 0 {
		delete(s.members, *p.Group)
	}
}

// PlacedMembers returns how many members of a group are on nodes.
func (s *State) PlacedMembers(k PodGroupKey) int {
	if x := s.members[k]; x != nil {
		return x.count
	}
	return 0
}

// PlacedGroups returns the groups that have members on nodes, sorted.
func (s *State) PlacedGroups() []PodGroupKey {
	return slices.SortedFunc(maps.Keys(s.members), PodGroupKey.Compare)
}

// EachPlacedMember calls f for the members of a group that are on nodes that are known, by node. It
// costs O(pods on these nodes).
func (s *State) EachPlacedMember(k PodGroupKey, f func(*Pod)) {
	x := s.members[k]
	if x == nil {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(x.nodes)) {
		n := s.Node(i)
		if n == nil {
			continue
		}
		for _, p := range n.Pods {
			if p.Group != nil && *p.Group == k {
				f(p)
			}
		}
	}
}

// MemberNodes returns the nodes that are known of the members of a group, by index.
func (s *State) MemberNodes(k PodGroupKey) (out []NodeIndex) {
	x := s.members[k]
	if x == nil {
		return nil
	}
	for i := range x.nodes { // in any order: they are sorted
		if i != NoNode {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// MemberDomains returns the values that a label has on the nodes of the group's members, sorted.
// Nodes that aren't known, or lack the label, count for none.
func (s *State) MemberDomains(k PodGroupKey, label string) (values []string) {
	x := s.members[k]
	if x == nil {
		return nil
	}
	for i := range x.nodes { // in any order: the values are sorted
		n := s.Node(i)
		if n == nil {
			continue
		}
		if value, ok := n.Object.Labels[label]; ok && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// AnyMemberOn reports whether a member of any group is on a node.
func (s *State) AnyMemberOn(i NodeIndex) bool {
	if len(s.members) == 0 {
		return false
	}
	n := s.Node(i)
	return n != nil && slices.ContainsFunc(n.Pods, func(p *Pod) bool { return p.Group != nil })
}

// PodGroup returns the pod group that a change of an object is about; ok is false when it is about
// another kind.
func (c *ObjectChange) PodGroup() (key PodGroupKey, ok bool) {
	for _, o := range [...]Object{c.New, c.Old} {
		if g, is := o.(*schedulingv1beta1.PodGroup); is {
			return PodGroupKey{g.Namespace, g.Name}, true
		}
	}
	return PodGroupKey{}, false
}

// GroupSpecChanged reports whether a pod group came or went, or asks for something else than before.
func (c *ObjectChange) GroupSpecChanged() bool {
	now, _ := c.New.(*schedulingv1beta1.PodGroup)
	old, _ := c.Old.(*schedulingv1beta1.PodGroup)
	return now == nil || old == nil || !equality.Semantic.DeepEqual(&now.Spec, &old.Spec) ||
		now.Annotations[TopologyLevelsAnnotation] != old.Annotations[TopologyLevelsAnnotation]
}
