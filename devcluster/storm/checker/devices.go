package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/sim/checker"
)

// This file has what must hold of devices. Claims have one watch, so what the History has of them is what the
// API server had at one revision, seen, whenever ClaimsSeen is called; between the objects of a list
// it isn't. Pods have another watch: what is said of a claim and a pod holds only if neither can have
// changed before the other was seen.
//
// A device belongs to the node that its pool is named after, and is taken as a whole.

// devices is what the API has shown of claims and slices.
// It is guarded by the lock of its History.
type devices struct {
	claims map[types.UID]*claimLife
	slices map[types.UID]*resourcev1.ResourceSlice
	seen   int64 // every change of a claim up to this revision has been observed
	dirty  bool  // a claim has changed since devices were looked at
}

// claimLife is one claim.
// A claim that is gone is remembered for a while: pods are judged by it later than it goes.
type claimLife struct {
	claim  *resourcev1.ResourceClaim
	gone   bool
	goneBy int64 // the revision by which it was gone
	// idleSince is since when it has devices that no pod on a node uses, zero when one does.
	idleSince time.Time
}

// newDevices returns one that has seen nothing.
func newDevices() devices {
	return devices{claims: map[types.UID]*claimLife{}, slices: map[types.UID]*resourcev1.ResourceSlice{}}
}

// observeClaim records a change of a claim; the first revision by which it was gone is the
// one that counts.
func (d *devices) observeClaim(claim *resourcev1.ResourceClaim, c Change) {
	l := d.claims[claim.UID]
	if l == nil {
		l = &claimLife{}
		d.claims[claim.UID] = l
	}
	l.claim, d.dirty = claim, true
	if c.Deleted && !l.gone {
		l.gone, l.goneBy = true, c.By
	}
}

// observeSlice records a change of a slice.
func (d *devices) observeSlice(s *resourcev1.ResourceSlice, deleted bool) {
	if d.slices[s.UID] = s; deleted {
		delete(d.slices, s.UID)
	}
}

// ClaimsSeen records that every change of a claim up to a revision has been observed, and looks whether a
// device is in two claims at that revision.
// Between two calls claims may contradict each other, as lists are observed object by
// object.
func (h *History) ClaimsSeen(now time.Time, revision int64) {
	d := &h.devices
	d.seen = max(d.seen, revision)
	if !d.dirty {
		return
	}
	d.dirty = false
	for _, v := range (&checker.Devices{Claims: d.live()}).CheckTaken() {
		h.add(now, GivenTwice, v.Detail, "%s at revision %d", v.Detail, d.seen)
	}
}

// live returns the claims that exist, by name.
// Their order makes reports repeatable.
func (d *devices) live() (out []*resourcev1.ResourceClaim) {
	for _, l := range d.claims {
		if !l.gone {
			out = append(out, l.claim)
		}
	}
	slices.SortFunc(out, func(a, b *resourcev1.ResourceClaim) int { return strings.Compare(name(a), name(b)) })
	return out
}

// allocated returns the claims that have devices.
func (d *devices) allocated() []*resourcev1.ResourceClaim {
	return slices.DeleteFunc(d.live(), func(c *resourcev1.ResourceClaim) bool { return c.Status.Allocation == nil })
}

// String says who has which devices.
func (d *devices) String() string {
	var out []string
	for _, c := range d.allocated() {
		for i := range c.Status.Allocation.Devices.Results {
			r := &c.Status.Allocation.Devices.Results[i]
			out = append(out, fmt.Sprintf("%s/%s is in claim %s, reserved for %d", r.Pool, r.Device, name(c), len(c.Status.ReservedFor)))
		}
	}
	if out == nil {
		return "no device is in use"
	}
	return strings.Join(out, "; ")
}

// forget drops claims that are gone: a pod that needs one is judged before.
// Once pods are seen as far as claims, no pod is judged by an earlier state.
func (d *devices) forget(h *History) {
	for uid, l := range d.claims {
		if l.gone && h.podsSeen >= d.seen {
			delete(d.claims, uid)
		}
	}
}

// checkDevices finds pods that were bound without their devices, and devices that are kept for nobody.
func (h *History) checkDevices(now time.Time) {
	for _, l := range h.pods {
		if l.boundBy != 0 && !l.ended && h.devices.seen >= l.boundBy {
			h.checkReserved(now, l)
		}
	}
	for uid, l := range h.devices.claims {
		l.idleSince = since(now, l.idleSince, !l.gone && l.claim.Status.Allocation != nil && !h.inUse(l.claim))
		patience := h.config.Patience
		if h.isControllers(l.claim) {
			patience += controllersLag
		}
		if h.longerThan(patience, now, l.idleSince) {
			h.add(now, DevicesKept, string(uid), "claim %s has devices since %s that no pod on a node uses; it is reserved for %v", name(l.claim), l.idleSince.Format(time.TimeOnly), l.claim.Status.ReservedFor)
		}
	}
}

// controllersLag is for how long kube-controller-manager may see nothing of what changes after the API server has
// come back: client-go pauses for up to half a minute between watches, and for up to as long again at random.
const controllersLag = time.Minute

// isControllers reports whether it is for kube-controller-manager to free a claim: it is reserved for pods that have
// ended or are gone, and for no other. What is reserved for a pod without a node is for the scheduler to free.
func (h *History) isControllers(c *resourcev1.ResourceClaim) bool {
	return len(c.Status.ReservedFor) > 0 && !slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		l := h.pods[r.UID]
		return l != nil && !l.gone && !finished(l.pod)
	})
}

// inUse reports whether a claim is reserved for a pod on a node that hasn't ended.
func (h *History) inUse(c *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		l := h.pods[r.UID]
		return l != nil && l.pod.Spec.NodeName != "" && !l.gone && !finished(l.pod)
	})
}

// checkReserved finds what a pod on a node lacks of its claims. A claim that changed after the pod was last
// seen to run says nothing: the pod may have ended, and given its devices back.
func (h *History) checkReserved(now time.Time, l *podLife) {
	for _, claim := range claimsOf(l.pod) {
		x := h.claimNamed(l.pod.Namespace, claim)
		if x == nil || max(revision(x.claim), x.goneBy) > h.podsSeen {
			continue
		}
		c := x.claim
		if x.gone {
			h.add(now, WithoutDevices, string(l.pod.UID), "pod %s is on node %s by revision %d, and claim %s was gone by revision %d", name(l.pod), l.pod.Spec.NodeName, l.boundBy, claim, x.goneBy)
			continue
		}
		reserved := slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == l.pod.UID })
		if c.Status.Allocation == nil || !reserved {
			h.add(now, WithoutDevices, string(l.pod.UID), "pod %s is on node %s by revision %d, and claim %s at revision %d has %d devices and is reserved for %v",
				name(l.pod), l.pod.Spec.NodeName, l.boundBy, claim, revision(c), len(results(c)), c.Status.ReservedFor)
			continue
		}
		for _, r := range results(c) {
			if r.Pool != l.pod.Spec.NodeName {
				h.add(now, WithoutDevices, string(l.pod.UID), "pod %s is on node %s, and claim %s has a device of %s", name(l.pod), l.pod.Spec.NodeName, claim, r.Pool)
			}
		}
	}
}

// results returns the devices that a claim has.
func results(c *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if c.Status.Allocation == nil {
		return nil
	}
	return c.Status.Allocation.Devices.Results
}

// claimsOf returns the names of a pod's claims as far as they are known, with that of its extended resources.
// Claims made of templates have their names in the status.
func claimsOf(p *v1.Pod) (out []string) {
	for i := range p.Spec.ResourceClaims {
		if n := p.Spec.ResourceClaims[i].ResourceClaimName; n != nil {
			out = append(out, *n)
		}
	}
	for i := range p.Status.ResourceClaimStatuses {
		if n := p.Status.ResourceClaimStatuses[i].ResourceClaimName; n != nil {
			out = append(out, *n)
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		out = append(out, s.ResourceClaimName)
	}
	return out
}

// claimNamed returns the claim of a name, or one that is gone if no other has its name, or nil.
// There are few claims in a storm.
func (h *History) claimNamed(namespace, claim string) (found *claimLife) {
	for _, l := range h.devices.claims {
		if l.claim.Namespace == namespace && l.claim.Name == claim && (found == nil || !l.gone) {
			found = l
		}
	}
	return found
}

// claims reports whether a pod needs devices.
func (h *History) claims(p *v1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 || len(h.extended(p)) > 0
}

// extended returns the class of each device that a pod needs for its extended resources.
// One for each device: containers ask for several.
func (h *History) extended(p *v1.Pod) (classes []string) {
	for i := range p.Spec.Containers {
		for _, resource := range slices.Sorted(maps.Keys(h.config.Extended)) {
			n := p.Spec.Containers[i].Resources.Requests[resource]
			for range n.Value() {
				classes = append(classes, h.config.Extended[resource])
			}
		}
	}
	return classes
}

// hasDevices reports whether a node has the devices that a pod needs: those that its claims have, and free ones
// for the others. A pod whose claims aren't all known fits nowhere.
func (h *History) hasDevices(p *v1.Pod, node string) bool {
	// The claim for extended resources comes last (claimsOf).
	need, names := h.extended(p), claimsOf(p)
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		if x := h.claimNamed(p.Namespace, s.ResourceClaimName); x != nil && !x.gone {
			need = nil // the claim has its devices, or asks for them
		} else {
			names = names[:len(names)-1]
		}
	}
	// A template's claim isn't made yet.
	if len(names) < len(p.Spec.ResourceClaims) {
		return false
	}
	for _, claim := range names {
		x := h.claimNamed(p.Namespace, claim)
		if x == nil || x.gone || x.claim.DeletionTimestamp != nil {
			return false
		}
		c := x.claim
		// Its devices are on another node.
		if slices.ContainsFunc(results(c), func(r resourcev1.DeviceRequestAllocationResult) bool { return r.Pool != node }) {
			return false
		}
		if c.Status.Allocation != nil {
			continue
		}
		for i := range c.Spec.Devices.Requests {
			if exactly := c.Spec.Devices.Requests[i].Exactly; exactly != nil {
				for range exactly.Count {
					need = append(need, exactly.DeviceClassName)
				}
			}
		}
	}
	return h.cover(need, h.devices.free(node))
}

// free returns the devices of a node that are published without a taint, and that no claim has.
// A tainted device is for nobody here, since pods tolerate no taints of devices.
func (d *devices) free(node string) (out []*resourcev1.Device) {
	taken := map[string]bool{}
	for _, c := range d.allocated() {
		for _, r := range results(c) {
			taken[r.Pool+"/"+r.Device] = true
		}
	}
	for _, s := range d.slices {
		for i := range s.Spec.Devices {
			if x := &s.Spec.Devices[i]; s.Spec.Pool.Name == node && len(x.Taints) == 0 && !taken[node+"/"+x.Name] {
				out = append(out, x)
			}
		}
	}
	return out
}

// cover reports whether each class that is needed can have a device of its own. It tries all ways: pods
// need one or two.
func (h *History) cover(need []string, free []*resourcev1.Device) bool {
	if len(need) == 0 {
		return true
	}
	for i, x := range free {
		if h.config.Serves != nil && h.config.Serves(need[0], x) && h.cover(need[1:], slices.Delete(slices.Clone(free), i, i+1)) {
			return true
		}
	}
	return false
}

// withoutExtended returns pods without what they request of extended resources that a device class backs: no
// node has these in its allocatable.
func (h *History) withoutExtended(pods []*v1.Pod) []*v1.Pod {
	out := slices.Clone(pods)
	for i, p := range out {
		if len(h.extended(p)) == 0 {
			continue
		}
		out[i] = p.DeepCopy()
		checker.DropRequests(out[i], func(name v1.ResourceName) bool { return h.config.Extended[name] != "" })
	}
	return out
}
