package sim

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file is people who edit claims by hand. What a pod uses, or is about to, they leave alone: to take that
// away is to give a device away twice, and no scheduler could help it.

// editClaim edits one of the claims, if there is one.
func (w *World) editClaim(pick func(int) int) {
	claims := slices.DeleteFunc(objectsOf[*resourcev1.ResourceClaim](w), func(c *resourcev1.ResourceClaim) bool { return c.DeletionTimestamp != nil })
	if len(claims) == 0 {
		return
	}
	slices.SortFunc(claims, func(a, b *resourcev1.ResourceClaim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c := claims[pick(len(claims))].DeepCopy()
	nobody := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "nobody", UID: types.UID(fmt.Sprint("nobody-", w.faults.serial))}
	switch {
	case c.Status.Allocation != nil && !w.hasUser(c) && pick(2) == 0:
		c.Status = resourcev1.ResourceClaimStatus{}
	case c.Status.Allocation != nil && len(c.Status.ReservedFor) < resourcev1.ResourceClaimReservedForMaxSize && pick(3) == 0:
		c.Status.ReservedFor = append(c.Status.ReservedFor, nobody)
	default:
		metav1.SetMetaDataLabel(&c.ObjectMeta, "example.com/edited", fmt.Sprint(w.faults.serial))
	}
	w.stats.Devices.Edited++
	w.storeClaim(c)
}

// hasUser reports whether a claim is reserved for a pod that hasn't ended.
func (w *World) hasUser(c *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		p := w.pods[r.UID]
		return p != nil && !p.ended
	})
}
