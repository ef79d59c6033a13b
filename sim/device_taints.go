package sim

import (
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// This file is the device taint eviction controller of kube-controller-manager (KEP-5055): it deletes pods
// that have devices with a taint of the effect NoExecute which their requests don't tolerate, or tolerate for
// a time that is over.

// evictTaintedLater has the controller look at a claim whose pods may have to go, some time after it or
// taints have changed.
func (w *World) evictTaintedLater(c *resourcev1.ResourceClaim) {
	if c.Status.Allocation == nil {
		return
	}
	if _, goes := w.evictedAfter(c); goes {
		w.after(w.between(nil, controllerLagMin, controllerLagMax, "device taints", c.Namespace, c.Name, w.now.String()), phaseWorld, func() { w.evictTainted(c.Namespace, c.Name) })
	}
}

// taintsChanged has the controller look at all claims, because a slice or a taint rule has changed.
func (w *World) taintsChanged() {
	for _, c := range objectsOf[*resourcev1.ResourceClaim](w) {
		w.evictTaintedLater(c)
	}
}

// evictTainted deletes the pods for which a claim is reserved, if its devices are no longer for them, or
// looks again when that will be so.
func (w *World) evictTainted(namespace, name string) {
	c := w.resourceClaim(namespace, name)
	if c == nil || c.Status.Allocation == nil {
		return
	}
	after, evicted := w.evictedAfter(c)
	switch {
	case !evicted:
	case after > 0:
		w.after(after, phaseWorld, func() { w.evictTainted(namespace, name) })
	default:
		for _, p := range w.sortedPods() {
			if p.obj.Spec.NodeName != "" && !p.ended && slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.obj.UID }) {
				w.deletePod(p)
			}
		}
	}
}

// evictedAfter returns when the pods of a claim have to go for the taints of its devices; ok is false when
// they may stay.
func (w *World) evictedAfter(c *resourcev1.ResourceClaim) (after time.Duration, ok bool) {
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		for _, t := range w.taintsOf(r) {
			if t.Effect != resourcev1.DeviceTaintEffectNoExecute {
				continue
			}
			left, goes := w.toleratedFor(r.Tolerations, t)
			if goes && (!ok || left < after) {
				after, ok = left, true
			}
		}
	}
	return after, ok
}

// toleratedFor returns for how much longer a taint is tolerated; goes is false when that has no end.
func (w *World) toleratedFor(tolerations []resourcev1.DeviceToleration, t resourcev1.DeviceTaint) (left time.Duration, goes bool) {
	goes = true
	for _, x := range tolerations {
		switch {
		case !resourceclaim.ToleratesTaint(x, t):
		case x.TolerationSeconds == nil:
			return 0, false
		case t.TimeAdded != nil:
			left = max(left, t.TimeAdded.Add(time.Duration(*x.TolerationSeconds)*time.Second).Sub(w.stamp().Time))
		}
	}
	return left, goes
}

// taintsOf returns the taints of an allocated device, as its driver publishes it and with those of rules.
func (w *World) taintsOf(r *resourcev1.DeviceRequestAllocationResult) (out []resourcev1.DeviceTaint) {
	rules := objectsOf[*resourcev1.DeviceTaintRule](w)
	for _, s := range objectsOf[*resourcev1.ResourceSlice](w) {
		if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool {
			continue
		}
		for _, d := range withRules(s, rules).Spec.Devices {
			if d.Name == r.Device {
				out = append(out, d.Taints...)
			}
		}
	}
	return out
}
