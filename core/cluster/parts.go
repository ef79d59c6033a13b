package cluster

import storagev1 "k8s.io/api/storage/v1"

// NodeParts are what a node has beside its Node object, and gets some time after it is ready. Pods may
// be kept off nodes that lack it.
type NodeParts uint8

const (
	// CSIDrivers are those that have registered with a node: its CSINode names them.
	CSIDrivers NodeParts = 1 << iota
	// Devices are those that drivers publish of a node, in its ResourceSlices.
	Devices
)

// Has reports whether all of other are among the parts.
func (p NodeParts) Has(other NodeParts) bool { return p&other == other }

// This is which CSI drivers the nodes of groups have. Invariant: it is what a walk over the nodes and
// their CSINodes would find; apply and undo keep it so.

// groupDriver is a CSI driver on nodes of a group.
type groupDriver struct{ group, driver string }

// groupDrivers counts the nodes of each group on which a driver is installed, by how many volumes it
// attaches there; anyNumber where the CSINode says nothing. Counts of zero aren't kept.
type groupDrivers map[groupDriver]map[int32]int

// anyNumber of volumes is attached by a driver without a limit.
const anyNumber = -1

// count adds the drivers of a CSINode, which may be nil, to those of a group, or with -1 takes them away.
func (d groupDrivers) count(group string, csi *storagev1.CSINode, times int) {
	if csi == nil || group == "" {
		return
	}
	for i := range csi.Spec.Drivers {
		x := &csi.Spec.Drivers[i]
		key, limit := groupDriver{group, x.Name}, int32(anyNumber)
		if x.Allocatable != nil && x.Allocatable.Count != nil {
			limit = *x.Allocatable.Count
		}
		if d[key] == nil {
			d[key] = map[int32]int{}
		}
		if addTo(d[key], limit, times); len(d[key]) == 0 {
			delete(d, key)
		}
	}
}

// countCSINode counts the drivers of a node whose CSINode is another.
func (s *State) countCSINode(now, old Object) {
	for _, x := range [...]struct {
		o     Object
		times int
	}{{old, -1}, {now, 1}} {
		csi, _ := x.o.(*storagev1.CSINode)
		if csi == nil {
			continue
		}
		if n := s.NodeByName(csi.Name); n != nil {
			s.drivers.count(n.Group, csi, x.times)
		}
	}
}

// GroupDriver returns a CSI driver as the nodes of a group have it; ok is false when none has it. Of
// several limits it has the lowest.
func (s *State) GroupDriver(group, driver string) (d storagev1.CSINodeDriver, ok bool) {
	d = storagev1.CSINodeDriver{Name: driver}
	limits := s.drivers[groupDriver{group, driver}]
	lowest := int32(anyNumber)
	for limit := range limits { // in any order
		if limit != anyNumber && (lowest == anyNumber || limit < lowest) {
			lowest = limit
		}
	}
	if lowest != anyNumber {
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &lowest}
	}
	return d, len(limits) > 0
}
