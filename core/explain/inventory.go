package explain

// This file lists what a cluster has, with its objects: nodes with all their resources, node groups'
// templates, pod groups, and devices. Objects must not be changed.

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// NodeRow is a node line with all that the node has.
type NodeRow struct {
	NodeLine
	Object  *v1.Node
	MaxPods int64
	// Extended are the resources besides CPU and memory of which the node has some, by name.
	Extended []NamedUse
}

// NamedUse is how much of a resource is requested, in the resource's base unit.
type NamedUse struct {
	Name v1.ResourceName
	Use
}

// NodeRows returns a row for each node, in no particular order, in O(nodes).
func (v *View) NodeRows() []NodeRow {
	removals := v.removals()
	out := make([]NodeRow, 0, v.State.Len())
	add := func(n *cluster.Node) { out = append(out, nodeRow(n, v.nodeLine(n, removals[n.Name]))) }
	v.State.Nodes(add)
	if v.Autoscaler != nil {
		v.Autoscaler.Deletions.EachOutOfState(func(info *cluster.NodeInfo) { add(cluster.DetachedNode(info)) })
	}
	return out
}

// NodeRow returns the row of one node as NodeRows has it; ok is false when there is no such node.
func (v *View) NodeRow(name string) (row NodeRow, ok bool) {
	n := v.State.NodeByName(name)
	if n == nil && v.Autoscaler != nil {
		if info := v.outOfState(name); info != nil {
			n = cluster.DetachedNode(info)
		}
	}
	if n == nil {
		return row, false
	}
	var removal *autoscaler.Removal
	if v.Autoscaler != nil {
		removal = v.Autoscaler.KeptNodes.Removal(name)
	}
	return nodeRow(n, v.nodeLine(n, removal)), true
}

// nodeRow adds all that a node has to its line.
func nodeRow(n *cluster.Node, line NodeLine) NodeRow {
	row := NodeRow{NodeLine: line, Object: n.Object, MaxPods: n.AllowedPods}
	for id, has := range n.Allocatable.All() {
		if id != cluster.CPU && id != cluster.Memory {
			row.Extended = append(row.Extended, NamedUse{id.Name(), Use{n.Requested.At(id), has}})
		}
	}
	slices.SortFunc(row.Extended, func(a, b NamedUse) int { return cmp.Compare(a.Name, b.Name) })
	return row
}

// GroupCapacity returns what an empty node of a group has, by resource name, without Requested; nil when
// it is unknown.
func (v *View) GroupCapacity(group string) (out []NamedUse) {
	t := v.State.Template(group)
	if t == nil {
		return nil
	}
	for id, has := range t.Allocatable.All() {
		out = append(out, NamedUse{id.Name(), Use{Allocatable: has}})
	}
	slices.SortFunc(out, func(a, b NamedUse) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// PodGroupLine is a pod group in one line.
type PodGroupLine struct {
	Key    cluster.PodGroupKey
	Object *schedulingv1beta1.PodGroup // nil when only its members are there
	// Placed members are on nodes, Pending in the queue, Gated are those that a plugin keeps out of it.
	Placed, Pending, Gated int
	// Queue is the stage of the group in the queue, "" when no member waits; Held is why it can't be
	// tried.
	Queue, Held string
	Attempts    int
}

// PodGroupLines returns a line for each pod group, by namespace and name.
func (v *View) PodGroupLines() (out []PodGroupLine) {
	waiting := map[cluster.PodGroupKey]PodGroupLine{}
	for _, g := range v.Queue.Groups() {
		line := PodGroupLine{Key: g.Key(), Pending: len(g.Members()) + g.Gated(), Gated: g.Gated(), Held: g.Held()}
		if item := g.Item(); item != nil {
			line.Queue, line.Attempts = item.Stage().String(), item.Attempts()
		}
		waiting[g.Key()] = line
	}
	v.State.EachObject(cluster.PodGroupKind, func(o cluster.Object) {
		key := cluster.PodGroupKey{Namespace: o.GetNamespace(), Name: o.GetName()}
		line := waiting[key]
		line.Key, line.Object = key, o.(*schedulingv1beta1.PodGroup)
		waiting[key] = line
	})
	for key, line := range waiting { // sorted below
		line.Placed = v.State.PlacedMembers(key)
		out = append(out, line)
	}
	slices.SortFunc(out, func(a, b PodGroupLine) int { return a.Key.Compare(b.Key) })
	return out
}

// Devices are the objects of dynamic resource allocation.
type Devices struct {
	Slices []*resourcev1.ResourceSlice // by name
	Claims []*resourcev1.ResourceClaim // by namespace and name
}

// Devices returns the slices and the claims that there are.
func (v *View) Devices() (out Devices) {
	v.State.EachObject(cluster.ResourceSliceKind, func(o cluster.Object) { out.Slices = append(out.Slices, o.(*resourcev1.ResourceSlice)) })
	v.State.EachObject(cluster.ResourceClaimKind, func(o cluster.Object) { out.Claims = append(out.Claims, o.(*resourcev1.ResourceClaim)) })
	slices.SortFunc(out.Slices, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Claims, func(a, b *resourcev1.ResourceClaim) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// Utilization returns how much of each resource the pods of all nodes request: CPU, memory, then extended
// resources by name; and how many nodes have no price.
func (v *View) Utilization() (uses []NamedUse, unpriced int) {
	sums := map[cluster.ResourceID]*Use{cluster.CPU: {}, cluster.Memory: {}}
	v.State.Nodes(func(n *cluster.Node) {
		if v.price(n.Group) == 0 {
			unpriced++
		}
		for id, has := range n.Allocatable.All() {
			sum := sums[id]
			if sum == nil {
				sum = &Use{}
				sums[id] = sum
			}
			sum.Allocatable += has
			sum.Requested += n.Requested.At(id)
		}
	})
	for id, sum := range sums { // sorted below
		uses = append(uses, NamedUse{id.Name(), *sum})
	}
	order := map[v1.ResourceName]int{v1.ResourceCPU: -2, v1.ResourceMemory: -1}
	slices.SortFunc(uses, func(a, b NamedUse) int {
		return cmp.Or(cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return uses, unpriced
}
