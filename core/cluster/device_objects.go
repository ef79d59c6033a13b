package cluster

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// deviceClassKind: a device class may name an extended resource that its devices provide where a
// node's allocatable lacks that resource (KEP-5004). A local rule may read any class, for a pod that
// requests its resource.
var deviceClassKind = kindOf[*resourcev1.DeviceClass]{
	new: func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} },
	reads: func(o *resourcev1.DeviceClass) *resourcev1.DeviceClass {
		return &resourcev1.DeviceClass{ObjectMeta: trimMeta(&o.ObjectMeta),
			Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: o.Spec.ExtendedResourceName}}
	},
	lookUp: func(b *objects, o *resourcev1.DeviceClass, sign int) {
		if name := o.Spec.ExtendedResourceName; name != nil {
			enlist(b.deviceClasses, v1.ResourceName(*name), o, sign)
		}
	},
	everywhere: true,
}

// DeviceClassOf returns the device class that backs an extended resource: the one of which the
// resource has the implicit name (deviceclass.resource.kubernetes.io/CLASS), or the first by name of
// those that name the resource. It returns nil when there is none. It doesn't allocate.
func (s *State) DeviceClassOf(resource v1.ResourceName) *resourcev1.DeviceClass {
	if class, ok := strings.CutPrefix(string(resource), resourcev1.ResourceDeviceClassPrefix); ok {
		return find[*resourcev1.DeviceClass](s, DeviceClassKind, "", class)
	}
	if list := s.objects.deviceClasses[resource]; len(list) > 0 {
		return list[0]
	}
	return nil
}
