// Package devices plays the driver of a vendor's devices on every node, as far as schedulers and
// autoscalers see one: it publishes what nodes have in ResourceSlices, late if wanted, publishes it
// again when it changes, and taints devices. It prepares nothing on a node.
//
//	driver.go  one change at a time, for tests
//	attach.go  devices that are attached to the node before their pod is bound
//	run.go     a driver that goes on by itself, for people and storms
//
// What must hold: a pool is never incomplete or contradicts itself, since each has one slice; a change
// has a new generation. Slices belong to their nodes, and are gone with them.
package devices

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// What a driver is called, the class of its devices, the extended resource that the class backs, and the
// class of those devices that have to be attached.
const (
	Name             = "gpu.example.com"
	Class            = "gpu.example.com"
	ExtendedResource = "example.com/gpu"
	AttachedClass    = "attached.example.com"
	// Tainted is the key of taints.
	Tainted = "gpu.example.com/unhealthy"
)

// Most is how many devices a node may have: those of one slice.
const Most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures

// Driver is the driver of all nodes. Its methods may be called at the same time for different
// nodes.
type Driver struct {
	client  kubernetes.Interface
	perNode int
	// attached is how many of a node's devices, the last ones, have binding conditions.
	attached int
}

// New returns a driver of nodes with so many devices each, none of which has to be attached.
func New(client kubernetes.Interface, perNode int) (*Driver, error) {
	if perNode < 1 || perNode > Most {
		return nil, fmt.Errorf("a node has 1 to %d devices, not %d", Most, perNode)
	}
	return &Driver{client: client, perNode: perNode}, nil
}

// Install creates the classes of the driver's devices, unless they are there. There is one of devices that
// are attached only if some are.
func (d *Driver) Install(ctx context.Context) error {
	all, attached := deviceClass(Class, fmt.Sprintf("device.driver == %q", Name)), deviceClass(AttachedClass, fmt.Sprintf("device.driver == %q && device.attributes[%q].attached", Name, Name))
	all.Spec.ExtendedResourceName = new(ExtendedResource)
	classes := []*resourcev1.DeviceClass{all}
	if d.attached > 0 {
		classes = append(classes, attached)
	}
	for _, c := range classes {
		if _, err := d.client.ResourceV1().DeviceClasses().Create(ctx, c, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the device class %s: %w", c.Name, err)
		}
	}
	return nil
}

func deviceClass(name, expression string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	return c
}

// Publish publishes the devices of a node: gpu-0, gpu-1, … in turn on two NUMA nodes. It does nothing if
// they are published.
func (d *Driver) Publish(ctx context.Context, node *v1.Node) error {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: SliceName(node.Name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: Name, NodeName: new(node.Name), Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}}
	for i := range d.perNode {
		device := resourcev1.Device{Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("example-80")}, "numa": {IntValue: new(int64(i % 2))},
				"driverVersion": {VersionValue: new("1.0.0")}, "attached": {BoolValue: new(i >= d.perNode-d.attached)}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}}
		if i >= d.perNode-d.attached {
			device.BindsToNode, device.BindingConditions, device.BindingFailureConditions = new(true), []string{Attached}, []string{AttachFailed}
		}
		s.Spec.Devices = append(s.Spec.Devices, device)
	}
	if _, err := d.client.ResourceV1().ResourceSlices().Create(ctx, s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("publishing the devices of node %s: %w", node.Name, err)
	}
	return nil
}

// SliceName returns the name of a node's slice.
func SliceName(node string) string { return node + "-" + Name }

// Change publishes the devices of a node again, after a function has changed them, with a new
// generation of the pool.
func (d *Driver) Change(ctx context.Context, node string, change func(*resourcev1.ResourceSliceSpec)) error {
	slices := d.client.ResourceV1().ResourceSlices()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s, err := slices.Get(ctx, SliceName(node), metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&s.Spec)
		s.Spec.Pool.Generation++
		_, err = slices.Update(ctx, s, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the devices of node %s: %w", node, err)
	}
	return nil
}

// Upgrade gives all devices of a node another driver version.
func (d *Driver) Upgrade(ctx context.Context, node, version string) error {
	return d.Change(ctx, node, func(s *resourcev1.ResourceSliceSpec) {
		for i := range s.Devices {
			s.Devices[i].Attributes["driverVersion"] = resourcev1.DeviceAttribute{VersionValue: &version}
		}
	})
}

// Taint taints the device of a number on a node; the effect "" takes its taints away.
func (d *Driver) Taint(ctx context.Context, node string, device int, effect resourcev1.DeviceTaintEffect) error {
	return d.Change(ctx, node, func(s *resourcev1.ResourceSliceSpec) {
		x := &s.Devices[device%len(s.Devices)]
		if x.Taints = nil; effect != "" {
			x.Taints = []resourcev1.DeviceTaint{{Key: Tainted, Effect: effect}}
		}
	})
}

// Withdraw takes the devices of a node back, as when its driver is removed.
func (d *Driver) Withdraw(ctx context.Context, node string) error {
	if err := d.client.ResourceV1().ResourceSlices().Delete(ctx, SliceName(node), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the devices of node %s back: %w", node, err)
	}
	return nil
}
