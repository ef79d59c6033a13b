package volumebinding

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
)

// finding is where a pod's volumes would come from on a node.
type finding struct {
	bindings   []binding
	provisions []*v1.PersistentVolumeClaim
	// What is wrong, in the order in which kube-scheduler tells it.
	wrongNode, nothingToBind, noSpace, volumeGone bool
}

type binding struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
}

func (f *finding) ok() bool {
	return !f.wrongNode && !f.nothingToBind && !f.noSpace && !f.volumeGone
}

func (f *finding) reasons() []string {
	var out []string
	for _, x := range []struct {
		is   bool
		text string
	}{
		{f.wrongNode, "node(s) didn't match PersistentVolume's node affinity"},
		{f.nothingToBind, "node(s) didn't find available persistent volumes to bind"},
		{f.noSpace, "node(s) did not have enough free storage"},
		{f.volumeGone, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
	} {
		if x.is {
			out = append(out, x.text)
		}
	}
	return out
}

// find follows FindPodVolumes of kube-scheduler 1.36.
func (c *claims) find(state *cluster.State, n *cluster.Node) finding {
	f := finding{}
	for i, pv := range c.volumes {
		if pv == nil {
			f.volumeGone = true
			break
		}
		translated, err := migration.Translated(pv, state.CSINode(n.Name))
		affinity := c.admit[i]
		if err == nil && translated != pv {
			affinity = cluster.ParseVolumeAffinity(translated)
		}
		if err != nil || !affinity.Admits(n.NodeInfo) {
			f.wrongNode = true
			break
		}
	}
	var match, provision []waiting
	for _, claim := range c.delayed {
		if node, ok := claim.Annotations[cluster.AnnSelectedNode]; !ok {
			match = append(match, claim)
		} else if node != n.Name {
			f.nothingToBind = true
			return f
		} else {
			provision = append(provision, claim)
		}
	}
	slices.SortStableFunc(match, func(a, b waiting) int {
		x, y := a.Spec.Resources.Requests[v1.ResourceStorage], b.Spec.Resources.Requests[v1.ResourceStorage]
		return x.Cmp(y)
	})
	for _, claim := range match {
		if pv := f.smallest(claim, state, n); pv != nil {
			f.bindings = append(f.bindings, binding{claim.PersistentVolumeClaim, pv})
		} else {
			provision = append(provision, claim)
		}
	}
	for _, claim := range provision {
		f.provision(claim.PersistentVolumeClaim, state, n)
		if f.nothingToBind || f.noSpace {
			return f
		}
	}
	return f
}

// smallest returns the smallest volume that suits a claim on a node; one that
// names the claim comes before all others. Of equal ones it is the first by
// name, where kube-scheduler takes any.
func (f *finding) smallest(claim waiting, state *cluster.State, n *cluster.Node) *v1.PersistentVolume {
	want := claim.Spec.Resources.Requests[v1.ResourceStorage]
	var selector labels.Selector
	if claim.Spec.Selector != nil {
		s, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
		if err != nil {
			return nil // the API server lets none in
		}
		selector = s
	}
	class := cluster.ClaimClass(claim.PersistentVolumeClaim)
	suits := func(pv *v1.PersistentVolume) bool {
		capacity := pv.Spec.Capacity[v1.ResourceStorage]
		return !slices.ContainsFunc(f.bindings, func(b binding) bool { return b.volume.Name == pv.Name }) &&
			capacity.Cmp(want) >= 0 && pv.DeletionTimestamp == nil &&
			modeOf(claim.Spec.VolumeMode) == modeOf(pv.Spec.VolumeMode) &&
			value(claim.Spec.VolumeAttributesClassName) == value(pv.Spec.VolumeAttributesClassName)
	}
	if claim.named {
		for _, pv := range state.VolumesClaimed(cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name}) {
			if cluster.VolumeClass(pv) != class || !names(pv, claim.PersistentVolumeClaim) || !suits(pv) {
				continue
			}
			if !cluster.VolumeAdmits(pv, n.NodeInfo) {
				return nil
			}
			return pv
		}
	}
	var best *v1.PersistentVolume
	anywhere, here := state.FreeVolumes(class, n.NodeInfo)
	for _, list := range [][]*v1.PersistentVolume{anywhere, here} {
		for _, pv := range list {
			if best != nil && bySize(best, pv) <= 0 || !suits(pv) || pv.Status.Phase != v1.VolumeAvailable ||
				selector != nil && !selector.Matches(labels.Set(pv.Labels)) || !offers(pv, claim.PersistentVolumeClaim) ||
				!cluster.VolumeAdmits(pv, n.NodeInfo) {
				continue
			}
			best = pv
		}
	}
	return best
}

// bySize orders volumes by capacity, then by name.
func bySize(x, y *v1.PersistentVolume) int {
	size := x.Spec.Capacity[v1.ResourceStorage]
	return cmp.Or(size.Cmp(y.Spec.Capacity[v1.ResourceStorage]), strings.Compare(x.Name, y.Name))
}

// names tells whether a volume is reserved for the claim.
func names(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace && (ref.UID == "" || ref.UID == claim.UID)
}

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

// offers tells whether the volume has all access modes of the claim.
func offers(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(claim.Spec.AccessModes, func(m v1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(pv.Spec.AccessModes, m)
	})
}

// notProvisioned is the provisioner of classes whose volumes people make.
const notProvisioned = "kubernetes.io/no-provisioner"

// provision tells whether a volume for the claim can be made for the node.
func (f *finding) provision(claim *v1.PersistentVolumeClaim, state *cluster.State, n *cluster.Node) {
	class := state.StorageClass(cluster.ClaimClass(claim))
	if class == nil || class.Provisioner == "" || class.Provisioner == notProvisioned || !allowed(class, n) {
		f.nothingToBind = true
		return
	}
	if !enough(claim, class, state, n) {
		f.noSpace = true
		return
	}
	f.provisions = append(f.provisions, claim)
}

// allowed tells whether the class's topologies allow a node: some term of which
// all demands are met. No terms allow every node, an empty one none.
func allowed(class *storagev1.StorageClass, n *cluster.Node) bool {
	if len(class.AllowedTopologies) == 0 {
		return true
	}
	return slices.ContainsFunc(class.AllowedTopologies, func(t v1.TopologySelectorTerm) bool {
		if len(t.MatchLabelExpressions) == 0 {
			return false
		}
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(r v1.TopologySelectorLabelRequirement) bool {
			value, ok := n.Object.Labels[r.Key]
			return !ok || !slices.Contains(r.Values, value)
		})
	})
}

// enough tells whether the driver, if it publishes its capacity, has room for
// the claim where the node can reach it (KEP-1472).
func enough(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, state *cluster.State, n *cluster.Node) bool {
	size, ok := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if !ok {
		return true
	}
	driver := state.CSIDriver(class.Provisioner)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return true
	}
	return slices.ContainsFunc(state.Capacities(class.Name), func(c *storagev1.CSIStorageCapacity) bool {
		limit := c.MaximumVolumeSize
		if limit == nil {
			limit = c.Capacity
		}
		return limit != nil && limit.Value() >= size.Value() && reaches(c, n)
	})
}

func reaches(c *storagev1.CSIStorageCapacity, n *cluster.Node) bool {
	if c.NodeTopology == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
	return err == nil && selector.Matches(labels.Set(n.Object.Labels))
}

func selectorText(c *v1.PersistentVolumeClaim) string {
	s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	if err != nil {
		return "<invalid>"
	}
	return cluster.SelectorText(s)
}
