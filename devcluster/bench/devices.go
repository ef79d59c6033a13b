package bench

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berthproject/berth/devcluster/api"
)

// This file is devices: what a driver publishes, and claims for them. The controller that makes claims
// of templates doesn't run, so that it isn't measured: the claims of pods are made as it makes them.
// Names, attributes and numbers are those of scheduler_perf's cases with devices, by which
// results can be compared.

const (
	deviceDriver = "test-driver.cdi.k8s.io"
	deviceClass  = "test-class"
	podClaim     = "resource" // what a pod calls its claim
	// perNode is how many devices a node has, on roots PCI roots in turn.
	perNode, roots = 10, 2
	extended       = 25 // classes that back an extended resource each
)

// allMatch is an expression that all devices match.
const allMatch = `device.attributes["test-driver.cdi.k8s.io"].driverVersion.major() >= 1 && device.capacity["test-driver.cdi.k8s.io"].memory.isGreaterThan(quantity("1Mi"))`

// deviceSlice returns the slice of a node with its devices.
// Attributes that no request reads are there because the size of slices matters, too.
func deviceSlice(node string, devices int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: deviceDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
	text := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &v} }
	for i := range devices {
		root, bus := fmt.Sprint("pci0000:0", i%roots), fmt.Sprintf("0000:0%d:00.0", i)
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: deviceName(i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"driver": text("xe"), "driverVersion": {VersionValue: new("1.2.3")}, "family": text("Arc Pro B-Series"), "health": text("Healthy"), "model": text("B60"),
				"pciAddress": text(bus), "pciId": text("0xe211"), "resource.kubernetes.io/pciBusID": text(bus), "resource.kubernetes.io/pciRoot": text(root),
				"sriov": {BoolValue: new(true)}, "type": text("gpu")},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("24480Mi")}, "millicores": {Value: resource.MustParse("1k")}},
		})
	}
	return s
}

func deviceName(i int) string { return fmt.Sprint("basic-device-", i) }

// claimFor returns a claim for so many devices, each by a request of its own.
// It has no name and is of no pod yet.
func claimFor(devices int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{}
	for i := range devices {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: fmt.Sprint("req-", i),
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}})
	}
	return c
}

// oneDevice returns a claim for one device.
func oneDevice(int) *resourcev1.ResourceClaim { return claimFor(1) }

// selected makes the first request of a claim evaluate an expression that all devices match.
// The expression costs an evaluation for each device that is looked at.
func selected(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: allMatch}}}
	return c
}

// alike makes the devices of a claim be on one PCI root.
// With several roots in turn such a claim doesn't fit just anywhere.
func alike(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("resource.kubernetes.io/pciRoot"))}}
	return c
}

// claiming makes a pod use the claim that is made for it, of a template in name only.
// The template itself is never created, since nothing reads it.
func claiming(p *v1.Pod) *v1.Pod {
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: podClaim, ResourceClaimTemplateName: new("test-claim-template")}}
	p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: podClaim}}
	return p
}

// sharing makes a pod use a claim that four others use as well.
func sharing(p *v1.Pod, i int) *v1.Pod {
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: podClaim, ResourceClaimName: new(sharedClaim(i / 5))}}
	p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: podClaim}}
	return p
}

// sharedClaim returns the name of the claim that pods 5i to 5i+4 use.
func sharedClaim(i int) string { return fmt.Sprint("test-claim-", i) }

// extendedName is the extended resource of the i-th pod, which one of several classes backs.
func extendedName(i int) v1.ResourceName {
	return v1.ResourceName(fmt.Sprint("example.com/gpu-", i%extended))
}

// isExtended reports whether a class backs a resource.
func isExtended(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), "example.com/gpu-")
}

// deviceClasses creates the device classes: that of claims, and those of extended resources.
func (b *bench) deviceClasses(ctx context.Context) error {
	for i := -1; i < extended; i++ {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}}
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + deviceDriver + `"`}}}
		if i >= 0 {
			c.Name, c.Spec.ExtendedResourceName = fmt.Sprint(deviceClass, "-", i), new(string(extendedName(i)))
		}
		if _, err := b.client.ResourceV1().DeviceClasses().Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a device class: %w", err)
		}
	}
	return nil
}

// publish creates what a case with devices needs beside its measured pods: classes, slices,
// claims that pods share, and those of devices that are taken.
// Slices come before claims, so that no claim is for a device that isn't there.
func (b *bench) publish(ctx context.Context, c Case) error {
	if c.devices == 0 {
		return nil
	}
	if err := b.deviceClasses(ctx); err != nil {
		return err
	}
	nodes := c.nodeCount(b.o.Size)
	if err := b.each(ctx, "slices of devices", nodes, func(ctx context.Context, i int) error {
		_, err := b.client.ResourceV1().ResourceSlices().Create(ctx, deviceSlice(nodeName(i), c.devices), metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	if c.shared {
		if err := b.each(ctx, "claims that pods share", (c.size(b.o.Size)+4)/5, func(ctx context.Context, i int) error {
			claim := claimFor(1)
			claim.Name = sharedClaim(i)
			_, err := b.client.ResourceV1().ResourceClaims(measured).Create(ctx, claim, metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	if c.taken == nil {
		return nil
	}
	// One device after the other on all nodes, so that what is free is spread evenly.
	return b.each(ctx, "claims that have devices", c.taken(b.o.Size), func(ctx context.Context, i int) error {
		return b.take(ctx, fmt.Sprint("taken-", i), nodeName(i%nodes), deviceName(i/nodes))
	})
}

// take creates a claim that has a device.
func (b *bench) take(ctx context.Context, name, node, device string) error {
	claims := b.client.ResourceV1().ResourceClaims(beforehand)
	c := claimFor(1)
	// As of a claim with devices: nobody can delete it by itself.
	c.Name, c.Finalizers = name, []string{resourcev1.Finalizer}
	c, err := claims.Create(ctx, c, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// It is usable on its node only, as devices of a node are.
	c.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "req-0", Driver: deviceDriver, Pool: node, Device: device}}},
		NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}},
	}
	_, err = claims.UpdateStatus(ctx, c, metav1.UpdateOptions{})
	return err
}

// createPod creates the i-th measured pod, with its claim.
func (b *bench) createPod(ctx context.Context, c Case, i int) error {
	pods, claims := b.client.CoreV1().Pods(measured), b.client.ResourceV1().ResourceClaims(measured)
	p := c.shape(i)
	c.group.join(i, p)
	p, err := pods.Create(ctx, p, metav1.CreateOptions{})
	if err != nil || c.claim == nil {
		return err
	}
	// The claim comes after its pod, which it names as its owner.
	claim := c.claim(i)
	claim.Name = claimOf(p.Name)
	claim.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: podClaim}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	if _, err := claims.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	// Server-side apply, as the claim controller does it.
	status := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"status":{"resourceClaimStatuses":[{"name":%q,"resourceClaimName":%q}]}}`, p.Name, podClaim, claim.Name)
	_, err = pods.Patch(ctx, p.Name, types.ApplyPatchType, status, metav1.PatchOptions{FieldManager: "devcluster", Force: new(true)}, "status")
	return err
}

// claimOf returns the name of the claim that is made for a pod.
func claimOf(pod string) string { return pod + "-" + podClaim }

// steadyCalls are the API calls that replace makes, and no scheduler while it does.
var steadyCalls = []string{"DELETE pods", "APPLY pods/status", "POST resourceclaims", "PATCH resourceclaims", "PATCH resourceclaims/status", "DELETE resourceclaims"}

// replace deletes each measured pod that is bound, with its claim, and creates the next one, as long as
// there are more: several at a time, or it would limit what is measured.
func replace(ctx context.Context, b *bench, c Case) error {
	w, err := b.client.CoreV1().Pods(measured).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return wrapped("watching for bound pods", err)
	}
	defer w.Stop()
	work, ctx := errgroup.WithContext(ctx)
	do := func(what string, f func() error) {
		work.Go(func() error {
			if err := f(); err != nil && ctx.Err() == nil {
				return wrapped(what, err)
			}
			return nil
		})
	}
	// The next pod takes the next number, so that none comes twice.
	seen := map[types.UID]bool{}
	for e := range untilDone(ctx, w.ResultChan()) {
		p, ok := e.Object.(*v1.Pod)
		if !ok || seen[p.UID] {
			continue
		}
		next := c.steady + len(seen)
		seen[p.UID] = true
		do("deleting a pod with its claim", func() error { return b.end(ctx, p) })
		if next < c.size(b.o.Size) {
			do("creating the next pod", func() error { return b.createPod(ctx, c, next) })
		}
	}
	return work.Wait()
}

// untilDone returns what comes until the context ends.
// It also ends when the watch does.
func untilDone(ctx context.Context, events <-chan watch.Event) iter.Seq[watch.Event] {
	return func(yield func(watch.Event) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-events:
				if !ok || !yield(e) {
					return
				}
			}
		}
	}
}

// end deletes a pod, and its claim as the controller does: what has been allocated is given back first.
func (b *bench) end(ctx context.Context, p *v1.Pod) error {
	if err := b.client.CoreV1().Pods(measured).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return b.dropClaim(ctx, measured, claimOf(p.Name))
}

// dropClaim gives back what a claim has, and deletes it.
// Without its allocation and finalizer the deletion takes effect at once.
func (b *bench) dropClaim(ctx context.Context, namespace, name string) error {
	claims := b.client.ResourceV1().ResourceClaims(namespace)
	for _, change := range []func() (*resourcev1.ResourceClaim, error){
		func() (*resourcev1.ResourceClaim, error) {
			return claims.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"allocation":null,"reservedFor":null,"devices":null}}`), metav1.PatchOptions{}, "status")
		},
		func() (*resourcev1.ResourceClaim, error) {
			return claims.Patch(ctx, name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
		},
	} {
		if _, err := change(); err != nil {
			return err
		}
	}
	return claims.Delete(ctx, name, metav1.DeleteOptions{})
}

// clearDevices deletes all that has to do with devices.
func (b *bench) clearDevices(ctx context.Context) error {
	all := metav1.ListOptions{}
	claims, err := b.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	if err := api.Each(ctx, len(claims.Items), func(ctx context.Context, i int) error {
		return b.dropClaim(ctx, claims.Items[i].Namespace, claims.Items[i].Name)
	}); err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	for _, del := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		b.client.ResourceV1().ResourceSlices().DeleteCollection, b.client.ResourceV1().DeviceClasses().DeleteCollection} {
		if err := del(ctx, metav1.DeleteOptions{}, all); err != nil {
			return fmt.Errorf("clearing: %w", err)
		}
	}
	return nil
}

// checkDevices returns an error if a device has been allocated twice, or a pod is placed whose claim has
// none. Where pods go, a claim may just have been given back.
func (a *attempt) checkDevices(ctx context.Context) error {
	claims, err := a.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// Only whole devices are claimed in these cases, so each may be in one claim.
	taken := map[string]string{}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Status.Allocation == nil {
			// In these cases claims come and go while this looks at them.
			if a.c.steady > 0 {
				continue
			}
			return fmt.Errorf("the claim %s/%s has no devices, and its pod is bound", c.Namespace, c.Name)
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			id := strings.Join([]string{r.Driver, r.Pool, r.Device}, "/")
			if other := taken[id]; other != "" {
				return fmt.Errorf("the device %s is allocated to the claims %s and %s", id, other, c.Name)
			}
			taken[id] = c.Name
		}
	}
	return nil
}
