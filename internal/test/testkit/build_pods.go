package testkit

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file builds pods: metadata, containers, volumes and status. What says where a pod may
// run is in build_placement.go.

// PodBuilder builds a Pod.
type PodBuilder struct{ v1.Pod }

// Pod starts a pod of namespace "default" with one empty container.
func Pod(name string) *PodBuilder {
	b := &PodBuilder{}
	b.Namespace, b.Name = "default", name
	b.UID = types.UID("pod-" + name)
	b.Spec.SchedulerName = v1.DefaultSchedulerName
	b.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	return b
}

// DaemonPod starts the pod of a DaemonSet for a node, as its controller makes it: bound to the
// node by name, with the tolerations that all such pods have.
func DaemonPod(set, node string) *PodBuilder {
	b := Pod(set+"-"+node).Label("app", set).Owner("apps/v1", "DaemonSet", set).OnlyOn(node)
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable} {
		b.Toleration(v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
	}
	for _, key := range []string{v1.TaintNodeDiskPressure, v1.TaintNodeMemoryPressure, v1.TaintNodePIDPressure, v1.TaintNodeUnschedulable} {
		b.Toleration(v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule})
	}
	return b
}

// Namespaced sets the namespace.
func (b *PodBuilder) Namespaced(ns string) *PodBuilder { b.Pod.Namespace = ns; return b }

// Label sets a label.
func (b *PodBuilder) Label(k, v string) *PodBuilder {
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	b.Labels[k] = v
	return b
}

// Annotate sets an annotation. The map is the pod's own from then on.
func (b *PodBuilder) Annotate(k, v string) *PodBuilder {
	annotations := map[string]string{k: v}
	for key, value := range b.Annotations {
		if key != k {
			annotations[key] = value
		}
	}
	b.Annotations = annotations
	return b
}

// Owner sets the controlling owner.
func (b *PodBuilder) Owner(apiVersion, kind, name string) *PodBuilder {
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + name), Controller: new(true)}}
	return b
}

// Priority sets the priority.
func (b *PodBuilder) Priority(p int32) *PodBuilder { b.Spec.Priority = &p; return b }

// Gate adds a scheduling gate.
func (b *PodBuilder) Gate(name string) *PodBuilder {
	b.Spec.SchedulingGates = append(b.Spec.SchedulingGates, v1.PodSchedulingGate{Name: name})
	return b
}

// PodGroup makes the pod a member of a PodGroup; "" names none.
func (b *PodBuilder) PodGroup(name string) *PodBuilder {
	b.Spec.SchedulingGroup = &v1.PodSchedulingGroup{}
	if name != "" {
		b.Spec.SchedulingGroup.PodGroupName = &name
	}
	return b
}

// On sets spec.nodeName.
func (b *PodBuilder) On(node string) *PodBuilder { b.Spec.NodeName = node; return b }

// NominatedTo sets status.nominatedNodeName.
func (b *PodBuilder) NominatedTo(node string) *PodBuilder {
	b.Status.NominatedNodeName = node
	return b
}

// Started sets status.startTime, in seconds since 1970.
func (b *PodBuilder) Started(at int64) *PodBuilder {
	b.Status.StartTime = &metav1.Time{Time: time.Unix(at, 0)}
	return b
}

// Terminating marks the pod as being deleted.
func (b *PodBuilder) Terminating() *PodBuilder {
	b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return b
}

// Req sets requests of the first container, given as name, quantity pairs.
func (b *PodBuilder) Req(pairs ...string) *PodBuilder {
	maps.Copy(b.Spec.Containers[0].Resources.Requests, quantities(pairs))
	return b
}

// Container adds a container with requests, given as name, quantity pairs.
func (b *PodBuilder) Container(pairs ...string) *PodBuilder {
	b.Spec.Containers = append(b.Spec.Containers, container(pairs))
	return b
}

// InitContainer adds an init container with requests.
func (b *PodBuilder) InitContainer(pairs ...string) *PodBuilder {
	b.Spec.InitContainers = append(b.Spec.InitContainers, container(pairs))
	return b
}

// Sidecar adds a restartable init container with requests.
func (b *PodBuilder) Sidecar(pairs ...string) *PodBuilder {
	c := container(pairs)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	b.Spec.InitContainers = append(b.Spec.InitContainers, c)
	return b
}

func container(pairs []string) v1.Container {
	return v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: quantities(pairs)}}
}

// Overhead sets the pod's overhead.
func (b *PodBuilder) Overhead(pairs ...string) *PodBuilder {
	b.Spec.Overhead = quantities(pairs)
	return b
}

// WholeReq sets requests of the pod as a whole (KEP-2837).
func (b *PodBuilder) WholeReq(pairs ...string) *PodBuilder {
	b.Spec.Resources = &v1.ResourceRequirements{Requests: quantities(pairs)}
	return b
}

// ImageVolume adds a volume that is an image.
func (b *PodBuilder) ImageVolume(name, image string) *PodBuilder {
	return b.Volume(name, v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: image}})
}

// Image sets the image of the first container.
func (b *PodBuilder) Image(name string) *PodBuilder { b.Spec.Containers[0].Image = name; return b }

// HostPort asks for a host port.
func (b *PodBuilder) HostPort(port int32) *PodBuilder {
	c := &b.Spec.Containers[0]
	c.Ports = append(c.Ports, v1.ContainerPort{HostPort: port, ContainerPort: port, Protocol: v1.ProtocolTCP})
	return b
}

// Volume adds a volume.
func (b *PodBuilder) Volume(name string, source v1.VolumeSource) *PodBuilder {
	b.Spec.Volumes = append(b.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	return b
}

// Uses adds a volume for each of the claims.
func (b *PodBuilder) Uses(claims ...string) *PodBuilder {
	for _, c := range claims {
		b.Volume(c, v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c}})
	}
	return b
}

// Ephemeral adds a generic ephemeral volume: its claim is named POD-NAME.
func (b *PodBuilder) Ephemeral(name string) *PodBuilder {
	return b.Volume(name, v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}})
}

// With changes the object by a function, where no method does.
func (b *PodBuilder) With(change func(*v1.Pod)) *PodBuilder { change(&b.Pod); return b }

// Obj returns the pod.
func (b *PodBuilder) Obj() *v1.Pod { return &b.Pod }
