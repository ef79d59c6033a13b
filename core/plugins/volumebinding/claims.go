package volumebinding

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
	"github.com/berthproject/berth/core/framework"
	nodeaffinityrule "github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// This file sorts a pod's claims into bound and delayed ones, and signs what they
// lead to. Claims are told apart by what they lead to rather than by their names,
// so that the pods of a StatefulSet are one class.

// claims are a pod's claims, each once for every volume of the pod that uses it.
type claims struct {
	bound   []boundClaim
	delayed []delayedClaim
}

// boundClaim is what a claim that is completely bound leads to.
type boundClaim struct {
	volume *v1.PersistentVolume // nil when it doesn't exist
	// translated is the volume as it stands and as its CSI driver sees it; affinity and csiAffinity
	// are the node affinities of both. readVolumes sets them: what is signed doesn't need them.
	translated            migration.Volume
	affinity, csiAffinity cluster.VolumeAffinity
}

// readVolumes makes the bound claims ready to be asked of nodes, once for all of them.
func (c *claims) readVolumes() {
	for i := range c.bound {
		b := &c.bound[i]
		if b.volume == nil {
			continue
		}
		b.translated = migration.Translate(b.volume)
		b.affinity = cluster.ParseVolumeAffinity(b.volume)
		if csi := b.translated.AsCSI(); csi != nil {
			b.csiAffinity = cluster.ParseVolumeAffinity(csi)
		}
	}
}

// admits reports whether the volume admits a node.
func (b *boundClaim) admits(n *cluster.Node, csi *storagev1.CSINode) bool {
	pv, err := b.translated.On(csi)
	switch {
	case err != nil:
		return false
	case pv == b.volume:
		return b.affinity.Admits(n.Object)
	}
	return b.csiAffinity.Admits(n.Object)
}

// delayedClaim is a claim that waits for its first consumer.
type delayedClaim struct {
	*v1.PersistentVolumeClaim
	// named tells that some volume names the claim in its claimRef. While none
	// does, the claim stands for the like claims of the other pods of the class, and
	// a volume that comes to name this one says nothing about the others.
	named bool
}

// resolve sorts the pod's claims. why is kube-scheduler's message
// of PreFilter when the pod can go nowhere, "" otherwise.
func resolve(pod *cluster.Pod, state *cluster.State) (out claims, why string) {
	var immediate bool // some claim has to be bound before its pod is placed
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
			out.bound = append(out.bound, boundClaim{volume: state.Volume(claim.Spec.VolumeName)})
			continue
		}
		delayed, err := volumes.Delayed(claim, state)
		switch {
		case err != nil && why == "":
			why = err.Error()
		case delayed && claim.Spec.VolumeName == "":
			named := len(state.VolumesClaimed(cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name})) > 0
			out.delayed = append(out.delayed, delayedClaim{claim, named})
		default:
			immediate = true
		}
	}
	if immediate && why == "" {
		why = "pod has unbound immediate PersistentVolumeClaims"
	}
	return out, why
}

// Sign implements framework.Plugin.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	if len(pod.Claims) == 0 {
		return
	}
	c, why := resolve(pod, state)
	group.Str(why)
	if why != "" {
		return
	}
	local.Int(int64(len(c.bound)))
	for i := range c.bound {
		signVolume(c.bound[i].volume, local)
	}
	local.Int(int64(len(c.delayed)))
	for i, claim := range c.delayed {
		local.Int(int64(slices.Index(c.delayed, claim))) // one claim in two volumes
		signClaim(&c.delayed[i], local)
		local.OptStr(scoredClass(claim.PersistentVolumeClaim), p.curve != nil)
	}
}

// signVolume signs what a bound volume says about nodes: its node affinity. That of
// an in-tree volume is translated where its plugin has moved to CSI, which reads
// more of the volume.
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
	inTree := required && pv.Spec.CSI == nil && pv.Spec.Local == nil
	sig.OptStr(pv.Name, inTree)
}

// signClaim signs which volumes suit a delayed claim, and where one could be
// provisioned for it.
func signClaim(c *delayedClaim, sig *framework.Signature) {
	if c.named {
		sig.Str(c.Namespace)
		sig.Str(c.Name)
		sig.Str(string(c.UID))
	}
	sig.Str(cluster.ClaimClass(c.PersistentVolumeClaim))
	size, sized := c.Spec.Resources.Requests[v1.ResourceStorage]
	sig.OptStr(size.String(), sized)
	sig.Int(int64(len(c.Spec.AccessModes)))
	for _, m := range c.Spec.AccessModes {
		sig.Str(string(m))
	}
	sig.Bool(modeOf(c.Spec.VolumeMode) == v1.PersistentVolumeBlock)
	sig.Str(value(c.Spec.VolumeAttributesClassName))
	sig.Bool(c.Spec.Selector != nil)
	if c.Spec.Selector != nil {
		sig.Str(selectorText(c.PersistentVolumeClaim))
	}
	node, selected := c.Annotations[cluster.AnnSelectedNode]
	sig.OptStr(node, selected)
}

func selectorText(c *v1.PersistentVolumeClaim) string {
	s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	if err != nil {
		return "<invalid>"
	}
	return cluster.SelectorText(s)
}
