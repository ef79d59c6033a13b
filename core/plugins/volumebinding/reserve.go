package volumebinding

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// Assume implements framework.Assumer (AssumePodVolumes of kube-scheduler): the
// volumes that the pod's delayed claims are to be bound to get a claimRef, and claims
// that are to be provisioned get the node's name as an annotation. The state's
// objects are replaced, never changed, so that a rollback has the old ones.
func (Plugin) Assume(pod *cluster.Pod, n *cluster.Node, state *cluster.State) {
	if len(pod.Claims) == 0 {
		return
	}
	c, why := resolve(pod, state)
	if why != "" || len(c.delayed) == 0 {
		return
	}
	c.readVolumes()
	f := c.find(state, n)
	if !f.ok() {
		return
	}
	for _, b := range f.bindings {
		if pv, changed := reserved(b.volume, b.claim); changed {
			state.SetObject(pv)
		}
	}
	for _, p := range f.provisions {
		claim := p.claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, cluster.AnnSelectedNode, n.Name)
		state.SetObject(claim)
	}
}

// Release implements framework.Assumer. Nothing is free once the pod has ended: claims keep the
// volumes that they are bound to, and those that are provisioned for them.
func (Plugin) Release(*cluster.Pod, *cluster.State) {}

// reserved returns the volume with a reference to the claim; changed is false when
// it has that already.
func reserved(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) (out *v1.PersistentVolume, changed bool) {
	ref := pv.Spec.ClaimRef
	ours := names(pv, claim)
	if ours && ref.UID == claim.UID {
		return pv, false
	}
	out = pv.DeepCopy()
	out.Spec.ClaimRef = &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
	if !ours { // who bound it decides who may take it back
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, cluster.AnnBoundByController, "yes")
	}
	return out, true
}
