package volumebinding

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
)

// smallest returns the smallest volume that suits a claim on a node, nil for none
// (FindMatchingVolume of component-helpers). A volume that names the claim comes
// before all others, also where it doesn't admit the node: then there is none. Of
// volumes of equal size it is the first by name, where kube-scheduler takes any.
func (f *finding) smallest(claim delayedClaim, state *cluster.State, n *cluster.Node) *v1.PersistentVolume {
	var selector labels.Selector
	if claim.Spec.Selector != nil {
		s, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
		if err != nil {
			return nil // the API server lets none in
		}
		selector = s
	}
	class := cluster.ClaimClass(claim.PersistentVolumeClaim)
	if claim.named {
		for _, pv := range state.VolumesClaimed(cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name}) {
			if cluster.VolumeClass(pv) != class || !names(pv, claim.PersistentVolumeClaim) || !f.suits(pv, claim) {
				continue
			}
			if !cluster.VolumeAdmits(pv, n.Object) {
				return nil
			}
			return pv
		}
	}
	var best *v1.PersistentVolume
	anywhere, here := state.FreeVolumes(class, n.Object)
	for _, list := range [][]*v1.PersistentVolume{anywhere, here} {
		for _, pv := range list {
			if best != nil && bySize(best, pv) <= 0 || !f.suits(pv, claim) || pv.Status.Phase != v1.VolumeAvailable ||
				selector != nil && !selector.Matches(labels.Set(pv.Labels)) || !offers(pv, claim.PersistentVolumeClaim) ||
				!cluster.VolumeAdmits(pv, n.Object) {
				continue
			}
			best = pv
		}
	}
	return best
}

// suits reports whether a volume of the claim's class is free, large enough and of
// the claim's kind.
func (f *finding) suits(pv *v1.PersistentVolume, claim delayedClaim) bool {
	capacity := pv.Spec.Capacity[v1.ResourceStorage]
	return !slices.ContainsFunc(f.bindings, func(b binding) bool { return b.volume.Name == pv.Name }) &&
		capacity.Cmp(claim.Spec.Resources.Requests[v1.ResourceStorage]) >= 0 && pv.DeletionTimestamp == nil &&
		modeOf(claim.Spec.VolumeMode) == modeOf(pv.Spec.VolumeMode) &&
		value(claim.Spec.VolumeAttributesClassName) == value(pv.Spec.VolumeAttributesClassName)
}

// bySize orders volumes by capacity, then by name.
func bySize(x, y *v1.PersistentVolume) int {
	size := x.Spec.Capacity[v1.ResourceStorage]
	return cmp.Or(size.Cmp(y.Spec.Capacity[v1.ResourceStorage]), strings.Compare(x.Name, y.Name))
}

// names reports whether a volume is reserved for the claim: for this very one, or for
// any of its name.
func names(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace && (ref.UID == "" || ref.UID == claim.UID)
}

// modeOf returns the volume mode of a claim or volume.
func modeOf(m *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if m == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *m
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// offers reports whether the volume has all access modes of the claim.
func offers(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(claim.Spec.AccessModes, func(m v1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(pv.Spec.AccessModes, m)
	})
}
