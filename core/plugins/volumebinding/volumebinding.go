// Package volumebinding keeps a pod to the nodes where its claims are or can be
// bound: bound volumes' node affinity, and for claims that wait for their first
// consumer a volume to bind or a place to provision one.
package volumebinding

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	nodeaffinityrule "github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "VolumeBinding"

// Plugin implements framework.Plugin.
type Plugin struct{ volumes.Reclassifier }

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Assumer      = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "its claims are bound, or a volume or capacity for them comes"
}

// claims are a pod's claims, each once for every volume that uses it.
type claims struct {
	bound   []*v1.PersistentVolumeClaim
	volumes []*v1.PersistentVolume // of the bound ones; nil where it doesn't exist
	admit   []cluster.VolumeAffinity
	delayed []waiting
}

// waiting is a claim that waits for its consumer.
type waiting struct {
	*v1.PersistentVolumeClaim
	// named tells that some volume is reserved for it. While none is, it stands
	// for the like claims of other pods of its class, and whether a volume comes
	// to name this one says nothing.
	named bool
}

// resolve sorts out the pod's claims, or says why there is nowhere for the pod.
func resolve(pod *cluster.Pod, state *cluster.State) (out claims, why string) {
	var immediate bool
	for _, ref := range pod.Claims {
		claim := state.Claim(pod.Object.Namespace, ref.Name)
		switch {
		case claim == nil && ref.Ephemeral:
			return out, fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", ref.Name)
		case claim == nil:
			return out, volumes.ClaimNotFound(ref.Name)
		case claim.Status.Phase == v1.ClaimLost:
			return out, fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", claim.Name, claim.Spec.VolumeName)
		case claim.DeletionTimestamp != nil:
			return out, fmt.Sprintf("persistentvolumeclaim %q is being deleted", claim.Name)
		}
		if ref.Ephemeral {
			if err := volumes.CheckOwner(pod, claim); err != nil {
				return out, err.Error()
			}
		}
		if cluster.ClaimBound(claim) {
			out.bound = append(out.bound, claim)
			pv, affinity := state.Volume(claim.Spec.VolumeName), cluster.VolumeAffinity{}
			if pv != nil {
				affinity = cluster.ParseVolumeAffinity(pv)
			}
			out.volumes, out.admit = append(out.volumes, pv), append(out.admit, affinity)
			continue
		}
		delayed, err := volumes.Delayed(claim, state)
		switch {
		case err != nil && why == "":
			why = err.Error()
		case delayed && claim.Spec.VolumeName == "":
			named := len(state.VolumesClaimed(cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name})) > 0
			out.delayed = append(out.delayed, waiting{claim, named})
		default:
			immediate = true
		}
	}
	if immediate && why == "" {
		why = "pod has unbound immediate PersistentVolumeClaims"
	}
	return out, why
}

// Sign implements framework.Plugin. It signs what the claims lead to rather
// than their names, so that the pods of a StatefulSet are one class.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	if len(pod.Claims) == 0 {
		return
	}
	c, why := resolve(pod, state)
	group.Str(why)
	if why != "" {
		return
	}
	local.Int(int64(len(c.bound)))
	for _, pv := range c.volumes {
		signVolume(pv, local)
	}
	local.Int(int64(len(c.delayed)))
	for i, claim := range c.delayed {
		local.Int(int64(slices.Index(c.delayed, claim))) // one claim in two volumes
		signClaim(&c.delayed[i], local)
	}
}

func signVolume(pv *v1.PersistentVolume, sig *framework.Signature) {
	sig.Bool(pv != nil)
	if pv == nil {
		return
	}
	required := pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil
	sig.Bool(required)
	if required {
		nodeaffinityrule.SignSelector(pv.Spec.NodeAffinity.Required, sig)
	}
	// Where an in-tree plugin has moved to CSI the affinity is translated.
	inTree := required && pv.Spec.CSI == nil && pv.Spec.Local == nil
	sig.OptStr(pv.Name, inTree)
}

func signClaim(c *waiting, sig *framework.Signature) {
	if c.named {
		sig.Str(c.Namespace)
		sig.Str(c.Name)
		sig.Str(string(c.UID))
	}
	sig.Str(cluster.ClaimClass(c.PersistentVolumeClaim))
	size := c.Spec.Resources.Requests[v1.ResourceStorage]
	_, sized := c.Spec.Resources.Requests[v1.ResourceStorage]
	sig.OptStr(size.String(), sized)
	sig.Int(int64(len(c.Spec.AccessModes)))
	for _, m := range c.Spec.AccessModes {
		sig.Str(string(m))
	}
	mode, class := c.Spec.VolumeMode, c.Spec.VolumeAttributesClassName
	sig.Bool(mode != nil && *mode == v1.PersistentVolumeBlock)
	if class == nil {
		class = new(string)
	}
	sig.Str(*class)
	sig.Bool(c.Spec.Selector != nil)
	if c.Spec.Selector != nil {
		sig.Str(selectorText(c.PersistentVolumeClaim))
	}
	node, selected := c.Annotations[cluster.AnnSelectedNode]
	sig.OptStr(node, selected)
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Claims) == 0 {
		return framework.Rules{}, nil
	}
	c, why := resolve(pod, state)
	if why != "" {
		return framework.Rules{}, volumes.Rejected(Name, why)
	}
	return framework.Rules{Local: &rule{state, c}}, nil
}

// rule judges a node for a class by what its claims lead to. The objects that
// it reads touch the nodes that they concern.
type rule struct {
	state *cluster.State
	claims
}

func (*rule) Reads() framework.Aspects { return framework.ReadsObject }

func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if f := r.find(r.state, n); !f.ok() {
		return framework.Final, 0
	}
	return framework.OK, 0
}

func (r *rule) Explain(n *cluster.Node) *framework.Reason {
	f := r.find(r.state, n)
	return &framework.Reason{Plugin: Name, Messages: f.reasons(), Final: true}
}
