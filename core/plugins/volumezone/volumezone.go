// Package volumezone keeps a pod to the zones and regions that its bound volumes
// name in their labels, as volumes did before they had node affinity. What a volume
// has in its node affinity is VolumeBinding's.
package volumezone

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "VolumeZone"

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
	return "a node is added in the zone of its volumes"
}

// topologyLabels are the labels of volumes that name a zone or region, each with the
// label that nodes have in its place since Kubernetes 1.17.
var topologyLabels = []struct{ key, current string }{
	{v1.LabelFailureDomainBetaZone, v1.LabelTopologyZone},
	{v1.LabelFailureDomainBetaRegion, v1.LabelTopologyRegion},
	{v1.LabelTopologyZone, v1.LabelTopologyZone},
	{v1.LabelTopologyRegion, v1.LabelTopologyRegion},
}

// demand is a label that nodes must have with one of the values: key, or where they
// lack that, current.
type demand struct {
	key, current string
	values       []string
}

// demands returns what the pod's volumes demand of nodes. why is the message of
// PreFilter of kube-scheduler when the pod can go nowhere, "" otherwise.
// Ephemeral claims are looked at by VolumeBinding only.
func demands(pod *cluster.Pod, state *cluster.State) (out []demand, why string) {
	for _, ref := range pod.Claims {
		if ref.Ephemeral {
			continue
		}
		if ref.Name == "" {
			return nil, "PersistentVolumeClaim had no name"
		}
		claim := state.Claim(pod.Object.Namespace, ref.Name)
		if claim == nil {
			return nil, volumes.ClaimNotFound(ref.Name)
		}
		if claim.Spec.VolumeName == "" {
			if why := unbound(claim, state); why != "" {
				return nil, why
			}
			continue
		}
		pv := state.Volume(claim.Spec.VolumeName)
		if pv == nil {
			return nil, fmt.Sprintf("persistentvolume %q not found", claim.Spec.VolumeName)
		}
		out = append(out, demandsOf(pv)...)
	}
	return out, ""
}

// unbound returns why the pod of a claim without a volume can't be placed, "" when
// the claim is bound once its pod is.
func unbound(claim *v1.PersistentVolumeClaim, state *cluster.State) string {
	name := cluster.ClaimClass(claim)
	if name == "" {
		return "PersistentVolumeClaim had no pv name and storageClass name"
	}
	class := state.StorageClass(name)
	switch {
	case class == nil:
		return fmt.Sprintf("storageclass.storage.k8s.io %q not found", name)
	case class.VolumeBindingMode == nil:
		return fmt.Sprintf("VolumeBindingMode not set for StorageClass %q", name)
	case *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer:
		return ""
	}
	return "PersistentVolume had no name"
}

// demandsOf reads the labels of a volume; several zones are joined by "__". A label
// with an empty part demands nothing.
func demandsOf(pv *v1.PersistentVolume) []demand {
	var out []demand
	for _, l := range topologyLabels {
		value, ok := pv.Labels[l.key]
		if !ok {
			continue
		}
		values := strings.Split(value, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if !slices.Contains(values, "") {
			out = append(out, demand{l.key, l.current, values})
		}
	}
	return out
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	if len(pod.Claims) == 0 {
		return
	}
	list, why := demands(pod, state)
	group.Str(why)
	local.Int(int64(len(list)))
	for i := range list {
		local.Str(list[i].key)
		local.Str(strings.Join(list[i].values, "__"))
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Claims) == 0 {
		return framework.Rules{}, nil
	}
	list, why := demands(pod, state)
	switch {
	case why != "":
		return framework.Rules{}, volumes.Rejected(Name, why)
	case len(list) == 0:
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: rule(list)}, nil
}

// rule implements framework.LocalRule for the pods of one class.
type rule []demand

// Reads implements framework.LocalRule.
func (rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule. A node that has none of the labels takes
// every pod: the cluster has no zones.
func (r rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	labels := n.Object.Labels
	zoned := slices.ContainsFunc(topologyLabels, func(l struct{ key, current string }) bool { _, ok := labels[l.key]; return ok })
	if !zoned {
		return framework.OK, 0
	}
	for i := range r {
		value, ok := labels[r[i].key]
		if !ok {
			value, ok = labels[r[i].current]
		}
		if !ok || !slices.Contains(r[i].values, value) {
			return framework.Final, 0
		}
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) had no available volume zone"}, Final: true}
}
