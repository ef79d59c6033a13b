package cluster

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// claimKind: a claim leads from a pod to a volume. Local rules read the claims of
// the pods on a node. Claims are written back whole, with what VolumeBinding
// reserves; a recording lacks the annotations of others.
var claimKind = kindOf[*v1.PersistentVolumeClaim]{
	new: func() *v1.PersistentVolumeClaim { return &v1.PersistentVolumeClaim{} },
	reads: func(o *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
		out := &v1.PersistentVolumeClaim{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.OwnerReferences = controller(o.OwnerReferences)
		out.Annotations = annotated(o.Annotations, v1.BetaStorageClassAnnotation, AnnBindCompleted, AnnSelectedNode)
		out.Spec = v1.PersistentVolumeClaimSpec{
			AccessModes: o.Spec.AccessModes, Selector: o.Spec.Selector, VolumeName: o.Spec.VolumeName,
			StorageClassName: o.Spec.StorageClassName, VolumeMode: o.Spec.VolumeMode, VolumeAttributesClassName: o.Spec.VolumeAttributesClassName,
			Resources: v1.VolumeResourceRequirements{Requests: sized(o.Spec.Resources.Requests)},
		}
		out.Status.Phase = o.Status.Phase
		return out
	},
	lookUp: func(b *objects, o *v1.PersistentVolumeClaim, sign int) {
		if o.Spec.VolumeName != "" {
			enlist(b.claimsByVolume, o.Spec.VolumeName, o, sign)
		}
	},
	local: func(s *State, o *v1.PersistentVolumeClaim, touch func(NodeIndex)) {
		s.touchUsers(ClaimKey{o.Namespace, o.Name}, touch)
	},
}

// Annotations of claims and volumes, as the controllers of Kubernetes write them.
const (
	// AnnBindCompleted is on claims whose binding to a volume is complete.
	AnnBindCompleted = "pv.kubernetes.io/bind-completed"
	// AnnBoundByController is on volumes and claims that a controller bound to each
	// other.
	AnnBoundByController = "pv.kubernetes.io/bound-by-controller"
	// AnnSelectedNode is on claims that are to be provisioned for a node, which it
	// names.
	AnnSelectedNode = "volume.kubernetes.io/selected-node"
)

// sized keeps the size of a volume or claim.
func sized(in v1.ResourceList) v1.ResourceList {
	if size, ok := in[v1.ResourceStorage]; ok {
		return v1.ResourceList{v1.ResourceStorage: size}
	}
	return nil
}

// ClaimKey names a claim.
type ClaimKey struct{ Namespace, Name string }

// ClaimRef is a persistent volume claim that a pod's volume uses.
type ClaimRef struct {
	Name      string // in the pod's namespace
	Ephemeral bool   // made for the pod from a template
	// Inherited says that the pod stands in for the replacement of one that has the claim: that a
	// claim is for one pod at a time doesn't keep the two apart, since the replacement comes after it.
	Inherited bool
}

// claimRefs returns the claims of a pod's volumes, in their order.
func claimRefs(p *v1.Pod) []ClaimRef {
	var out []ClaimRef
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, ClaimRef{Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out = append(out, ClaimRef{Name: p.Name + "-" + v.Name, Ephemeral: true})
		}
	}
	return out
}

// ClaimClass returns the storage class that a claim asks for, "" for none: the
// beta annotation wins over the field.
func ClaimClass(c *v1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

// ClaimBound reports whether a claim is completely bound to a volume.
func ClaimBound(c *v1.PersistentVolumeClaim) bool {
	_, completed := c.Annotations[AnnBindCompleted]
	return completed && c.Spec.VolumeName != ""
}

// Claim returns a persistent volume claim, or nil.
func (s *State) Claim(namespace, name string) *v1.PersistentVolumeClaim {
	return find[*v1.PersistentVolumeClaim](s, ClaimKind, namespace, name)
}

// ClaimsNaming returns the claims that name the volume, by name. The list is
// valid until the next change.
func (s *State) ClaimsNaming(volume string) []*v1.PersistentVolumeClaim {
	return s.objects.claimsByVolume[volume]
}

// ClaimUsers returns how many pods on nodes name the claim; those that it was
// made for don't count.
func (s *State) ClaimUsers(c ClaimKey) int { return s.objects.claimPods[c] }

// ClaimAwaited reports whether a pod that is nominated to a node names the claim.
func (s *State) ClaimAwaited(c ClaimKey) bool { return s.nominated.claims[c] > 0 }

// ClaimInUse reports whether some pod on a node, or nominated to one, uses the
// claim, or it was made for one.
func (s *State) ClaimInUse(c ClaimKey) bool {
	return len(s.objects.claimNodes[c]) > 0 || s.nominated.users[c] > 0
}

// touchUsers touches the nodes of the pods that use a claim, and those to which such pods are
// nominated: a node has to take a class with these, too. It costs O(nominations) when there are any
// such.
func (s *State) touchUsers(c ClaimKey, touch func(NodeIndex)) {
	for _, n := range s.objects.claimNodes[c] {
		touch(n)
	}
	if s.nominated.users[c] == 0 {
		return
	}
	for _, n := range s.nominated.nodes {
		if slices.ContainsFunc(s.nodes[n].Nominated, func(p *Pod) bool { return p.uses(c) }) {
			touch(n)
		}
	}
}

// uses reports whether a volume of the pod is of a claim.
func (p *Pod) uses(c ClaimKey) bool {
	return p.Object.Namespace == c.Namespace && slices.ContainsFunc(p.Claims, func(x ClaimRef) bool { return x.Name == c.Name })
}

// podAdded books the claims and disks of a pod that was put on a node.
func (b *objects) podAdded(n NodeIndex, p *Pod) {
	for i := range p.Disks {
		b.inline[p.Disks[i].Name]++
	}
	for _, c := range p.Claims {
		key := ClaimKey{p.Object.Namespace, c.Name}
		b.claimNodes[key] = append(b.claimNodes[key], n)
		if !c.Ephemeral {
			b.claimPods[key]++
		}
	}
}

// podRemoved is the inverse of podAdded.
func (b *objects) podRemoved(n NodeIndex, p *Pod) {
	for i := range p.Disks {
		addTo(b.inline, p.Disks[i].Name, -1)
	}
	for _, c := range p.Claims {
		key := ClaimKey{p.Object.Namespace, c.Name}
		list := b.claimNodes[key]
		list[slices.Index(list, n)] = list[len(list)-1]
		if b.claimNodes[key] = list[:len(list)-1]; len(list) == 1 {
			delete(b.claimNodes, key)
		}
		if !c.Ephemeral {
			addTo(b.claimPods, key, -1)
		}
	}
}
