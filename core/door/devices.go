package door

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file bounds what is read of devices: the allocator's work grows with each of these. The bounds
// are the API's own, so an object that is refused hasn't passed an API server.

// MaxExpression is of a CEL expression that selects devices, in bytes.
const MaxExpression = resourcev1.CELSelectorExpressionMaxLength

// devices refuses an object of dynamic resource allocation that has too much of something.
func (a *admission) devices(o cluster.Object) {
	switch o := o.(type) {
	case *resourcev1.ResourceSlice:
		a.slice(o)
	case *resourcev1.ResourceClaim:
		a.claim(o)
	case *resourcev1.DeviceClass:
		a.selectors("device class "+o.Name, o.Spec.Selectors)
	}
}

// most refuses an object with more of something than the bound.
func (a *admission) most(object, field string, size int, unit string, bound int) {
	if a.ok && size > bound {
		a.refuse(object, beyond(field, size, unit, bound, "it is ignored"))
	}
}

func (a *admission) slice(o *resourcev1.ResourceSlice) {
	object := "resource slice " + o.Name
	a.most(object, "its pool's name", len(o.Spec.Pool.Name), "bytes", MaxName)
	a.most(object, "its driver's name", len(o.Spec.Driver), "bytes", MaxName)
	a.most(object, "it", len(o.Spec.Devices), "devices", resourcev1.ResourceSliceMaxDevices)
	a.most(object, "it", len(o.Spec.SharedCounters), "counter sets", resourcev1.ResourceSliceMaxCounterSets)
	for i := range o.Spec.SharedCounters {
		a.most(object, "one of its counter sets", len(o.Spec.SharedCounters[i].Counters), "counters", resourcev1.ResourceSliceMaxCountersPerCounterSet)
	}
	for i := range o.Spec.Devices {
		d := &o.Spec.Devices[i]
		a.most(object, "the name of one of its devices", len(d.Name), "bytes", MaxName)
		a.most(object, "one of its devices", len(d.Attributes)+len(d.Capacity), "attributes and capacities", resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
		a.most(object, "one of its devices", len(d.Taints), "taints", resourcev1.DeviceTaintsMaxLength)
		a.most(object, "one of its devices", len(d.ConsumesCounters), "consumed counter sets", resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice)
		a.most(object, "one of its devices", len(d.BindingConditions), "binding conditions", resourcev1.BindingConditionsMaxSize)
	}
}

func (a *admission) claim(o *resourcev1.ResourceClaim) {
	object := "resource claim " + o.Namespace + "/" + o.Name
	a.most(object, "it", len(o.Spec.Devices.Requests), "requests", resourcev1.DeviceRequestsMaxSize)
	a.most(object, "it", len(o.Spec.Devices.Constraints), "constraints", resourcev1.DeviceConstraintsMaxSize)
	a.most(object, "it", len(o.Status.ReservedFor), "reservations", resourcev1.ResourceClaimReservedForMaxSize)
	if o.Status.Allocation != nil {
		a.most(object, "it", len(o.Status.Allocation.Devices.Results), "allocated devices", resourcev1.AllocationResultsMaxSize)
	}
	for i := range o.Spec.Devices.Requests {
		r := &o.Spec.Devices.Requests[i]
		a.most(object, "one of its requests", len(r.FirstAvailable), "alternatives", resourcev1.FirstAvailableDeviceRequestMaxSize)
		if r.Exactly != nil {
			a.selectors(object, r.Exactly.Selectors)
		}
		for k := range r.FirstAvailable {
			a.selectors(object, r.FirstAvailable[k].Selectors)
		}
	}
}

func (a *admission) selectors(object string, list []resourcev1.DeviceSelector) {
	a.most(object, "it", len(list), "selectors of one request", resourcev1.DeviceSelectorsMaxSize)
	for i := range list {
		if list[i].CEL != nil {
			a.most(object, "one of its expressions", len(list[i].CEL.Expression), "bytes", MaxExpression)
		}
	}
}
