package cluster

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Object is an API object that rules read as it stands: a Namespace,
// PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver,
// CSIStorageCapacity, VolumeAttachment or PodDisruptionBudget.
type Object = metav1.Object

// ObjectKind tells those kinds apart.
type ObjectKind uint8

// The kinds of Object.
const (
	NoObject ObjectKind = iota
	NamespaceKind
	ClaimKind
	VolumeKind
	StorageClassKind
	CSINodeKind
	CSIDriverKind
	StorageCapacityKind
	AttachmentKind
	BudgetKind
)

// KindOf returns the kind of an object; NoObject when rules don't read it.
func KindOf(o Object) ObjectKind {
	switch o.(type) {
	case *v1.Namespace:
		return NamespaceKind
	case *v1.PersistentVolumeClaim:
		return ClaimKind
	case *v1.PersistentVolume:
		return VolumeKind
	case *storagev1.StorageClass:
		return StorageClassKind
	case *storagev1.CSINode:
		return CSINodeKind
	case *storagev1.CSIDriver:
		return CSIDriverKind
	case *storagev1.CSIStorageCapacity:
		return StorageCapacityKind
	case *storagev1.VolumeAttachment:
		return AttachmentKind
	case *policyv1.PodDisruptionBudget:
		return BudgetKind
	}
	return NoObject
}

// NewObject returns an empty object of a kind, nil for NoObject and for kinds
// that don't exist.
func NewObject(kind ObjectKind) Object {
	switch kind {
	case NamespaceKind:
		return &v1.Namespace{}
	case ClaimKind:
		return &v1.PersistentVolumeClaim{}
	case VolumeKind:
		return &v1.PersistentVolume{}
	case StorageClassKind:
		return &storagev1.StorageClass{}
	case CSINodeKind:
		return &storagev1.CSINode{}
	case CSIDriverKind:
		return &storagev1.CSIDriver{}
	case StorageCapacityKind:
		return &storagev1.CSIStorageCapacity{}
	case AttachmentKind:
		return &storagev1.VolumeAttachment{}
	case BudgetKind:
		return &policyv1.PodDisruptionBudget{}
	}
	return nil
}

// ObjectChange is an object before and after; either may be nil.
type ObjectChange struct{ New, Old Object }

// ClaimRef is a persistent volume claim that a pod's volume uses.
type ClaimRef struct {
	Name      string // in the pod's namespace
	Ephemeral bool   // made for the pod from a template
}

func claimRefs(p *v1.Pod) []ClaimRef {
	var out []ClaimRef
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, ClaimRef{Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out = append(out, ClaimRef{Name: p.Name + "-" + v.Name, Ephemeral: true})
		}
	}
	return out
}

// ClaimKey names a claim.
type ClaimKey struct{ Namespace, Name string }

// volumePlace is where an unclaimed volume is looked for.
type volumePlace struct {
	class string
	host  string // that the volume's node affinity demands, "" for none
}

type objectKey struct {
	kind            ObjectKind
	namespace, name string
}

func keyOf(o Object) objectKey { return objectKey{KindOf(o), o.GetNamespace(), o.GetName()} }

// objects holds the objects and what rules look them up by.
type objects struct {
	byKey            map[objectKey]Object
	namespaceChanges uint64
	users            map[ClaimKey][]NodeIndex               // nodes of the pods that use a claim, with repeats
	shared           map[ClaimKey]int                       // those that name the claim, rather than have it made for them
	free             map[volumePlace][]*v1.PersistentVolume // those that name no claim
	claimed          map[ClaimKey][]*v1.PersistentVolume    // by their claimRef
	bound            map[string][]*v1.PersistentVolumeClaim // by the volume they name
	handles          map[string]int                         // volumes with a driver and handle
	attached         map[string][]*storagev1.VolumeAttachment
	attaches         map[string][]*storagev1.VolumeAttachment // by the volume
	budgets          map[string][]*Budget                     // by namespace
	capacities       map[string][]*storagev1.CSIStorageCapacity
}

func (b *objects) init() {
	b.byKey = map[objectKey]Object{}
	b.users = map[ClaimKey][]NodeIndex{}
	b.shared = map[ClaimKey]int{}
	b.free = map[volumePlace][]*v1.PersistentVolume{}
	b.claimed = map[ClaimKey][]*v1.PersistentVolume{}
	b.bound = map[string][]*v1.PersistentVolumeClaim{}
	b.handles = map[string]int{}
	b.attached = map[string][]*storagev1.VolumeAttachment{}
	b.attaches = map[string][]*storagev1.VolumeAttachment{}
	b.budgets = map[string][]*Budget{}
	b.capacities = map[string][]*storagev1.CSIStorageCapacity{}
}

func (b *objects) set(now, old Object) {
	if old != nil {
		delete(b.byKey, keyOf(old))
		b.index(old, -1)
	}
	if now != nil {
		b.byKey[keyOf(now)] = now
		b.index(now, 1)
	}
}

// index books an object into, or out of, what it is looked up by. The lists are
// sorted by name, so that what rules find doesn't depend on history.
func (b *objects) index(o Object, sign int) {
	switch o := o.(type) {
	case *v1.Namespace:
		b.namespaceChanges++
	case *v1.PersistentVolumeClaim:
		if o.Spec.VolumeName != "" {
			enlist(b.bound, o.Spec.VolumeName, o, sign)
		}
	case *v1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil {
			enlist(b.claimed, ClaimKey{ref.Namespace, ref.Name}, o, sign)
		} else {
			enlist(b.free, volumePlace{VolumeClass(o), pinnedHost(o)}, o, sign)
		}
		if csi := o.Spec.CSI; csi != nil {
			count(b.handles, csi.Driver+"/"+csi.VolumeHandle, sign)
		}
	case *storagev1.VolumeAttachment:
		enlist(b.attached, o.Spec.NodeName, o, sign)
		if volume := o.Spec.Source.PersistentVolumeName; volume != nil {
			enlist(b.attaches, *volume, o, sign)
		}
	case *storagev1.CSIStorageCapacity:
		enlist(b.capacities, o.StorageClassName, o, sign)
	case *policyv1.PodDisruptionBudget:
		enlist(b.budgets, o.Namespace, parseBudget(o), sign)
	}
}

func enlist[K comparable, O Object](m map[K][]O, key K, o O, sign int) {
	order := func(x, y O) int {
		return cmp.Or(strings.Compare(x.GetName(), y.GetName()), strings.Compare(x.GetNamespace(), y.GetNamespace()))
	}
	list := m[key]
	at, found := slices.BinarySearchFunc(list, o, order)
	switch {
	case sign > 0:
		m[key] = slices.Insert(list, at, o)
	case found:
		if list = slices.Delete(list, at, at+1); len(list) == 0 {
			delete(m, key)
			return
		}
		m[key] = list
	}
}

func count[K comparable](m map[K]int, key K, sign int) {
	if m[key] += sign; m[key] == 0 {
		delete(m, key)
	}
}

func (b *objects) podCame(n NodeIndex, p *Pod) {
	for _, c := range p.Claims {
		key := ClaimKey{p.Object.Namespace, c.Name}
		b.users[key] = append(b.users[key], n)
		if !c.Ephemeral {
			b.shared[key]++
		}
	}
}

func (b *objects) podWent(n NodeIndex, p *Pod) {
	for _, c := range p.Claims {
		key := ClaimKey{p.Object.Namespace, c.Name}
		list := b.users[key]
		list[slices.Index(list, n)] = list[len(list)-1]
		if b.users[key] = list[:len(list)-1]; len(list) == 1 {
			delete(b.users, key)
		}
		if !c.Ephemeral {
			count(b.shared, key, -1)
		}
	}
}

// SetObject adds an object or replaces what is known of it, and touches every
// node of which a local rule may now say something else.
func (s *State) SetObject(o Object) {
	s.changeObject(ObjectChange{New: o, Old: s.objects.byKey[keyOf(o)]})
}

// RemoveObject removes the object of that kind and name, if it is there.
func (s *State) RemoveObject(kind ObjectKind, namespace, name string) {
	if old := s.objects.byKey[objectKey{kind, namespace, name}]; old != nil {
		s.changeObject(ObjectChange{Old: old})
	}
}

func (s *State) changeObject(c ObjectChange) {
	if c.Old == c.New {
		return
	}
	touched := map[NodeIndex]bool{}
	s.concerns(c.Old, touched)
	s.concerns(c.New, touched)
	s.record(Change{Op: ObjectSet, Node: NoNode, Object: &c})
	nodes := make([]NodeIndex, 0, len(touched))
	for n := range touched {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		s.record(Change{Op: NodeTouched, Node: n})
	}
}

// concerns adds the nodes whose local verdicts read the object.
func (s *State) concerns(o Object, out map[NodeIndex]bool) {
	add := func(list []NodeIndex) {
		for _, n := range list {
			out[n] = true
		}
	}
	where := func(match func(*Node) bool) {
		s.Nodes(func(n *Node) {
			if match(n) {
				out[n.Index] = true
			}
		})
	}
	switch o := o.(type) {
	case *v1.PersistentVolumeClaim:
		add(s.objects.users[ClaimKey{o.Namespace, o.Name}])
	case *v1.PersistentVolume:
		for _, c := range s.objects.bound[o.Name] {
			add(s.objects.users[ClaimKey{c.Namespace, c.Name}])
		}
		for _, a := range s.objects.attaches[o.Name] {
			if n := s.NodeByName(a.Spec.NodeName); n != nil {
				out[n.Index] = true
			}
		}
		if !s.claimable(o) {
			return // bound: what it admits is in the signature of those who use it
		}
		if host := pinnedHost(o); host != "" {
			t := s.Topology(v1.LabelHostname)
			if d, ok := t.ids[host]; ok {
				add(t.members[d])
			}
			return
		}
		// The affinity of an in-tree volume may be translated for a node.
		affinity := ParseVolumeAffinity(o)
		where(func(n *Node) bool { return o.Spec.CSI == nil || affinity.Admits(n.NodeInfo) })
	case *storagev1.CSIStorageCapacity:
		selector := selectorOf(o.NodeTopology)
		where(func(n *Node) bool { return selector.Matches(labels.Set(n.Object.Labels)) })
	case *storagev1.CSINode:
		if n := s.NodeByName(o.Name); n != nil {
			out[n.Index] = true
		}
	case *storagev1.VolumeAttachment:
		if n := s.NodeByName(o.Spec.NodeName); n != nil {
			out[n.Index] = true
		}
	case *storagev1.StorageClass, *storagev1.CSIDriver:
		where(func(*Node) bool { return true })
	}
}

// claimable tells whether a claim that waits for its consumer could be bound to
// the volume: it names no claim, or one that isn't bound yet.
func (s *State) claimable(pv *v1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return true
	}
	c := s.Claim(ref.Namespace, ref.Name)
	return c != nil && !ClaimBound(c)
}

// pinnedHost returns the host name that a volume's node affinity demands, ""
// for none.
func pinnedHost(pv *v1.PersistentVolume) string {
	a := pv.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, r := range a.Required.NodeSelectorTerms[0].MatchExpressions {
		if r.Key == v1.LabelHostname && r.Operator == v1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

func find[O Object](s *State, kind ObjectKind, namespace, name string) O {
	o, _ := s.objects.byKey[objectKey{kind, namespace, name}].(O)
	return o
}

// Object returns an object, or nil.
func (s *State) Object(kind ObjectKind, namespace, name string) Object {
	return s.objects.byKey[objectKey{kind, namespace, name}]
}

// Claim returns a persistent volume claim, or nil.
func (s *State) Claim(namespace, name string) *v1.PersistentVolumeClaim {
	return find[*v1.PersistentVolumeClaim](s, ClaimKind, namespace, name)
}

// Volume returns a persistent volume, or nil.
func (s *State) Volume(name string) *v1.PersistentVolume {
	return find[*v1.PersistentVolume](s, VolumeKind, "", name)
}

// StorageClass returns a storage class, or nil.
func (s *State) StorageClass(name string) *storagev1.StorageClass {
	return find[*storagev1.StorageClass](s, StorageClassKind, "", name)
}

// CSINode returns what CSI drivers say of a node, or nil.
func (s *State) CSINode(node string) *storagev1.CSINode {
	return find[*storagev1.CSINode](s, CSINodeKind, "", node)
}

// CSIDriver returns a CSI driver, or nil.
func (s *State) CSIDriver(name string) *storagev1.CSIDriver {
	return find[*storagev1.CSIDriver](s, CSIDriverKind, "", name)
}

// NamespaceLabels returns the labels of a namespace, nil when it isn't known.
func (s *State) NamespaceLabels(name string) labels.Set {
	if n := find[*v1.Namespace](s, NamespaceKind, "", name); n != nil {
		return n.Labels
	}
	return nil
}

// Namespaces returns the known namespaces, by name.
func (s *State) Namespaces() []*v1.Namespace {
	var out []*v1.Namespace
	for _, o := range s.objects.byKey { // sorted below
		if n, ok := o.(*v1.Namespace); ok {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// FreeVolumes returns the volumes of a storage class that name no claim, in two
// lists, each by name: those that any node may have, and those that are pinned
// to the node's host name. Others don't admit the node. The lists are valid
// until the next change.
func (s *State) FreeVolumes(class string, n *NodeInfo) (anywhere, here []*v1.PersistentVolume) {
	anywhere = s.objects.free[volumePlace{class, ""}]
	if host := n.Object.Labels[v1.LabelHostname]; host != "" {
		here = s.objects.free[volumePlace{class, host}]
	}
	return anywhere, here
}

// VolumesClaimed returns the volumes whose claimRef names the claim, by name.
func (s *State) VolumesClaimed(c ClaimKey) []*v1.PersistentVolume { return s.objects.claimed[c] }

// ClaimUsers returns how many pods on nodes name the claim; those that it was
// made for don't count.
func (s *State) ClaimUsers(c ClaimKey) int { return s.objects.shared[c] }

// ClaimAwaited tells whether a pod that is nominated to a node names the claim.
func (s *State) ClaimAwaited(c ClaimKey) bool { return s.nominated.claims[c] > 0 }

// ClaimInUse tells whether some pod on a node, or nominated to one, uses the
// claim, or it was made for one.
func (s *State) ClaimInUse(c ClaimKey) bool {
	return len(s.objects.users[c]) > 0 || s.nominated.users[c] > 0
}

// Attachments returns the volume attachments to a node, by name.
func (s *State) Attachments(node string) []*storagev1.VolumeAttachment {
	return s.objects.attached[node]
}

// ClaimsNaming returns the claims that name the volume, by name.
func (s *State) ClaimsNaming(volume string) []*v1.PersistentVolumeClaim {
	return s.objects.bound[volume]
}

// VolumeShared tells whether several claims may lead to the volume's disk: they
// name it, or there is another volume with its driver and handle.
func (s *State) VolumeShared(pv *v1.PersistentVolume) bool {
	if len(s.objects.bound[pv.Name]) > 1 {
		return true
	}
	csi := pv.Spec.CSI
	return csi != nil && s.objects.handles[csi.Driver+"/"+csi.VolumeHandle] > 1
}

// Capacities returns what storage is left for a class, by name.
func (s *State) Capacities(class string) []*storagev1.CSIStorageCapacity {
	return s.objects.capacities[class]
}

// Objects returns all objects, by kind, namespace and name.
func (s *State) Objects() []Object {
	out := make([]Object, 0, len(s.objects.byKey))
	for _, o := range s.objects.byKey {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Object) int {
		x, y := keyOf(a), keyOf(b)
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	})
	return out
}
