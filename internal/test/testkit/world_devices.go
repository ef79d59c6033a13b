package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws histories about devices. They are histories of their own: what other properties draw
// stays as it is.

// DeviceWorld takes a state through a random history, half of whose changes are of devices: slices,
// claims, device classes and taint rules.
type DeviceWorld struct{ *World }

// NewDeviceWorld returns a world over an empty state, to which it adds nodes and devices.
func NewDeviceWorld(t *rapid.T, s *cluster.State, nodes int) DeviceWorld {
	w := DeviceWorld{NewWorld(s, nodes)}
	var objects []*v1.Node
	for _, name := range w.Nodes {
		n := RandomNode(t, name)
		objects = append(objects, n)
		s.SetNode(s.Schema.ParseNode(n, ""))
	}
	published := RandomDevices(t, objects)
	for _, o := range append(published, RandomDeviceClaims(t, published)...) {
		s.SetObject(o)
	}
	return w
}

// Pod draws a pod, which claims devices mostly and often asks for nothing else.
func (w DeviceWorld) Pod(t *rapid.T, name string) *v1.Pod {
	p := RandomPod(t, name)
	if maybe(t, 70, "claims only") {
		p = Pod(name).Namespaced(p.Namespace).Obj()
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	if maybe(t, 80, "claims devices") {
		AddDeviceClaims(t, p)
	}
	if maybe(t, 30, "requests extended resources") {
		AddExtendedResources(t, p)
	}
	return p
}

// Change makes one random change and returns what it was.
func (w DeviceWorld) Change(t *rapid.T) string {
	if maybe(t, 50, "other change") {
		return w.World.Change(t)
	}
	var nodes []*v1.Node
	for _, name := range w.Nodes {
		nodes = append(nodes, Node(name).Obj())
	}
	o, gone := RandomDeviceChange(t, nodes, w.published())
	if gone {
		w.State.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
		return fmt.Sprintf("remove %T %s", o, o.GetName())
	}
	w.State.SetObject(o)
	return fmt.Sprintf("set %T %s", o, o.GetName())
}

// published returns the objects about devices that are there.
func (w DeviceWorld) published() (out []cluster.Object) {
	for _, o := range w.State.Objects() {
		switch o.(type) {
		case *resourcev1.ResourceSlice, *resourcev1.ResourceClaim, *resourcev1.DeviceClass, *resourcev1.DeviceTaintRule:
			out = append(out, o)
		}
	}
	return out
}
