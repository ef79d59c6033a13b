package volumes

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/cluster"
)

// Reclassifier implements framework.Reclassifier for plugins that sign what a pod's
// claims lead to. It is embedded in all of them, so it names every pod for which one
// of them may read something else: too many cost time, one too few leaves a pod in a
// class that it doesn't belong to.
//
//	what changed                        whose signature may change
//	a pod or nomination comes or goes   pods that use one of its claims: whether a claim is in use counts;
//	                                    pods with claims, when a disk in its spec is a volume, too
//	a claim                             pods that use it
//	a storage class                     pods with claims
//	a volume                            pods whose claims name it or are named by it; pods with claims,
//	                                    when another volume may be the same disk
type Reclassifier struct{}

// Reclassifies implements framework.Reclassifier.
func (Reclassifier) Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved, cluster.NominationAdded, cluster.NominationRemoved:
		if slices.ContainsFunc(c.Pod.Disks, state.HasVolume) {
			return withClaims
		}
		if len(c.Pod.Claims) > 0 {
			return users(c.Pod.Object.Namespace, func(name string) bool {
				return slices.ContainsFunc(c.Pod.Claims, func(r cluster.ClaimRef) bool { return r.Name == name })
			})
		}
	case cluster.ObjectSet:
		return readersOf(c.Object, state)
	}
	return nil
}

// readersOf returns the pods whose claims lead to an object, as it was or is, nil
// when no claim leads to one of its kind.
func readersOf(c *cluster.ObjectChange, state *cluster.State) func(*cluster.Pod) bool {
	one := c.New
	if one == nil {
		one = c.Old
	}
	switch o := one.(type) {
	case *v1.PersistentVolumeClaim:
		return users(o.Namespace, func(name string) bool { return name == o.Name })
	case *storagev1.StorageClass:
		return withClaims
	case *v1.PersistentVolume:
		return readersOfVolume(c, state)
	}
	return nil
}

func readersOfVolume(c *cluster.ObjectChange, state *cluster.State) func(*cluster.Pod) bool {
	var keys []cluster.ClaimKey
	for _, o := range []cluster.Object{c.Old, c.New} {
		pv, ok := o.(*v1.PersistentVolume)
		if !ok {
			continue
		}
		naming := state.ClaimsNaming(pv.Name)
		if _, counts := state.DiskOf(pv); state.VolumeShared(pv) || counts && len(naming) > 0 {
			return withClaims
		}
		if ref := pv.Spec.ClaimRef; ref != nil {
			keys = append(keys, cluster.ClaimKey{Namespace: ref.Namespace, Name: ref.Name})
		}
		for _, claim := range naming {
			keys = append(keys, cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return func(p *cluster.Pod) bool {
		return slices.ContainsFunc(p.Claims, func(r cluster.ClaimRef) bool {
			return slices.Contains(keys, cluster.ClaimKey{Namespace: p.Object.Namespace, Name: r.Name})
		})
	}
}

func withClaims(p *cluster.Pod) bool { return len(p.Claims) > 0 }

// users returns the pods of a namespace that use a claim which is named.
func users(namespace string, named func(string) bool) func(*cluster.Pod) bool {
	return func(p *cluster.Pod) bool {
		return p.Object.Namespace == namespace && slices.ContainsFunc(p.Claims, func(r cluster.ClaimRef) bool { return named(r.Name) })
	}
}
