package binding

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
)

// This file holds what was assumed of resource claims. Pods share claims, so what is assumed is kept
// pod by pod: the state always has a claim as the API last showed it, with the devices and
// reservations of the pods that hold it (claim.assumed). Whatever order writes, updates and deletions
// come in, taking back one pod's hold leaves those of others, and the last leaves what the API has.
//
//	a hold is     from                              until
//	assumed       Assume                            the pod leaves its node again: ended; its bind is
//	                                                posted: owed
//	owed          the bind is posted                BindDone: written, or ended after an error
//	abandoned     the pod is gone while it is owed  BindDone: ended. The bind may have written the claim
//	                                                by then, so its devices aren't free before
//	written       BindDone without an error         the API shows the reservation, or the pod is gone: ended

// holdState is how far a hold is.
type holdState uint8

// The states.
const (
	assumed holdState = iota
	owed
	abandoned
	written
)

// claimKey names a claim.
type claimKey struct{ namespace, name string }

func keyOfClaim(c *resourcev1.ResourceClaim) claimKey { return claimKey{c.Namespace, c.Name} }

// holder is a pod that holds claims.
type holder struct {
	state  holdState
	claims []claimKey // in the order of the decision's changes
}

// claim is a claim that pods hold.
type claim struct {
	shown *resourcev1.ResourceClaim // as the API has it; nil when it has none
	holds []hold                    // in the order in which the pods were placed
}

// hold is what was assumed of a claim for one pod.
type hold struct {
	pod types.UID
	// as is the claim with an allocation and the pod's reservation, as the decision left it.
	as *resourcev1.ResourceClaim
	// made is set when the decision made the claim, for extended resources: the bind creates it.
	made bool
}

// claims are what is assumed of claims.
type claims struct {
	byKey map[claimKey]*claim
	byPod map[types.UID]*holder
}

func newClaims() claims {
	return claims{byKey: map[claimKey]*claim{}, byPod: map[types.UID]*holder{}}
}

// add records what a decision has changed of a claim for a pod.
func (l *claims) add(pod types.UID, w cluster.ObjectChange) {
	as := w.New.(*resourcev1.ResourceClaim)
	key := keyOfClaim(as)
	c := l.byKey[key]
	if c == nil {
		c = &claim{}
		if w.Old != nil {
			c.shown = w.Old.(*resourcev1.ResourceClaim)
		}
		l.byKey[key] = c
	}
	if w.Old != nil {
		as = c.posted(as)
	}
	if i := slices.IndexFunc(c.holds, func(h hold) bool { return h.pod == pod }); i >= 0 {
		c.holds[i].as = as // the pod names the claim twice
		return
	}
	c.holds = append(c.holds, hold{pod: pod, as: as, made: w.Old == nil})
	if l.byPod[pod] == nil {
		l.byPod[pod] = &holder{}
	}
	l.byPod[pod].claims = append(l.byPod[pod].claims, key)
}

// posted returns a claim of the state as a bind may write it: with the one allocation that the API has, or that is
// held first, where the state has the devices of several (hold.on).
func (c *claim) posted(of *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	var one *resourcev1.AllocationResult
	if c.shown != nil {
		one = c.shown.Status.Allocation
	}
	for i := range c.holds {
		if h := &c.holds[i]; one == nil && (h.made || h.as.UID == of.UID) {
			one = h.as.Status.Allocation
		}
	}
	if one == nil || one == of.Status.Allocation {
		return of
	}
	out := *of
	out.Status.Allocation = one
	return &out
}

// assumed returns the claim as it is when all that hold it have written it; nil when there is none. An
// allocation that the API has takes precedence over an assumed one, whose devices stay in use. A claim of the
// same name with another UID isn't the one that was held.
func (c *claim) assumed() *resourcev1.ResourceClaim {
	out := c.shown
	for i := range c.holds {
		h := &c.holds[i]
		switch {
		case out == nil && h.made:
			out = h.as
		case out != nil && (h.made || h.as.UID == out.UID):
			out = h.on(out)
		}
	}
	return out
}

// on returns a claim with what is held. Where somebody else has given it other devices meanwhile it has
// both, until the bind has its outcome: should those be taken away again, the bind writes its own.
func (h *hold) on(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	reserved, missing := isReservedFor(c, h.pod), h.missing(c.Status.Allocation)
	if reserved && c.Status.Allocation != nil && missing == nil {
		return c
	}
	out := *c
	switch {
	case out.Status.Allocation == nil:
		out.Status.Allocation = h.as.Status.Allocation
	case missing != nil:
		both := *out.Status.Allocation
		both.Devices.Results = append(slices.Clip(both.Devices.Results), missing...)
		out.Status.Allocation = &both
	}
	if !reserved {
		for _, r := range h.as.Status.ReservedFor {
			if r.UID == h.pod {
				out.Status.ReservedFor = append(slices.Clip(c.Status.ReservedFor), r)
			}
		}
	}
	return &out
}

// missing returns the devices that are held and that an allocation, which may be nil, hasn't.
func (h *hold) missing(a *resourcev1.AllocationResult) (out []resourcev1.DeviceRequestAllocationResult) {
	if a == nil || h.as.Status.Allocation == nil {
		return nil
	}
	for _, r := range h.as.Status.Allocation.Devices.Results {
		if !slices.ContainsFunc(a.Devices.Results, func(x resourcev1.DeviceRequestAllocationResult) bool {
			return x.Driver == r.Driver && x.Pool == r.Pool && x.Device == r.Device && ptr.Equal(x.ShareID, r.ShareID)
		}) {
			out = append(out, r)
		}
	}
	return out
}

func isReservedFor(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// show records how the API has a claim, nil for no more, and has the state follow.
func (l *claims) show(state *cluster.State, key claimKey, shown *resourcev1.ResourceClaim) {
	c := l.byKey[key]
	if c == nil {
		put(state, key, shown)
		return
	}
	c.shown = shown
	for _, h := range slices.Clone(c.holds) {
		if l.byPod[h.pod].state == written && shown != nil && isReservedFor(shown, h.pod) {
			l.drop(key, h.pod)
		}
	}
	put(state, key, c.assumed())
}

// put has the state have a claim, or none.
func put(state *cluster.State, key claimKey, c *resourcev1.ResourceClaim) {
	if c == nil {
		state.RemoveObject(cluster.ResourceClaimKind, key.namespace, key.name)
		return
	}
	state.SetObject(c)
}

// drop forgets that a pod holds a claim.
func (l *claims) drop(key claimKey, pod types.UID) {
	c, p := l.byKey[key], l.byPod[pod]
	c.holds = slices.DeleteFunc(c.holds, func(h hold) bool { return h.pod == pod })
	if len(c.holds) == 0 {
		delete(l.byKey, key)
	}
	p.claims = slices.DeleteFunc(p.claims, func(k claimKey) bool { return k == key })
	if len(p.claims) == 0 {
		delete(l.byPod, pod)
	}
}

// end ends what a pod holds, and has the state follow.
func (l *claims) end(state *cluster.State, pod types.UID) {
	p := l.byPod[pod]
	if p == nil {
		return
	}
	for _, key := range slices.Clone(p.claims) {
		c := l.byKey[key]
		l.drop(key, pod)
		put(state, key, c.assumed())
	}
}

// posted records that the outcome of a pod's bind is owed.
func (l *claims) posted(pod types.UID) {
	if p := l.byPod[pod]; p != nil {
		p.state = owed
	}
}

// release ends what is held for a pod that has no node any more, or that is gone; when its bind is
// under way, with the outcome.
func (l *claims) release(state *cluster.State, pod types.UID) {
	switch p := l.byPod[pod]; {
	case p == nil:
	case p.state == owed || p.state == abandoned:
		p.state = abandoned
	default:
		l.end(state, pod)
	}
}

// done takes the outcome of a pod's bind.
func (l *claims) done(state *cluster.State, in step.BindDone) {
	p := l.byPod[in.UID]
	switch {
	case p == nil:
	case in.Err != nil || p.state == abandoned:
		l.end(state, in.UID)
	default:
		p.state = written
		for _, key := range slices.Clone(p.claims) {
			if c := l.byKey[key]; c.shown != nil && isReservedFor(c.shown, in.UID) {
				l.drop(key, in.UID)
			}
		}
	}
}

func (l *claims) unsettled() (out []string) {
	for key, c := range l.byKey {
		for _, h := range c.holds {
			out = append(out, fmt.Sprintf("claim %s/%s is assumed to be reserved for pod %s, and nothing has come of it", key.namespace, key.name, h.pod))
		}
	}
	slices.Sort(out)
	return out
}

// invariants says what doesn't hold of the fields: who holds a claim is known by both, and once.
func (l *claims) invariants() (out []string) {
	count := map[types.UID]int{}
	for key, c := range l.byKey {
		if len(c.holds) == 0 {
			out = append(out, fmt.Sprintf("claim %s/%s is kept, and nobody holds it", key.namespace, key.name))
		}
		for _, h := range c.holds {
			count[h.pod]++
			if p := l.byPod[h.pod]; p == nil || !slices.Contains(p.claims, key) {
				out = append(out, fmt.Sprintf("claim %s/%s is held for pod %s, which doesn't know", key.namespace, key.name, h.pod))
			}
		}
	}
	for pod, p := range l.byPod {
		if len(p.claims) == 0 || len(p.claims) != count[pod] {
			out = append(out, fmt.Sprintf("pod %s holds %d claims, of which %d know", pod, len(p.claims), count[pod]))
		}
	}
	slices.Sort(out)
	return out
}

// invariantsIn says what doesn't hold between what is assumed and the state.
func (l *claims) invariantsIn(state *cluster.State) (out []string) {
	keys := slices.SortedFunc(maps.Keys(l.byKey), func(a, b claimKey) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	for _, key := range keys {
		for _, h := range l.byKey[key].holds {
			now := state.ResourceClaim(key.namespace, key.name)
			if now != nil && (h.made || now.UID == h.as.UID) && (now.Status.Allocation == nil || !isReservedFor(now, h.pod)) {
				out = append(out, fmt.Sprintf("claim %s/%s is held for pod %s, and isn't reserved for it in the state", key.namespace, key.name, h.pod))
			}
		}
	}
	return out
}

// deviceClaims returns the claims with devices that a pod is to have when it is bound, and which
// container's extended resources are of which request. They are those that the decision has changed,
// and those that were reserved for the pod before.
func (l *claims) deviceClaims(pod *cluster.Pod, n *cluster.Node, state *cluster.State, claimer framework.Claimer) (out []*resourcev1.ResourceClaim, mappings []v1.ContainerExtendedResourceRequest) {
	if claimer == nil {
		return nil, nil
	}
	for _, c := range state.ClaimsOf(pod) {
		if c.Status.Allocation == nil || !isReservedFor(c, pod.UID) {
			continue
		}
		if held := l.byKey[keyOfClaim(c)]; held != nil {
			c = held.posted(c)
		}
		out = append(out, c)
	}
	if len(out) > 0 && state.ExtendedResourceClaim(pod) != nil {
		mappings = claimer.ExtendedResources(pod, n, state)
	}
	return out, mappings
}
