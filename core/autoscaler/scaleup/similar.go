package scaleup

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// Which node groups are similar, as Cluster Autoscaler's processors/nodegroupset decides it:
// a node of each has the same capacity, about as much memory, about as much to allocate and
// free, and the same labels but for those that say where and which the node is. With
// --balancing-label, similar groups have the same values of these labels, and that is all.
//
// A group's capacity is that of the provider's template: Berth doesn't keep the capacity of
// live nodes. A template without one has what it can allocate for it. All else is compared as
// new nodes are planned (template.go). Nodes of similar groups have the same devices, too.

// placeLabels say where a node is, or which one: similar groups may differ in them. Beside
// those of Kubernetes they are the ones of all providers that Cluster Autoscaler ignores for
// Cluster API, which runs on any of them.
var placeLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	"beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
	"alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup", "k8s.amazonaws.com/eniConfig",
	"lifecycle", "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id",
	"agentpool", "kubernetes.azure.com/agentpool", "topology.disk.csi.azure.com/zone",
	"topology.gke.io/zone",
	"topology.diskplugin.csi.alibabacloud.com/zone",
	"ibm-cloud.kubernetes.io/worker-id", "vpc-block-csi-driver-labels", "ibm-cloud.kubernetes.io/vpc-instance-id",
}

// balances reports whether similar groups share what is bought.
func (b *builder) balances() bool {
	return b.req.Balancing.Mode == autoscaler.BalanceAlways || b.req.Balancing.Mode == autoscaler.BalanceByExpander && b.Expander.BuysMix()
}

// similar returns the other groups that share what is bought of one, by ID; none when groups
// aren't balanced. Where the price decides what is bought, they have the same. It is found
// once in a plan, in O(groups).
func (b *builder) similar(m *model) []*model {
	if !b.balances() {
		return nil
	}
	if !m.compared {
		m.compared = true
		for _, g := range b.State.Groups() {
			if o := b.models[g.ID]; o != m && (!b.Expander.BuysMix() || g.Price == m.group.Price) && b.areSimilar(m, o) {
				m.similar = append(m.similar, o)
			}
		}
	}
	return m.similar
}

func (b *builder) areSimilar(x, y *model) bool {
	how := &b.req.Balancing
	if len(how.Labels) > 0 {
		return !slices.ContainsFunc(how.Labels, func(key string) bool {
			one, has := x.info.Object.Labels[key]
			other, too := y.info.Object.Labels[key]
			return !has || !too || one != other
		})
	}
	return slices.EqualFunc(x.key.devices, y.key.devices, (*devices.Published).Same) && sameCapacity(x, y, how.MemoryDifference) && sameLabels(x, y, how.IgnoredLabels) &&
		about(b.blank(x).Allocatable, b.blank(y).Allocatable, how.AllocatableDifference) &&
		near(x.info.AllowedPods, y.info.AllowedPods, how.AllocatableDifference) &&
		about(free(b.blank(x)), free(b.blank(y)), how.FreeDifference)
}

// sameCapacity reports whether nodes of two groups have the same resources, of memory about as
// much.
func sameCapacity(x, y *model, memory float64) bool {
	one, other := capacity(x.group), capacity(y.group)
	if len(one) != len(other) {
		return false
	}
	for name, q := range one {
		o, has := other[name]
		if !has || q.Cmp(o) != 0 && (name != v1.ResourceMemory || !near(q.Value(), o.Value(), memory)) {
			return false
		}
	}
	return true
}

func capacity(g *cluster.NodeGroup) v1.ResourceList {
	if status := &g.Template.Object.Status; len(status.Capacity) == 0 {
		return status.Allocatable
	}
	return g.Template.Object.Status.Capacity
}

// sameLabels reports whether two groups have the same labels but for those of a place, and the
// ignored.
func sameLabels(x, y *model, ignored []string) bool {
	within := func(x, y *model) bool {
		for key, value := range x.info.Object.Labels {
			if slices.Contains(placeLabels, key) || slices.Contains(ignored, key) {
				continue
			}
			if other, has := y.info.Object.Labels[key]; !has || other != value {
				return false
			}
		}
		return true
	}
	return within(x, y) && within(y, x)
}

// free returns what the pods of a node leave of it.
func free(n *cluster.Node) cluster.Resources {
	out := n.Allocatable.Clone()
	out.Add(&n.Requested, -1)
	return out
}

// about reports whether all resources are within a share of the larger of each other.
func about(x, y cluster.Resources, ratio float64) bool {
	for _, of := range []*cluster.Resources{&x, &y} {
		for id := range of.All() {
			if !near(x.At(id), y.At(id), ratio) {
				return false
			}
		}
	}
	return true
}

func near(x, y int64, ratio float64) bool {
	return math.Abs(float64(x)-float64(y)) <= max(float64(x), float64(y))*ratio
}
