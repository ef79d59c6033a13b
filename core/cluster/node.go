package cluster

import (
	"hash/fnv"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// NodeIndex is the dense index of a node in one State. Indices of removed
// nodes are used again.
type NodeIndex int32

// NoNode is the index of no node.
const NoNode NodeIndex = -1

// NodeBasics is what rules ask of every node, and needn't be fetched from the object. A node of the
// state has a copy beside what its pods take, which is another cache miss less for each node.
type NodeBasics struct {
	Allocatable   Resources
	AllowedPods   int64
	Hash          uint64     // 40 bits of the name's hash: the basis of tie-breaking
	Unschedulable bool       // spec.unschedulable: it is cordoned
	Tainted       bool       // it has Taints
	hasHostname   bool       // the label kubernetes.io/hostname
	hasZone       bool       // the label topology.kubernetes.io/zone
	Taints        []v1.Taint // of the object
	Object        *v1.Node
	Images        []Image
}

// NodeInfo is what a Node object says, parsed. It is immutable.
type NodeInfo struct {
	NodeBasics
	Name     string
	Group    string   // ID of its node group, "" when in none
	Features []string // declared features, as the node lists them
	Problems []Problem
}

// ParseNode reads a Node object. The result has a Problem for each allocatable
// quantity that is negative or absurd, and for annotations that are neither true nor
// false; it is never an error, since a live
// object must not stop the scheduler.
func (s *Schema) ParseNode(n *v1.Node, group string) *NodeInfo {
	info := &NodeInfo{
		NodeBasics: NodeBasics{Object: n, Hash: nameHash(n.Name), Images: parseImages(n)},
		Name:       n.Name, Group: group, Features: n.Status.DeclaredFeatures,
	}
	info.readObject()
	for _, name := range sortedNames(n.Status.Allocatable, nil) {
		v := quantity(name, n.Status.Allocatable[name], maxNodeQuantity, "status.allocatable["+string(name)+"]", &info.Problems)
		if name == v1.ResourcePods {
			info.AllowedPods = v
			continue
		}
		info.Allocatable.Set(ResourceOf(name), v)
	}
	for _, key := range [...]string{ScaleDownDisabledAnnotation, DoNotDisruptAnnotation} {
		saysTrue(n.Annotations, key, &info.Problems)
	}
	return info
}

// readObject reads what copies with another object may have otherwise.
func (i *NodeBasics) readObject() {
	i.Taints, i.Tainted, i.Unschedulable = i.Object.Spec.Taints, len(i.Object.Spec.Taints) > 0, i.Object.Spec.Unschedulable
	_, i.hasHostname = i.Object.Labels[v1.LabelHostname]
	_, i.hasZone = i.Object.Labels[v1.LabelTopologyZone]
}

// HasLabel reports whether the node has a label, whatever its value.
func (i *NodeBasics) HasLabel(key string) bool {
	switch key {
	case v1.LabelHostname:
		return i.hasHostname
	case v1.LabelTopologyZone:
		return i.hasZone
	}
	_, ok := i.Object.Labels[key]
	return ok
}

// HasHostnameAndZone reports whether the node has both labels that spreading reads by default.
func (i *NodeBasics) HasHostnameAndZone() bool { return i.hasHostname && i.hasZone }

// sortedNames fixes the order in which names are interned. It takes an empty list for its memory.
func sortedNames(list v1.ResourceList, names []v1.ResourceName) []v1.ResourceName {
	for name := range list { // in any order: they are sorted
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x >> 24
}

// Node is a node of the state with what is placed on it. Callers only read it. Invariant: the
// NodeBasics are those of the NodeInfo (setInfo).
//
// What is read of every node that is evaluated, from the number of Pods to NodeBasics.hasZone, is
// two of the four cache lines of a Node: most of the cost of a look at many nodes is fetching them.
type Node struct {
	*NodeInfo
	Ports     []HostPort // with repeats, in no particular order
	Nominated []*Pod     // that are to come here, by UID
	Pods      []*Pod
	Requested Resources
	NonZero   [2]int64 // CPU and Memory with the defaults for pods that request none
	Index     NodeIndex
	// Terminating is how many of Pods are (Eviction.Terminating).
	Terminating int32
	NodeBasics
	// Workload is how many of Pods don't belong to the node (Pod.OfNode).
	Workload int
}

// DetachedNode returns a node that is in no state, with no pods: local rules can be asked
// about it, group rules can't. Its index is NoNode.
func DetachedNode(info *NodeInfo) *Node { return newNode(info, NoNode) }

func newNode(info *NodeInfo, i NodeIndex) *Node {
	n := &Node{Index: i}
	n.setInfo(info)
	return n
}

// setInfo replaces what the node's object says.
func (n *Node) setInfo(info *NodeInfo) { n.NodeInfo, n.NodeBasics = info, info.NodeBasics }

// Detached returns a copy of the node, with its pods, that is in no state.
func (n *Node) Detached() *Node {
	out := *n
	out.Index = NoNode
	out.Requested, out.Pods, out.Ports, out.Nominated = n.Requested.Clone(), slices.Clone(n.Pods), slices.Clone(n.Ports), nil
	return &out
}

// CopyWith makes out a copy of the node with more pods on it, that is in no state, in the memory
// that out has.
func (n *Node) CopyWith(pods []*Pod, out *Node) {
	kept, ports := out.Pods[:0], out.Ports[:0]
	*out = *n
	out.Index, out.Nominated = NoNode, nil
	out.Requested, out.Pods, out.Ports = n.Requested.Clone(), append(kept, n.Pods...), append(ports, n.Ports...)
	out.Add(pods...)
}

// Add puts pods on a detached node. Nodes of a state change with the state only.
func (n *Node) Add(pods ...*Pod) {
	if n.Index != NoNode {
		panic("cluster: Add on node " + n.Name + ", which a state has; use State.Place")
	}
	for _, p := range pods {
		n.addPod(p)
	}
}

func (n *Node) addPod(p *Pod) {
	if n.Pods == nil {
		n.Pods = make([]*Pod, 0, 8)
	}
	n.Pods = append(n.Pods, p)
	n.count(p, 1)
	n.Ports = append(n.Ports, p.Ports...)
}

// removePodAt takes the pod at pos out, moving the last one into its place.
func (n *Node) removePodAt(pos int) {
	p := n.Pods[pos]
	last := len(n.Pods) - 1
	n.Pods[pos] = n.Pods[last]
	n.Pods[last] = nil
	n.Pods = n.Pods[:last]
	n.count(p, -1)
	for _, port := range p.Ports {
		i := slices.Index(n.Ports, port)
		n.Ports[i] = n.Ports[len(n.Ports)-1]
		n.Ports = n.Ports[:len(n.Ports)-1]
	}
}

// restorePodAt is the inverse of removePodAt.
func (n *Node) restorePodAt(p *Pod, pos int) {
	n.Pods = append(n.Pods, p)
	last := len(n.Pods) - 1
	n.Pods[last], n.Pods[pos] = n.Pods[pos], n.Pods[last]
	n.count(p, 1)
	n.Ports = append(n.Ports, p.Ports...)
}

func (n *Node) count(p *Pod, sign int64) {
	n.Requested.Add(&p.Request, sign)
	n.NonZero[0] += sign * p.NonZero[0]
	n.NonZero[1] += sign * p.NonZero[1]
	if !p.OfNode {
		n.Workload += int(sign)
	}
	if p.Eviction.Terminating {
		n.Terminating += int32(sign)
	}
}

// Ready reports whether the node's Ready condition is True.
func (i *NodeBasics) Ready() bool {
	for _, c := range i.Object.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// HasTaint reports whether the node carries a taint with this key.
func (i *NodeBasics) HasTaint(key string) bool {
	return slices.ContainsFunc(i.Taints, func(t v1.Taint) bool { return t.Key == key })
}

// Renamed returns a copy for a virtual node of another name. Its hostname label
// and its rank follow the name.
func (i *NodeInfo) Renamed(name string) *NodeInfo {
	object := *i.Object
	object.Name, object.UID = name, types.UID(name)
	object.Labels = maps.Clone(object.Labels)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[v1.LabelHostname] = name
	out := i.With(&object)
	out.Name, out.Hash = name, nameHash(name)
	return out
}

// With returns a copy with another object, which differs in labels, taints, conditions, and whether
// it is cordoned only.
func (i *NodeInfo) With(object *v1.Node) *NodeInfo {
	out := *i
	out.Object = object
	out.readObject()
	return &out
}

// WithTaint returns a copy whose object has a taint in place of any with the
// same key.
func (i *NodeInfo) WithTaint(t v1.Taint) *NodeInfo {
	object := *i.Object
	object.Spec.Taints = append(TaintsWithout(object.Spec.Taints, t.Key), t)
	return i.With(&object)
}

// WithoutTaint returns a copy whose object has no taint with this key.
func (i *NodeInfo) WithoutTaint(key string) *NodeInfo {
	object := *i.Object
	object.Spec.Taints = TaintsWithout(object.Spec.Taints, key)
	return i.With(&object)
}

// TaintsWithout returns a copy of taints that has none with this key.
func TaintsWithout(taints []v1.Taint, key string) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t v1.Taint) bool { return t.Key == key })
}

// SameButTaint reports whether two versions of a node differ in nothing that is read but taints
// with this key. It doesn't allocate.
func (i *NodeInfo) SameButTaint(o *NodeInfo, key string) bool {
	return i.Group == o.Group && sameBy(fieldsBesideTaints, i, o) &&
		sameTaintsBut(i.Object.Spec.Taints, o.Object.Spec.Taints, func(t *v1.Taint) bool { return t.Key == key })
}

// SameTemplate reports whether two templates make the same nodes. Unlike that of a node, the
// capacity of a template is read: similar groups have the same.
func (i *NodeInfo) SameTemplate(o *NodeInfo) bool {
	return i.Object == o.Object || sameNode(i, o) && maps.EqualFunc(i.Object.Status.Capacity, o.Object.Status.Capacity, resource.Quantity.Equal)
}

// TrimTemplate is Trim for a template.
func TrimTemplate(t *v1.Node) *v1.Node {
	out := trimNode(t)
	out.Status.Capacity = t.Status.Capacity
	return out
}
