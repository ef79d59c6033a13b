package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file is resource claims: what the API server does with Berth's writes of them, and the
// resourceclaim controller of kube-controller-manager with the garbage collector. What must hold:
//
//   - the controller looks at a pod or claim a drawn time after it has changed, never at once;
//   - a claim that has devices carries the finalizer, and goes only when it has none;
//   - the controller takes devices from a claim when it takes its last reservation, and not when it finds none.

// controllerLag is how long the controller takes to look at what has changed, in milliseconds.
const (
	controllerLagMin = 50
	controllerLagMax = 3000
)

// resourceClaim returns a claim, nil if there is none of the name.
func (w *World) resourceClaim(namespace, name string) *resourcev1.ResourceClaim {
	c, _ := w.objects[objectKey{cluster.ResourceClaimKind, namespace, name}].(*resourcev1.ResourceClaim)
	return c
}

// lookLater calls look when the controller gets to what is named.
// The serial number in the name lets each look draw a delay of its own.
func (w *World) lookLater(look func(), name ...string) {
	w.serial++
	w.after(w.between(nil, controllerLagMin, controllerLagMax, append(name, fmt.Sprint(w.serial))...), phaseWorld, look)
}

// storeClaim stores a changed copy of a claim, and has the controller look at it.
func (w *World) storeClaim(c *resourcev1.ResourceClaim) {
	w.storeObject(c)
	w.syncClaimLater(c.Namespace, c.Name)
	w.evictTaintedLater(c)
	w.noteChange()
}

// syncClaimLater lets the controller look at a claim by name: by then it may be another
// one, or none.
func (w *World) syncClaimLater(namespace, name string) {
	w.lookLater(func() { w.syncClaim(namespace, name) }, "claim", namespace, name)
}

// addClaimTemplate creates a template. Pods that wait for one get their claims.
func (w *World) addClaimTemplate(t *resourcev1.ResourceClaimTemplate) {
	w.claimTemplates[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}] = t
	// In a fixed order, so that events of one moment are, too.
	for _, p := range w.sortedPods() {
		if p.obj.Namespace == t.Namespace {
			w.syncPodLater(p)
		}
	}
}

// syncPodLater has the controller look at a pod that has claims.
func (w *World) syncPodLater(p *pod) {
	if len(p.obj.Spec.ResourceClaims) > 0 {
		w.lookLater(func() { w.syncPod(p) }, "pod claims", string(p.obj.UID))
	}
}

// syncPod makes the claims of a pod from their templates, and reserves those that its node's devices
// were given to without that. A template that isn't there is waited for.
func (w *World) syncPod(p *pod) {
	if p.gone || p.ended || p.terminating() {
		return
	}
	var made []v1.PodResourceClaimStatus
	for i := range p.obj.Spec.ResourceClaims {
		ref := &p.obj.Spec.ResourceClaims[i]
		// A nil name without an error stands for a template of which the pod needs no
		// claim.
		if name, _, err := resourceclaim.Name(p.obj, ref); ref.ResourceClaimTemplateName == nil || err == nil && name == nil {
			continue
		} else if err == nil && w.resourceClaim(p.obj.Namespace, *name) != nil {
			made = append(made, v1.PodResourceClaimStatus{Name: ref.Name, ResourceClaimName: name})
			continue
		}
		t := w.claimTemplates[types.NamespacedName{Namespace: p.obj.Namespace, Name: *ref.ResourceClaimTemplateName}]
		// All or nothing: the status isn't written before each claim exists.
		if t == nil {
			return
		}
		c := w.claimFor(p, ref.Name, t)
		made = append(made, v1.PodResourceClaimStatus{Name: ref.Name, ResourceClaimName: &c.Name})
	}
	// The status must not depend on the order in which claims were made, or it would be
	// written again.
	slices.SortFunc(made, func(a, b v1.PodResourceClaimStatus) int { return cmp.Compare(a.Name, b.Name) })
	if !apiequality.Semantic.DeepEqual(made, p.obj.Status.ResourceClaimStatuses) {
		w.changePod(p, func(o *v1.Pod) { o.Status.ResourceClaimStatuses = made })
		w.noteChange()
	}
	if p.obj.Spec.NodeName != "" {
		w.reserveBound(p)
	}
}

// claimFor returns the claim that was made of a template for a pod, and makes it when there is none.
func (w *World) claimFor(p *pod, ref string, t *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	// The controller may have made it and not yet written the pod's status.
	if c := w.resourceClaim(p.obj.Namespace, p.claims[ref]); c != nil && c.DeletionTimestamp == nil {
		return c
	}
	w.serial++
	c := &resourcev1.ResourceClaim{Spec: t.Spec.Spec}
	// A generated name, as of the API server's generateName, but the same in each run of a
	// seed.
	c.Namespace, c.Name = p.obj.Namespace, fmt.Sprintf("%s-%s-%05x", p.obj.Name, ref, w.serial)
	c.UID = types.UID(fmt.Sprintf("claim/%s/%s", c.Namespace, c.Name))
	c.Labels = t.Spec.Labels
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.obj.Name, UID: p.obj.UID, Controller: ptr.To(true)}}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, resourcev1.PodResourceClaimAnnotation, ref)
	if p.claims == nil {
		p.claims = map[string]string{}
	}
	p.claims[ref] = c.Name
	w.storeClaim(c)
	return c
}

// reserveBound reserves the claims of a bound pod that have devices and aren't reserved for it.
// Somebody else may have bound the pod without reserving, as a user who sets nodeName does.
func (w *World) reserveBound(p *pod) {
	for name := range resourceclaim.PodClaims(p.obj) {
		c := w.resourceClaim(p.obj.Namespace, name)
		// A claim that is full stays without this pod's reservation.
		if c == nil || c.Status.Allocation == nil || reservedFor(c, p.obj.UID) || !resourceclaim.CanBeReserved(c) {
			continue
		}
		changed := c.DeepCopy()
		changed.Status.ReservedFor = append(changed.Status.ReservedFor, consumer(p.obj.Name, p.obj.UID))
		w.storeClaim(changed)
	}
}

// consumer returns the reservation of a pod.
func consumer(name string, uid types.UID) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: uid}
}

// reservedFor reports whether a claim is reserved for a pod, by its UID: a later pod of the
// same name has no share in it.
func reservedFor(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// claimsReleased has the controller look at the claims of a pod that runs no more.
func (w *World) claimsReleased(p *pod) {
	for name := range resourceclaim.PodClaims(p.obj) {
		w.syncClaimLater(p.obj.Namespace, name)
	}
}

// collectClaim has the garbage collector delete a claim whose pod is gone, some time later.
// Garbage collection is much slower than controllers, as in a cluster; owners are looked at
// again when it comes.
func (w *World) collectClaim(namespace, name string) {
	w.after(w.between(nil, 1000, 15000, "claim gc", namespace, name), phaseWorld, func() {
		if c := w.resourceClaim(namespace, name); c != nil {
			if ref := metav1.GetControllerOfNoCopy(c); ref != nil && w.pods[ref.UID] == nil {
				w.deleteClaim(c)
			}
		}
	})
}

// deleteClaim deletes a claim as the API server does: one with a finalizer goes when that is taken off.
// The finalizer goes when the last pod that uses the devices is done (syncClaim).
func (w *World) deleteClaim(c *resourcev1.ResourceClaim) {
	if len(c.Finalizers) == 0 {
		w.removeObject(c)
		w.noteChange()
		return
	}
	if c.DeletionTimestamp == nil {
		changed := c.DeepCopy()
		changed.DeletionTimestamp = ptr.To(w.stamp())
		w.storeClaim(changed)
	}
}

// needs reports whether the pod of a reservation exists and may run, or runs.
// A pod that is being deleted and has no node will never run, so it needs nothing.
func (w *World) needs(r resourcev1.ResourceClaimConsumerReference) bool {
	p := w.pods[r.UID]
	return p != nil && !p.gone && !p.ended && !(p.terminating() && p.obj.Spec.NodeName == "")
}

// syncClaim takes away the reservations of pods that run no more, and with the last one the devices. A claim that was
// made for a pod goes when the pod is done.
func (w *World) syncClaim(namespace, name string) {
	c := w.resourceClaim(namespace, name)
	if c == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(c.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool {
		// Reservations for anything but pods are left alone.
		return r.Resource == "pods" && !w.needs(r)
	})
	deleted := c.DeletionTimestamp != nil && len(left) == 0
	// A claim without reservations keeps its devices unless it is being deleted: the
	// allocation may be about to be used.
	if len(left) < len(c.Status.ReservedFor) || deleted {
		c = c.DeepCopy()
		if c.Status.ReservedFor = left; len(left) == 0 {
			w.stats.Devices.Freed++
			deallocate(c)
		}
		// The object goes with its last finalizer.
		if deleted && len(c.Finalizers) == 0 {
			w.removeObject(c)
			w.noteChange()
			return
		}
		w.storeClaim(c)
	}
	// Even an unchanged claim may have pods that wait to be reserved.
	w.syncUsers(c)
}

// syncUsers has the garbage collector or the controller delete a claim whose pod is done, and the controller look at
// the pods on nodes that use a claim.
// A claim of a template belongs to one pod, its controller; one made by hand to whoever
// names it.
func (w *World) syncUsers(c *resourcev1.ResourceClaim) {
	if ref := metav1.GetControllerOfNoCopy(c); ref != nil && ref.Kind == "Pod" {
		switch p := w.pods[ref.UID]; {
		case p == nil:
			w.collectClaim(c.Namespace, c.Name)
		// Its pod exists, but has ended or was deleted before it ran.
		case len(c.Status.ReservedFor) == 0 && !w.needs(consumer(ref.Name, ref.UID)):
			w.deleteClaim(c)
		case p.node != nil:
			w.reserveBound(p)
		}
		return
	}
	for _, p := range w.sortedPods() {
		if p.node != nil && !p.ended && p.obj.Namespace == c.Namespace {
			w.reserveBound(p)
		}
	}
}

// deallocate takes a claim's devices from it, and the finalizer.
// The caller stores the claim.
func deallocate(c *resourcev1.ResourceClaim) {
	c.Status.Allocation, c.Status.Devices = nil, nil
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
}

// createClaim creates a claim for the extended resources of a pod, and says in the pod's status which it is.
// One that an earlier process has created is as good.
func (w *World) createClaim(x *step.Bind, written *resourcev1.ResourceClaim) error {
	p := w.pods[x.UID]
	if p == nil {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	// The name is derived from the pod's, so a process that restarted finds the claim of
	// the one before.
	if w.resourceClaim(written.Namespace, written.Name) == nil {
		c := written.DeepCopy()
		w.serial++
		// A create never writes the status.
		c.UID, c.Status = types.UID(fmt.Sprintf("claim/%s/%s#%d", c.Namespace, c.Name, w.serial)), resourcev1.ResourceClaimStatus{}
		w.storeClaim(c)
	}
	w.changePod(p, func(o *v1.Pod) {
		o.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: written.Name, RequestMappings: x.ExtendedResources}
	})
	return nil
}

// reserveClaim does what the API server does with a claim that Berth writes before it binds a pod: of what
// is written, the devices and the pod's reservation count.
// It is an update of the status: whatever else Berth wrote is ignored. Each refusal has the
// text of the API server or of the plugin, since the text gets into decisions.
func (w *World) reserveClaim(x *step.Bind, written *resourcev1.ResourceClaim) error {
	c := w.resourceClaim(written.Namespace, written.Name)
	switch {
	case c == nil:
		return fmt.Errorf("resourceclaims %q not found", written.Name)
	// The name alone could be that of a claim that was made anew.
	case written.UID != "" && c.UID != written.UID:
		return fmt.Errorf("claim %s/%s was deleted and made again in the meantime", c.Namespace, c.Name)
	case c.DeletionTimestamp != nil:
		return fmt.Errorf("claim %s/%s got deleted in the meantime", c.Namespace, c.Name)
	}
	c = c.DeepCopy()
	devices := written.Status.Allocation
	switch {
	case devices == nil:
		return fmt.Errorf("claim %s/%s is written without devices", c.Namespace, c.Name)
	// The first pod that uses a claim allocates it; those that follow must have meant the
	// same devices.
	case c.Status.Allocation == nil:
		w.stats.Devices.Given++
		c.Status.Allocation = devices.DeepCopy()
		c.Status.Allocation.AllocationTimestamp = ptr.To(w.stamp())
		if !slices.Contains(c.Finalizers, resourcev1.Finalizer) {
			c.Finalizers = append(c.Finalizers, resourcev1.Finalizer)
		}
		w.reportDevices(c)
	case !apiequality.Semantic.DeepEqual(c.Status.Allocation.Devices.Results, devices.Devices.Results):
		return fmt.Errorf("claim %s/%s got allocated elsewhere in the meantime", c.Namespace, c.Name)
	}
	if !reservedFor(c, x.UID) {
		if !resourceclaim.CanBeReserved(c) {
			return fmt.Errorf("claim %s/%s: status.reservedFor: too many, the most is %d", c.Namespace, c.Name, resourcev1.ResourceClaimReservedForMaxSize)
		}
		c.Status.ReservedFor = append(c.Status.ReservedFor, consumer(x.Name, x.UID))
	}
	// Then it is checked at once that no device was given away twice.
	w.storeClaim(c)
	w.checkDevicesTaken()
	return nil
}

// unreserveClaim takes back what was written of a claim for a pod that isn't bound: its reservation, and the devices when
// nobody else has the claim reserved. A claim for the pod's extended resources is deleted.
func (w *World) unreserveClaim(x *step.Bind, written *resourcev1.ResourceClaim) {
	c := w.resourceClaim(written.Namespace, written.Name)
	p := w.pods[x.UID]
	// The bind went through although it seemed to fail; then the pod needs its claims.
	if c == nil || p != nil && p.obj.Spec.NodeName != "" {
		return
	}
	// Such a claim was made for this attempt and is of no use to the next.
	if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "" {
		w.stats.Devices.TakenBack++
		w.removeObject(c)
		if p != nil {
			w.changePod(p, func(o *v1.Pod) { o.Status.ExtendedResourceClaimStatus = nil })
		}
		w.noteChange()
		return
	}
	if !reservedFor(c, x.UID) {
		return
	}
	w.stats.Devices.TakenBack++
	c = c.DeepCopy()
	c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == x.UID })
	// Nobody else uses the devices.
	if len(c.Status.ReservedFor) == 0 {
		deallocate(c)
	}
	w.storeClaim(c)
}

// deallocateFor does what the API server does when Berth takes the devices away from a claim that keeps its pod from
// every node, or deletes one that an earlier attempt has left. A claim that has changed keeps its devices.
func (w *World) deallocateFor(x *step.Deallocation) error {
	c := w.resourceClaim(x.Namespace, x.Name)
	switch {
	// That is done already, or for another claim.
	case c == nil || c.UID != x.UID || c.Status.Allocation == nil && !x.Delete:
		return nil
	case x.Delete:
		w.stats.Devices.Deallocated++
		w.removeObject(c)
		w.noteChange()
		return nil
	// It may have been reserved since Berth decided.
	case c.ResourceVersion != x.Version:
		return fmt.Errorf("claim %s/%s has changed in the meantime", c.Namespace, c.Name)
	}
	w.stats.Devices.Deallocated++
	c = c.DeepCopy()
	c.Status.ReservedFor = nil
	deallocate(c)
	w.storeClaim(c)
	return nil
}

// reportDevices has drivers report, some time later, that devices with binding conditions are ready for their pod.
// The delay is drawn by the time of the allocation, so that each allocation has a delay of
// its own.
func (w *World) reportDevices(c *resourcev1.ResourceClaim) {
	conditional := func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.BindingConditions) > 0 }
	if !slices.ContainsFunc(c.Status.Allocation.Devices.Results, conditional) {
		return
	}
	namespace, name, uid, at := c.Namespace, c.Name, c.UID, c.Status.Allocation.AllocationTimestamp
	w.after(w.between(nil, 1000, 20000, "device conditions", string(uid), at.String()), phaseWorld, func() {
		now := w.resourceClaim(namespace, name)
		// By then the claim may have other devices, or none.
		if now == nil || now.UID != uid || now.Status.Allocation == nil || !now.Status.Allocation.AllocationTimestamp.Equal(at) {
			return
		}
		now = now.DeepCopy()
		now.Status.Devices = nil
		for _, r := range now.Status.Allocation.Devices.Results {
			if !conditional(r) {
				continue
			}
			d := resourcev1.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
			if r.ShareID != nil {
				d.ShareID = ptr.To(string(*r.ShareID))
			}
			for _, kind := range r.BindingConditions {
				d.Conditions = append(d.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: w.stamp()})
			}
			now.Status.Devices = append(now.Status.Devices, d)
		}
		w.storeClaim(now)
	})
}

// conditionPoll is how often a bind looks at the binding conditions of devices, as kube-scheduler does.
const conditionPoll = 5 * time.Second

// devicesReady reports whether all devices of the claims that were written for a bind are ready for it.
// Failure conditions aren't looked at: drivers here don't report any.
func (w *World) devicesReady(written []*resourcev1.ResourceClaim) bool {
	for _, x := range written {
		c := w.resourceClaim(x.Namespace, x.Name)
		if c == nil || c.Status.Allocation == nil {
			continue // the bind will say so
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			for _, kind := range r.BindingConditions {
				if !slices.ContainsFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
					return d.Device == r.Device && d.Driver == r.Driver && d.Pool == r.Pool &&
						slices.ContainsFunc(d.Conditions, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
				}) {
					return false
				}
			}
		}
	}
	return true
}
