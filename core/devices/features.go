package devices

import (
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berthproject/berth/core/compat"
)

// Features returns what the allocator of a version's kube-scheduler does with its gates as they are by
// default (AllocatorFeatures of its DynamicResources plugin): the same for all versions so far.
func Features(compat.Version) structured.Features {
	return structured.Features{AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true}
}

// TaintRules reports whether DeviceTaintRules count with the gates of a version as they are by default.
func TaintRules(v compat.Version) bool { return v >= compat.V37 }
