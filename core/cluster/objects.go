package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/devices"
)

// Objects of all kinds, as they stand, and what rules look them up by. What is
// particular to a kind stands in its file. Invariants:
//
//   - every list is sorted by name, so that what rules find doesn't depend on
//     history;
//   - no list and no count is kept that is empty or zero;
//   - whoever can say something else of a node because an object changed finds
//     the node touched in the journal, after the object.

// ObjectChange is an object before and after; either may be nil.
type ObjectChange struct{ New, Old Object }

// One returns the object as it is after the change, or as it was before when it is gone.
func (c *ObjectChange) One() Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Kind returns the kind of the object that changed.
func (c *ObjectChange) Kind() ObjectKind { return KindOf(c.One()) }

func (c *ObjectChange) key() objectKey { return keyOf(c.One()) }

type objectKey struct {
	kind            ObjectKind
	namespace, name string
}

func keyOf(o Object) objectKey { return objectKey{KindOf(o), o.GetNamespace(), o.GetName()} }

// objects holds the objects and what rules look them up by.
type objects struct {
	byKey               map[objectKey]Object
	claimNodes          map[ClaimKey][]NodeIndex                      // nodes of the pods that use a claim, with repeats
	claimPods           map[ClaimKey]int                              // those that name the claim, rather than have it made for them
	freeVolumes         map[freeVolume][]*v1.PersistentVolume         // those that name no claim
	volumesByClaim      map[ClaimKey][]*v1.PersistentVolume           // by their claimRef
	claimsByVolume      map[string][]*v1.PersistentVolumeClaim        // by the volume they name
	disks               map[*v1.PersistentVolume]Disk                 // of the volumes that a CSI driver serves
	handles             map[string]int                                // volumes by Disk.Name
	inline              map[string]int                                // how often pods on nodes have a disk in their spec, by Disk.Name
	attachmentsByNode   map[string][]*storagev1.VolumeAttachment      // by the node
	attachmentsByVolume map[string][]*storagev1.VolumeAttachment      // by the volume
	budgets             map[string][]*Budget                          // by namespace
	budgetsByLabel      map[serviceKey][]*Budget                      // by Budget.firstLabel
	capacities          map[string][]*storagev1.CSIStorageCapacity    // by storage class
	deviceClasses       map[v1.ResourceName][]*resourcev1.DeviceClass // by the extended resource that they name
	demanded            map[string]int                                // the CSI drivers that DriverDemanded is true of, 1 each
	classes             int                                           // device classes
	extendedClaims      map[types.UID][]*resourcev1.ResourceClaim     // made for extended resources, by the pod
	devices             *devices.Inventory
	taintRules          bool // DeviceTaintRules count
}

func (b *objects) init(s *State) {
	b.byKey = map[objectKey]Object{}
	b.claimNodes = map[ClaimKey][]NodeIndex{}
	b.claimPods = map[ClaimKey]int{}
	b.freeVolumes = map[freeVolume][]*v1.PersistentVolume{}
	b.volumesByClaim = map[ClaimKey][]*v1.PersistentVolume{}
	b.claimsByVolume = map[string][]*v1.PersistentVolumeClaim{}
	b.disks = map[*v1.PersistentVolume]Disk{}
	b.handles = map[string]int{}
	b.inline = map[string]int{}
	b.attachmentsByNode = map[string][]*storagev1.VolumeAttachment{}
	b.attachmentsByVolume = map[string][]*storagev1.VolumeAttachment{}
	b.budgets = map[string][]*Budget{}
	b.budgetsByLabel = map[serviceKey][]*Budget{}
	b.capacities = map[string][]*storagev1.CSIStorageCapacity{}
	b.deviceClasses = map[v1.ResourceName][]*resourcev1.DeviceClass{}
	b.demanded = map[string]int{}
	b.extendedClaims = map[types.UID][]*resourcev1.ResourceClaim{}
	b.devices = devices.NewInventory(s, devices.Features(s.Schema.version))
	b.taintRules = devices.TaintRules(s.Schema.version)
}

// set replaces an object; either may be nil.
func (b *objects) set(now, old Object) {
	if old != nil {
		key := keyOf(old)
		delete(b.byKey, key)
		describe(key.kind).index(b, old, -1)
	}
	if now != nil {
		key := keyOf(now)
		b.byKey[key] = now
		describe(key.kind).index(b, now, 1)
	}
	b.devices.Settle()
}

// enlist puts an object into a list (sign is 1), or takes the one of its name out
// (-1).
func enlist[K comparable, O Object](m map[K][]O, key K, o O, sign int) {
	list := m[key]
	at, found := slices.BinarySearchFunc(list, o, func(x, y O) int {
		return cmp.Or(strings.Compare(x.GetName(), y.GetName()), strings.Compare(x.GetNamespace(), y.GetNamespace()))
	})
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

// addTo adds delta to a count; no count of zero is kept.
func addTo[K comparable](m map[K]int, key K, delta int) {
	if m[key] += delta; m[key] == 0 {
		delete(m, key)
	}
}

// SetObject adds an object or replaces what is known of it, and touches every
// node of which a local rule may now say something else. An update that says
// nothing a rule could read touches none, and is passed over by caches: only
// its version is new, which writers need.
func (s *State) SetObject(o Object) {
	c := ObjectChange{New: o, Old: s.objects.byKey[keyOf(o)]}
	switch {
	case c.Old == o:
	case c.Old != nil && sameObject(c.Old, o):
		s.record(Change{Op: ObjectRenewed, Node: NoNode, Object: &c})
	default:
		s.changeObject(c)
	}
}

// RemoveObject removes the object of that kind and name, if it is there.
func (s *State) RemoveObject(kind ObjectKind, namespace, name string) {
	if old := s.objects.byKey[objectKey{kind, namespace, name}]; old != nil {
		s.changeObject(ObjectChange{Old: old})
	}
}

// changeObject records a change, and then the nodes that it touches: those that
// either of the two objects does, and those with other devices, each once and by index.
func (s *State) changeObject(c ObjectChange) {
	var touched []NodeIndex
	for _, o := range []Object{c.Old, c.New} {
		if o != nil {
			describe(KindOf(o)).touches(s, o, func(n NodeIndex) { touched = append(touched, n) })
		}
	}
	s.record(Change{Op: ObjectSet, Node: NoNode, Object: &c})
	for _, n := range s.objects.devices.Changed() {
		touched = append(touched, NodeIndex(n))
	}
	if s.objects.devices.Turned() {
		s.touchWhere(func(n *Node) bool { return s.objects.devices.Content(int32(n.Index)) != 0 }, func(n NodeIndex) { touched = append(touched, n) })
	}
	slices.Sort(touched)
	for _, n := range slices.Compact(touched) {
		s.record(Change{Op: NodeTouched, Node: n})
	}
}

func (s *State) touchAll(touch func(NodeIndex)) {
	s.Nodes(func(n *Node) { touch(n.Index) })
}

func (s *State) touchWhere(match func(*Node) bool, touch func(NodeIndex)) {
	s.Nodes(func(n *Node) {
		if match(n) {
			touch(n.Index)
		}
	})
}

func (s *State) touchNamed(node string, touch func(NodeIndex)) {
	if n := s.NodeByName(node); n != nil {
		touch(n.Index)
	}
}

func find[O Object](s *State, kind ObjectKind, namespace, name string) O {
	o, _ := s.objects.byKey[objectKey{kind, namespace, name}].(O)
	return o
}

// Object returns an object, or nil.
func (s *State) Object(kind ObjectKind, namespace, name string) Object {
	return s.objects.byKey[objectKey{kind, namespace, name}]
}

// EachObject calls f for each object of a kind, in no particular order, in O(objects of all kinds).
func (s *State) EachObject(kind ObjectKind, f func(Object)) {
	for key, o := range s.objects.byKey {
		if key.kind == kind {
			f(o)
		}
	}
}

// Objects returns all objects, by kind, namespace and name.
func (s *State) Objects() []Object {
	return slices.SortedFunc(maps.Values(s.objects.byKey), func(a, b Object) int {
		x, y := keyOf(a), keyOf(b)
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	})
}
