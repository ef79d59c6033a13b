package volumebinding

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
)

// notProvisioned is the provisioner of classes whose volumes people make.
const notProvisioned = "kubernetes.io/no-provisioner"

// provision adds the claim to those to be provisioned for the node, or says what
// is in the way (checkVolumeProvisions of kube-scheduler).
func (f *finding) provision(claim *v1.PersistentVolumeClaim, state *cluster.State, n *cluster.Node) {
	class := state.StorageClass(cluster.ClaimClass(claim))
	if class == nil || class.Provisioner == "" || class.Provisioner == notProvisioned || !allowed(class, n) {
		f.nothingToBind = true
		return
	}
	from, ok := enough(claim, class, state, n)
	if !ok {
		f.noSpace = true
		return
	}
	f.provisions = append(f.provisions, provision{claim, from})
}

// allowed reports whether the class's topologies allow a node: some term of which
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

// enough reports whether the driver has room for the claim where the node can reach
// it (KEP-1472), and which capacity has: of several the first by name, where
// kube-scheduler takes any. A driver that doesn't publish its capacity is taken to have
// room, and a claim without a size to find it; the capacity is nil then. What several
// claims of one pod need together isn't looked at, as in kube-scheduler.
func enough(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, state *cluster.State, n *cluster.Node) (*storagev1.CSIStorageCapacity, bool) {
	size, ok := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if !ok {
		return nil, true
	}
	driver := state.CSIDriver(class.Provisioner)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return nil, true
	}
	list := state.Capacities(class.Name)
	i := slices.IndexFunc(list, func(c *storagev1.CSIStorageCapacity) bool {
		limit := c.MaximumVolumeSize
		if limit == nil {
			limit = c.Capacity
		}
		return limit != nil && limit.Value() >= size.Value() && reaches(c, n)
	})
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// reaches reports whether the node can reach a capacity.
func reaches(c *storagev1.CSIStorageCapacity, n *cluster.Node) bool {
	if c.NodeTopology == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
	return err == nil && selector.Matches(labels.Set(n.Object.Labels))
}
