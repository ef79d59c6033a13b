package homes

// This file has stand-ins claim devices as the replacements of their pods will:
//
//	claim of the pod                 stand-in                        replacement
//	made for the pod                 brings a claim like it          gets a claim like it
//	named, nobody else has it        brings a claim like it          gets devices by it when the pod has ended
//	named, others have it, too       names it                        uses the devices that it has, with the others,
//	                                                                 or gets some when all have ended
//	not there                        claims nothing by it            isn't tried before it is there
//
// Others may come to have a claim, or end, and claims may be shown later than the pods that name them: what a
// stand-in claims follows that. Extended resources are in its containers. Devices aren't kept by a claim that others
// have (cluster.State.KeepsDevices): the first of its pods that is placed decides where they are.

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// claimKind is what a stand-in does about a resource claim of its pod.
type claimKind uint8

const (
	missing claimKind = iota // nothing: the claim isn't known
	own                      // it brings one like it
	shared                   // it names it
)

// shares reports whether the pod has devices of a claim that others have, too.
func (h *home) shares() bool { return slices.Contains(h.claims, shared) }

// claimDevices has the stand-in of a home claim what the replacement will, and reports whether that is something
// else than before.
func (h *home) claimDevices(s *cluster.State) (changed bool) {
	refs := h.pod.Object.Spec.ResourceClaims
	if len(refs) == 0 {
		return false
	}
	claims := make([]*resourcev1.ResourceClaim, len(refs))
	kinds := make([]claimKind, len(refs))
	for i := range refs {
		claims[i], kinds[i] = claimOf(s, h.pod, &refs[i])
		if kinds[i] == missing && h.claims != nil {
			kinds[i] = h.claims[i] // it ended with the pod
		}
	}
	if slices.Equal(kinds, h.claims) {
		return false
	}
	object, standIn := *h.standIn.Object, *h.standIn
	brought := standIn.Devices
	object.Spec.ResourceClaims, standIn.Devices = nil, nil
	for i := range refs {
		name := lifecycle.NameOfBrought(&object, &refs[i])
		switch kinds[i] {
		case missing:
			continue
		case own:
			c := claims[i]
			if c != nil {
				c = lifecycle.ClaimLike(c, name, &object)
			} else {
				c = brought[slices.IndexFunc(brought, func(c *resourcev1.ResourceClaim) bool { return c.Name == name })]
			}
			standIn.Devices = append(standIn.Devices, c)
		case shared:
			name = *nameOf(h.pod, &refs[i])
		}
		object.Spec.ResourceClaims = append(object.Spec.ResourceClaims, v1.PodResourceClaim{Name: refs[i].Name, ResourceClaimName: &name})
	}
	standIn.Object, h.standIn, h.claims = &object, &standIn, kinds
	return true
}

// claimOf returns a resource claim of a pod, nil when there is none, and what its stand-in does about it.
func claimOf(s *cluster.State, pod *cluster.Pod, ref *v1.PodResourceClaim) (*resourcev1.ResourceClaim, claimKind) {
	name := nameOf(pod, ref)
	if name == nil {
		return nil, missing
	}
	c := s.ResourceClaim(pod.Object.Namespace, *name)
	switch {
	case c == nil:
		return nil, missing
	case ref.ResourceClaimName != nil && hasOthers(c, pod.UID):
		return c, shared
	}
	return c, own
}

// nameOf returns the name of a resource claim of a pod; nil when the pod turned out to need none, or when its
// status doesn't say which was made for it.
func nameOf(pod *cluster.Pod, ref *v1.PodResourceClaim) *string {
	name, _, err := resourceclaim.Name(pod.Object, ref)
	if err != nil {
		return nil
	}
	return name
}

// hasOthers reports whether a claim is reserved for pods but one.
func hasOthers(c *resourcev1.ResourceClaim, but types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID != but })
}

// followClaims makes stand-ins anew that have to claim something else, since resource claims have changed. It
// costs O(homes and their claims).
func (m *Machine) followClaims(t *lifecycle.Turn) {
	for _, h := range inOrder(maps.Values(m.byPod)) {
		if !h.mayClaimElse() || !h.claimDevices(t.State) {
			continue
		}
		m.version++
		if h.node == "" {
			m.unqueue(h)
			m.untried = true
			continue
		}
		t.State.Nominate(h.standIn, h.node) // in place of what it was
		m.dropIfLost(t, h)
	}
}

// mayClaimElse reports whether a change of resource claims may have the stand-in claim something else: claims that
// are made for pods stay as they are.
func (h *home) mayClaimElse() bool {
	for i, kind := range h.claims {
		if kind == missing || h.pod.Object.Spec.ResourceClaims[i].ResourceClaimName != nil {
			return true
		}
	}
	return false
}
