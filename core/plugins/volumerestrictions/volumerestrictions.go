// Package volumerestrictions keeps pods from sharing what can't be shared: disks of
// four in-tree kinds (GCE, EBS, iSCSI, RBD) on one node, which is a local rule, and
// ReadWriteOncePod claims in the whole cluster (KEP-2485), which is a group rule.
package volumerestrictions

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "VolumeRestrictions"

// Plugin implements framework.Plugin.
type Plugin struct{ volumes.Reclassifier }

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "another pod releases its volume"
}

// restrictedClaims returns the ReadWriteOncePod claims of the pod that some pod
// uses, or will use on the node that it is nominated to, each once. Claims that
// nobody else uses restrict nothing: the pod is signed again when somebody does. If
// a claim doesn't exist, it returns the name of the first such one instead. Ephemeral
// claims are the pod's own, and inherited ones become free before the pod comes.
func restrictedClaims(pod *cluster.Pod, state *cluster.State) (taken []cluster.ClaimKey, missing string) {
	for _, ref := range pod.Claims {
		if ref.Ephemeral || ref.Inherited {
			continue
		}
		claim := state.Claim(pod.Object.Namespace, ref.Name)
		if claim == nil {
			return nil, ref.Name
		}
		key := cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name}
		if volumes.ReadWriteOncePod(claim) && (state.ClaimUsers(key) > 0 || state.ClaimAwaited(key)) && !slices.Contains(taken, key) {
			taken = append(taken, key)
		}
	}
	return taken, ""
}

// exclusiveVolumes returns the pod's volumes of the kinds that can't be shared.
func exclusiveVolumes(pod *cluster.Pod) []*v1.Volume {
	var out []*v1.Volume
	for i := range pod.Object.Spec.Volumes {
		v := &pod.Object.Spec.Volumes[i]
		if v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil {
			out = append(out, v)
		}
	}
	return out
}

// Sign implements framework.Plugin. Claims that nobody uses tell no pods apart.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	list := exclusiveVolumes(pod)
	local.Int(int64(len(list)))
	for _, v := range list {
		sign(v, local)
	}
	if len(pod.Claims) == 0 {
		return
	}
	taken, missing := restrictedClaims(pod, state)
	group.Str(missing)
	for _, key := range taken {
		group.Str(key.Namespace)
		group.Str(key.Name)
	}
}

// sign signs what conflict reads of a volume.
func sign(v *v1.Volume, sig *framework.Signature) {
	if d := v.GCEPersistentDisk; d != nil {
		sig.Str("gce")
		sig.Str(d.PDName)
		sig.Bool(d.ReadOnly)
	}
	if d := v.AWSElasticBlockStore; d != nil {
		sig.Str("aws")
		sig.Str(d.VolumeID)
	}
	if d := v.ISCSI; d != nil {
		sig.Str("iscsi")
		sig.Str(d.IQN)
		sig.Bool(d.ReadOnly)
	}
	if d := v.RBD; d != nil {
		sig.Str("rbd")
		sig.Int(int64(len(d.CephMonitors)))
		for _, m := range d.CephMonitors {
			sig.Str(m)
		}
		sig.Str(d.RBDPool)
		sig.Str(d.RBDImage)
		sig.Bool(d.ReadOnly)
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	var rules framework.Rules
	taken, missing := restrictedClaims(pod, state)
	if missing != "" {
		return rules, volumes.Rejected(Name, volumes.ClaimNotFound(missing))
	}
	if len(taken) > 0 {
		rules.Group = &exclusiveClaims{state: state, claims: taken}
	}
	if list := exclusiveVolumes(pod); len(list) > 0 {
		rules.Local = exclusiveDisks(list)
	}
	return rules, nil
}

// exclusiveDisks implements framework.LocalRule: it rejects nodes where a pod has
// one of the disks.
type exclusiveDisks []*v1.Volume

// Reads implements framework.LocalRule.
func (exclusiveDisks) Reads() framework.Aspects { return framework.ReadsPods }

// EvalNode implements framework.LocalRule, in O(volumes of the node's pods).
func (r exclusiveDisks) EvalNode(n *cluster.Node) (framework.Code, int64) {
	for _, p := range n.Pods {
		for i := range p.Object.Spec.Volumes {
			for _, v := range r {
				if conflict(v, &p.Object.Spec.Volumes[i]) {
					return framework.Reject, 0
				}
			}
		}
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (exclusiveDisks) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) had no available disk"}}
}

// conflict reports whether two volumes are one disk that can't be mounted twice on a
// node: EBS never can, the others if both are read only. One RBD image may be named
// by different monitors of its cluster: one in common makes it the same.
func conflict(a, b *v1.Volume) bool {
	if x, y := a.GCEPersistentDisk, b.GCEPersistentDisk; x != nil && y != nil && x.PDName == y.PDName && !(x.ReadOnly && y.ReadOnly) {
		return true
	}
	if x, y := a.AWSElasticBlockStore, b.AWSElasticBlockStore; x != nil && y != nil && x.VolumeID == y.VolumeID {
		return true
	}
	if x, y := a.ISCSI, b.ISCSI; x != nil && y != nil && x.IQN == y.IQN && !(x.ReadOnly && y.ReadOnly) {
		return true
	}
	x, y := a.RBD, b.RBD
	return x != nil && y != nil && x.RBDPool == y.RBDPool && x.RBDImage == y.RBDImage && !(x.ReadOnly && y.ReadOnly) &&
		slices.ContainsFunc(x.CephMonitors, func(m string) bool { return slices.Contains(y.CephMonitors, m) })
}

// exclusiveClaims implements framework.GroupRule: it rejects every node while a pod
// on some node uses one of the claims. A nominated pod uses its claims while the
// engine evaluates a node with its nominated pods; that's why the rule is there for
// claims that only such a pod will use.
type exclusiveClaims struct {
	state  *cluster.State
	claims []cluster.ClaimKey
}

var (
	_ framework.GroupRule = (*exclusiveClaims)(nil)
	_ framework.Hinter    = (*exclusiveClaims)(nil)
	_ framework.PodReader = (*exclusiveClaims)(nil)
)

// TopologyKeys implements framework.GroupRule: none.
func (*exclusiveClaims) TopologyKeys() []string { return nil }

// HostFacts implements framework.GroupRule: none.
func (*exclusiveClaims) HostFacts() []*cluster.Fact { return nil }

// HostKey implements framework.GroupRule: 0.
func (*exclusiveClaims) HostKey(cluster.NodeIndex) int32 { return 0 }

// StaticKey implements framework.GroupRule: nodes are all alike.
func (*exclusiveClaims) StaticKey(*cluster.NodeBasics) int32 { return 0 }

// Filter implements framework.GroupRule.
func (r *exclusiveClaims) Filter(_ *framework.Groups, out []framework.Code) {
	clear(out)
	if slices.ContainsFunc(r.claims, func(k cluster.ClaimKey) bool { return r.state.ClaimUsers(k) > 0 }) {
		for i := range out {
			out[i] = framework.Reject
		}
	}
}

// Score implements framework.GroupRule: nothing is scored.
func (*exclusiveClaims) Score(*framework.Groups, int64, []int64) {}

// Explain implements framework.GroupRule.
func (*exclusiveClaims) Explain(*framework.Groups, int) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{
		"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"}}
}

// Hint implements framework.Hinter: a pod that used one of the claims leaves.
func (r *exclusiveClaims) Hint(c *cluster.Change) bool {
	return c.Op == cluster.PodRemoved && r.ReadsPod(c.Pod)
}

// ReadsPod implements framework.PodReader: pods that use one of the claims.
func (r *exclusiveClaims) ReadsPod(p *cluster.Pod) bool {
	return slices.ContainsFunc(p.Claims, func(ref cluster.ClaimRef) bool {
		return slices.Contains(r.claims, cluster.ClaimKey{Namespace: p.Object.Namespace, Name: ref.Name})
	})
}
