package volumes

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/cluster"
)

// Reclassifier implements framework.Reclassifier for plugins that sign what a pod's
// claims lead to.
type Reclassifier struct{}

// Reclassifies implements framework.Reclassifier.
func (Reclassifier) Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved, cluster.NominationAdded, cluster.NominationRemoved:
		if len(c.Pod.Claims) > 0 { // whether a claim is in use counts
			return users(c.Pod.Object.Namespace, func(name string) bool {
				return slices.ContainsFunc(c.Pod.Claims, func(r cluster.ClaimRef) bool { return r.Name == name })
			})
		}
	case cluster.ObjectSet:
		return concerned(c.Object, state)
	}
	return nil
}

func concerned(c *cluster.ObjectChange, state *cluster.State) func(*cluster.Pod) bool {
	one := c.New
	if one == nil {
		one = c.Old
	}
	switch o := one.(type) {
	case *v1.PersistentVolumeClaim:
		return users(o.Namespace, func(name string) bool { return name == o.Name })
	case *storagev1.StorageClass:
		return func(p *cluster.Pod) bool { return len(p.Claims) > 0 }
	case *v1.PersistentVolume:
		var keys []cluster.ClaimKey
		for _, x := range []cluster.Object{c.Old, c.New} {
			pv, ok := x.(*v1.PersistentVolume)
			if !ok {
				continue
			}
			if state.VolumeShared(pv) || pv.Spec.CSI != nil && len(state.ClaimsNaming(pv.Name)) > 0 {
				return func(p *cluster.Pod) bool { return len(p.Claims) > 0 }
			}
			if ref := pv.Spec.ClaimRef; ref != nil {
				keys = append(keys, cluster.ClaimKey{Namespace: ref.Namespace, Name: ref.Name})
			}
		}
		for _, claim := range state.ClaimsNaming(o.Name) {
			keys = append(keys, cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name})
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
	return nil
}

func users(namespace string, named func(string) bool) func(*cluster.Pod) bool {
	return func(p *cluster.Pod) bool {
		return p.Object.Namespace == namespace && slices.ContainsFunc(p.Claims, func(r cluster.ClaimRef) bool { return named(r.Name) })
	}
}
