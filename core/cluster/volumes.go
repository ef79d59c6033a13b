package cluster

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/core/cluster/migration"
)

// volumeKind: a volume says which nodes can have it, which claim it is for and
// which disk it is. Local rules read the volumes of the claims of the pods on a
// node, those attached to it, and those that a claim could be bound to there.
// Volumes are written back whole, with the claim that VolumeBinding reserves
// them for; a recording lacks names of secrets and parameters of drivers.
var volumeKind = kindOf[*v1.PersistentVolume]{
	new: func() *v1.PersistentVolume { return &v1.PersistentVolume{} },
	reads: func(o *v1.PersistentVolume) *v1.PersistentVolume {
		out := &v1.PersistentVolume{ObjectMeta: labelled(&o.ObjectMeta)}
		out.Annotations = annotated(o.Annotations, v1.BetaStorageClassAnnotation)
		out.Spec = v1.PersistentVolumeSpec{
			Capacity: sized(o.Spec.Capacity), AccessModes: o.Spec.AccessModes, NodeAffinity: o.Spec.NodeAffinity,
			StorageClassName: o.Spec.StorageClassName, VolumeMode: o.Spec.VolumeMode, VolumeAttributesClassName: o.Spec.VolumeAttributesClassName,
			PersistentVolumeSource: trimSource(&o.Spec.PersistentVolumeSource),
		}
		if ref := o.Spec.ClaimRef; ref != nil {
			out.Spec.ClaimRef = &v1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
		}
		out.Status.Phase = o.Status.Phase
		return out
	},
	lookUp: func(b *objects, o *v1.PersistentVolume, sign int) {
		if ref := o.Spec.ClaimRef; ref != nil {
			enlist(b.volumesByClaim, ClaimKey{ref.Namespace, ref.Name}, o, sign)
		} else {
			enlist(b.freeVolumes, freeVolume{VolumeClass(o), pinnedHost(o)}, o, sign)
		}
		if d, ok := b.diskOf(o); ok {
			addTo(b.handles, d.Name, sign)
			if sign > 0 {
				b.disks[o] = d
			} else {
				delete(b.disks, o)
			}
		}
	},
	local: (*State).touchVolume,
}

// trimSource keeps which disk a volume is, and whether it is local. Of the
// in-tree kinds only those count that attach limits know.
func trimSource(in *v1.PersistentVolumeSource) v1.PersistentVolumeSource {
	out := v1.PersistentVolumeSource{GCEPersistentDisk: in.GCEPersistentDisk, AWSElasticBlockStore: in.AWSElasticBlockStore,
		AzureDisk: in.AzureDisk, PortworxVolume: in.PortworxVolume}
	if x := in.CSI; x != nil {
		out.CSI = &v1.CSIPersistentVolumeSource{Driver: x.Driver, VolumeHandle: x.VolumeHandle}
	}
	if x := in.Cinder; x != nil {
		out.Cinder = &v1.CinderPersistentVolumeSource{VolumeID: x.VolumeID, FSType: x.FSType, ReadOnly: x.ReadOnly}
	}
	if in.Local != nil {
		out.Local = &v1.LocalVolumeSource{}
	}
	return out
}

// touchVolume touches the nodes whose local rules read a volume.
func (s *State) touchVolume(o *v1.PersistentVolume, touch func(NodeIndex)) {
	for _, c := range s.objects.claimsByVolume[o.Name] {
		s.touchUsers(ClaimKey{c.Namespace, c.Name}, touch)
	}
	for _, a := range s.objects.attachmentsByVolume[o.Name] {
		s.touchNamed(a.Spec.NodeName, touch)
	}
	if !s.claimable(o) {
		return // bound: what it admits is in the signature of those who use it
	}
	if host := pinnedHost(o); host != "" {
		t := s.Topology(v1.LabelHostname)
		if d, ok := t.ids[host]; ok {
			t.Members(d, touch)
		}
		return
	}
	// The affinity of an in-tree volume may be translated for a node.
	affinity := ParseVolumeAffinity(o)
	s.touchWhere(func(n *Node) bool { return o.Spec.CSI == nil || affinity.Admits(n.Object) }, touch)
}

// claimable reports whether a claim that waits for its consumer could be bound to
// the volume: it names no claim, or one that isn't bound yet.
func (s *State) claimable(pv *v1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return true
	}
	c := s.Claim(ref.Namespace, ref.Name)
	return c != nil && !ClaimBound(c)
}

// freeVolume is what volumes that name no claim are looked up by.
type freeVolume struct {
	class string
	host  string // that the volume's node affinity demands, "" for none
}

// pinnedHost returns the host name that a volume's node affinity demands, ""
// for none.
func pinnedHost(pv *v1.PersistentVolume) string {
	a := pv.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, r := range a.Required.NodeSelectorTerms[0].MatchExpressions {
		if r.Key == v1.LabelHostname && r.Operator == v1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// VolumeClass returns the storage class of a volume, "" for none.
func VolumeClass(v *v1.PersistentVolume) string {
	if class, ok := v.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return v.Spec.StorageClassName
}

// VolumeAffinity is a volume's node affinity, parsed. The zero value admits
// every node.
type VolumeAffinity struct {
	selector *nodeaffinity.LazyErrorNodeSelector
}

// ParseVolumeAffinity reads a volume's node affinity.
func ParseVolumeAffinity(v *v1.PersistentVolume) (out VolumeAffinity) {
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		out.selector = nodeaffinity.NewLazyErrorNodeSelector(a.Required)
	}
	return out
}

// Admits reports whether the affinity admits a node. Labels are all that it reads
// of the node. A selector that doesn't parse admits none.
func (a VolumeAffinity) Admits(n *v1.Node) bool {
	if a.selector == nil {
		return true
	}
	labelled := v1.Node{}
	labelled.Labels = n.Labels
	ok, err := a.selector.Match(&labelled)
	return ok && err == nil
}

// VolumeAdmits reports whether a volume's node affinity admits a node.
func VolumeAdmits(v *v1.PersistentVolume, n *v1.Node) bool {
	return ParseVolumeAffinity(v).Admits(n)
}

// Volume returns a persistent volume, or nil.
func (s *State) Volume(name string) *v1.PersistentVolume {
	return find[*v1.PersistentVolume](s, VolumeKind, "", name)
}

// FreeVolumes returns the volumes of a storage class that name no claim, in two
// lists, each by name: those that any node may have, and those that are pinned
// to the node's host name. Others don't admit the node. The lists are valid
// until the next change.
func (s *State) FreeVolumes(class string, n *v1.Node) (anywhere, here []*v1.PersistentVolume) {
	anywhere = s.objects.freeVolumes[freeVolume{class, ""}]
	if host := n.Labels[v1.LabelHostname]; host != "" {
		here = s.objects.freeVolumes[freeVolume{class, host}]
	}
	return anywhere, here
}

// VolumesClaimed returns the volumes whose claimRef names the claim, by name. The
// list is valid until the next change.
func (s *State) VolumesClaimed(c ClaimKey) []*v1.PersistentVolume { return s.objects.volumesByClaim[c] }

// ReservesAs reports whether an object as it is now reserves what was to be written of it: a volume for the same
// claim, or a claim's provisioning for the same node. Then the write, which others may have made, is needless.
func ReservesAs(now, wanted Object) bool {
	if now.GetUID() != wanted.GetUID() {
		return false
	}
	switch now := now.(type) {
	case *v1.PersistentVolume:
		ref, want := now.Spec.ClaimRef, wanted.(*v1.PersistentVolume).Spec.ClaimRef
		return ref != nil && want != nil && ref.UID != "" && ref.UID == want.UID
	case *v1.PersistentVolumeClaim:
		node := now.Annotations[AnnSelectedNode]
		return node != "" && node == wanted.GetAnnotations()[AnnSelectedNode]
	}
	return false
}

// Disk is what an attach limit counts: a volume of a CSI driver. Disks of equal
// names are one, whichever claims lead to them.
type Disk struct{ Driver, Name string }

// newDisk returns the disk with a handle. No driver's name has a slash.
func newDisk(driver, handle string) Disk { return Disk{driver, driver + "/" + handle} }

// inlineDisks returns the disks in a pod's spec that count as those of the CSI driver which may
// have taken their in-tree plugin over.
func inlineDisks(p *v1.Pod) (out []Disk) {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if driver, handle, ok := migration.InlineSource(v, p.Namespace); ok {
			out = append(out, newDisk(driver, handle))
		}
	}
	return out
}

// diskOf returns the disk of a volume; ok is false for one that no CSI driver serves. For an object
// of the state it is kept: translating a volume of an in-tree plugin copies it. Of one that isn't
// an object of the state, or is no more, it is found anew.
func (b *objects) diskOf(pv *v1.PersistentVolume) (d Disk, ok bool) {
	if d, ok := b.disks[pv]; ok {
		return d, true
	}
	source := migration.Source(pv)
	if source == nil || source.Driver == "" || source.VolumeHandle == "" {
		return Disk{}, false
	}
	return newDisk(source.Driver, source.VolumeHandle), true
}

// DiskOf returns the disk of a volume; ok is false for one that no CSI driver serves.
func (s *State) DiskOf(pv *v1.PersistentVolume) (d Disk, ok bool) { return s.objects.diskOf(pv) }

// VolumeShared reports whether others may lead to the volume's disk, too: several claims name it,
// there is another volume with its driver and handle, or a pod on a node, or nominated to one, has
// the disk in its spec.
func (s *State) VolumeShared(pv *v1.PersistentVolume) bool {
	if len(s.objects.claimsByVolume[pv.Name]) > 1 {
		return true
	}
	d, ok := s.DiskOf(pv)
	return ok && (s.objects.handles[d.Name] > 1 || s.objects.inline[d.Name] > 0 || s.nominated.inline[d.Name] > 0)
}

// HasVolume reports whether some volume is that disk.
func (s *State) HasVolume(d Disk) bool { return s.objects.handles[d.Name] > 0 }
