package live

import (
	"unique"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
)

// transformFor returns what drops from an object what isn't needed, before the
// cache keeps it: so 50,000 pods fit into memory. Of most kinds that leaves what
// Berth reads (cluster.Trim). More is kept of what Berth hands on:
//
//   - claims and volumes are written back, whole;
//   - what a device gets as its configuration is in the resource claim and in the device class;
//   - a provider tells by a node's annotations which group it is of;
//   - extenders are sent pods and nodes, and may read anything there but for what
//     is large and says nothing about where a pod may run.
func transformFor(extenders bool) cache.TransformFunc {
	sharer := newSharer()
	return func(obj any) (any, error) {
		door.Object(obj)
		switch o := obj.(type) {
		case *v1.PersistentVolumeClaim, *v1.PersistentVolume, *resourcev1.ResourceClaim, *resourcev1.DeviceClass:
			o.(metav1.Object).SetManagedFields(nil)
			return o, nil
		case *v1.Node:
			o = slimNode(o)
			sharer.shareNode(o)
			return o, nil
		case *v1.Pod:
			if extenders {
				o = slimPod(o)
			} else {
				o = cluster.Trim(o)
			}
			sharer.share(o)
			return o, nil
		}
		if o, ok := obj.(metav1.Object); ok {
			return cluster.Trim(o), nil
		}
		return obj, nil
	}
}

// withoutPodGroups returns a transform after which no pod is a member of a pod group.
func withoutPodGroups(then cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		if p, ok := obj.(*v1.Pod); ok {
			p.Spec.SchedulingGroup = nil
		}
		return then(obj)
	}
}

// slimNode keeps nearly all of a node: there are few. The names of images are
// shared, because most nodes have the same.
func slimNode(o *v1.Node) *v1.Node {
	o.SetManagedFields(nil)
	o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil
	for i := range o.Status.Images {
		for k, name := range o.Status.Images[i].Names {
			o.Status.Images[i].Names[k] = unique.Make(name).Value()
		}
	}
	return o
}

// slimPod keeps of a pod's containers what Berth reads, and all else.
func slimPod(o *v1.Pod) *v1.Pod {
	o.SetManagedFields(nil)
	delete(o.Annotations, v1.LastAppliedConfigAnnotation)
	read := cluster.Trim(o)
	o.Spec.InitContainers, o.Spec.Containers = read.Spec.InitContainers, read.Spec.Containers
	return o
}
