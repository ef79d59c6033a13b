package podgroups

// This file has stand-ins keep devices for the members of a gang:
//
//	claim of the member                     stand-in
//	made for it, without devices            brings a claim like it
//	has devices                             names it: they are where the member will be
//	named by the pod, without devices       none: no room is kept, since others may use the claim, too, and where
//	                                        it gets its devices isn't the gang's alone to say
//
// Extended resources are in a stand-in's containers. As long as a stand-in can't have all of its devices, since pods
// have them that are to end first, other pods that want devices stay away from its node (dynamicresources). When
// devices go from a node, room is kept there for its time nevertheless.

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// sharedClaim returns a claim without devices of a pod that others may use, too, "" when there is none.
func sharedClaim(s *cluster.State, pod *cluster.Pod) string {
	for _, c := range s.ClaimsOf(pod) {
		if cluster.OthersMayUse(c, pod) {
			return c.Namespace + "/" + c.Name
		}
	}
	return ""
}

// sharedWrite returns a claim that gets devices when a member is placed and that others may use, too, "" for none.
func sharedWrite(writes []cluster.ObjectChange, member *cluster.Pod) string {
	for i := range writes {
		if was, ok := writes[i].Old.(*resourcev1.ResourceClaim); ok && was != nil && cluster.OthersMayUse(was, member) {
			return was.Namespace + "/" + was.Name
		}
	}
	return ""
}

// allocatedClaims returns how many claims of a pod have devices.
func allocatedClaims(s *cluster.State, pod *cluster.Pod) (n int) {
	for _, c := range s.ClaimsOf(pod) {
		if c.Status.Allocation != nil {
			n++
		}
	}
	return n
}

// bringClaims has a stand-in claim what its member does.
func bringClaims(s *cluster.State, member, standIn *cluster.Pod) {
	for i := range member.Object.Spec.ResourceClaims {
		ref := &member.Object.Spec.ResourceClaims[i]
		named, _, err := resourceclaim.Name(member.Object, ref)
		if err != nil || named == nil {
			continue // it turned out to need none
		}
		c, name := s.ResourceClaim(member.Object.Namespace, *named), *named
		if c == nil {
			continue // the member isn't tried without it
		}
		if c.Status.Allocation == nil {
			name = lifecycle.NameOfBrought(standIn.Object, ref)
			standIn.Devices = append(standIn.Devices, lifecycle.ClaimLike(c, name, standIn.Object))
		}
		standIn.Object.Spec.ResourceClaims = append(standIn.Object.Spec.ResourceClaims, v1.PodResourceClaim{Name: ref.Name, ResourceClaimName: &name})
	}
}
