package dynamicresources

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// Assume implements framework.Assumer (Reserve and PreBind of kube-scheduler): claims that have no
// devices get some on the node, all are reserved for the pod, and a claim is made for extended
// resources that the node lacks. The state's objects are replaced, never changed.
func (p Plugin) Assume(pod *cluster.Pod, n *cluster.Node, state *cluster.State) {
	if !state.ClaimsDevices(pod) {
		return
	}
	d := demandOf(pod, state)
	if d.problem != "" || d.empty() || d.stale {
		return
	}
	claims := slices.Clone(d.wanted)
	if special := d.special(d.lacks(n)); special != nil {
		name(special, pod)
		claims = append(claims, special)
	}
	if len(claims) > 0 {
		how := p.how(state)
		results, err := state.Devices().Allocate(d.asks(state, claims, how), int32(n.Index), n.Object, claims, state.DeviceClasses(), how)
		if err != nil || results == nil {
			return // the pod is here for another reason than that it fits
		}
		for i, c := range claims {
			state.SetObject(reserved(c, pod, &results[i]))
		}
	}
	for _, c := range d.had {
		if !isReserved(c, pod.UID) {
			state.SetObject(reserved(c, pod, nil))
		}
	}
}

// Release implements framework.Assumer: claims are no longer reserved for the pod, and those that are
// reserved for nobody have no devices any more. In a cluster the resource claim controller does that,
// some time after the pod has ended. The claim that was made from the pod's template represents the
// one that its replacement will get; a claim for extended resources is made when the replacement is placed.
func (Plugin) Release(pod *cluster.Pod, state *cluster.State) {
	if !state.ClaimsDevices(pod) {
		return
	}
	if c := state.ExtendedResourceClaim(pod); c != nil {
		state.RemoveObject(cluster.ResourceClaimKind, c.Namespace, c.Name)
	}
	for _, c := range state.ClaimsOf(pod) {
		if isReserved(c, pod.UID) {
			state.SetObject(unreserved(c, pod.UID))
		}
	}
}

// isReserved reports whether a claim is reserved for a pod.
func isReserved(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// reserved returns a claim that is reserved for a pod, too. It gets an allocation when it has none.
func reserved(c *resourcev1.ResourceClaim, pod *cluster.Pod, allocation *resourcev1.AllocationResult) *resourcev1.ResourceClaim {
	out := *c
	out.Status.ReservedFor = append(slices.Clip(c.Status.ReservedFor),
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Object.Name, UID: pod.UID})
	if allocation != nil {
		out.Status.Allocation = allocation
	}
	return &out
}

// unreserved returns a claim that isn't reserved for a pod.
func unreserved(c *resourcev1.ResourceClaim, pod types.UID) *resourcev1.ResourceClaim {
	out := *c
	out.Status.ReservedFor = slices.DeleteFunc(slices.Clone(c.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
	if len(out.Status.ReservedFor) == 0 {
		out.Status.Allocation, out.Status.Devices, out.Status.ReservedFor = nil, nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(c); ref != nil && ref.UID == pod {
		out.DeletionTimestamp = nil
	}
	return &out
}

// name names a claim for a pod's extended resources, and says whose it is. kube-scheduler has the API
// server choose the end of the name; here it follows from the pod, so that who makes it again after
// a crash finds it.
func name(c *resourcev1.ResourceClaim, pod *cluster.Pod) {
	sum := sha256.Sum256([]byte(pod.UID))
	base := pod.Object.Name + "-extended-resources-"
	const longest = 253 - 10 // of a name, but what is added here
	c.Namespace, c.Name = pod.Object.Namespace, base[:min(len(base), longest)]+hex.EncodeToString(sum[:5])
	yes := true
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Object.Name, UID: pod.UID, Controller: &yes}}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, resourcev1.ExtendedResourceClaimAnnotation, "true")
}

// ExtendedResources implements framework.Claimer.
func (Plugin) ExtendedResources(pod *cluster.Pod, n *cluster.Node, state *cluster.State) (out []v1.ContainerExtendedResourceRequest) {
	d := demand{extended: extendedDemand(pod, state)}
	for _, x := range d.lacking(d.lacks(n)) {
		out = append(out, x.mappings...)
	}
	return out
}
