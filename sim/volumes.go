package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// This file is the objects that Berth reads as they stand, foremost those of storage, and
// the volume controller with its provisioner. What must hold: each stored change has a new
// resource version, since Berth's writes of reserved volumes and claims are refused when
// the object has changed in between.

// provisioning is how long the storage system takes to make or bind a volume.
const provisioning = 3 * time.Second

// storeObject creates an object, or replaces it by a changed copy, and shows it to Berth.
func (w *World) storeObject(o cluster.Object) {
	key := objectKey{cluster.KindOf(o), o.GetNamespace(), o.GetName()}
	if o.GetResourceVersion() == "" || w.objects[key] != nil {
		w.serial++
		o.SetResourceVersion(fmt.Sprint(w.serial))
	}
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%d/%s/%s", key.kind, key.namespace, key.name)))
	}
	if w.objects[key] == nil {
		w.stored = append(w.stored, key)
	}
	w.objects[key] = o
	w.publish(watchOf(key.kind), step.ObjectSet{Object: o})
}

// removeObject deletes an object, if it is there.
func (w *World) removeObject(o cluster.Object) {
	key := objectKey{cluster.KindOf(o), o.GetNamespace(), o.GetName()}
	if w.objects[key] != nil {
		delete(w.objects, key)
		w.publish(watchOf(key.kind), step.ObjectGone{Kind: key.kind, Namespace: key.namespace, Name: key.name})
	}
}

type objectKey struct {
	kind            cluster.ObjectKind
	namespace, name string
}

// storedInputs returns what Berth's informers list of these objects, in the order in which
// they were created.
func (w *World) storedInputs() []step.Input {
	var out []step.Input
	for _, key := range w.stored {
		if o := w.objects[key]; o != nil {
			out = append(out, step.ObjectSet{Object: o})
		}
	}
	return out
}

// claim returns a claim, nil if there is none of the name.
func (w *World) claim(namespace, name string) *v1.PersistentVolumeClaim {
	c, _ := w.objects[objectKey{cluster.ClaimKind, namespace, name}].(*v1.PersistentVolumeClaim)
	return c
}

// claimsFor creates the claims of a new pod's ephemeral volumes and of its StatefulSet's
// templates, unless they are there, and adds the latter's volumes to the pod.
func (w *World) claimsFor(p *v1.Pod, o *controller) {
	create := func(name string, meta metav1.ObjectMeta, spec v1.PersistentVolumeClaimSpec) {
		if w.claim(p.Namespace, name) == nil {
			meta.Namespace, meta.Name = p.Namespace, name
			w.storeObject(&v1.PersistentVolumeClaim{ObjectMeta: meta, Spec: spec, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}})
		}
	}
	if o != nil {
		for i := range o.claims {
			t := &o.claims[i]
			name := t.Name + "-" + p.Name
			create(name, metav1.ObjectMeta{Labels: t.Labels}, t.Spec)
			p.Spec.Volumes = append(append([]v1.Volume(nil), p.Spec.Volumes...), v1.Volume{Name: t.Name, VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		}
	}
	for i := range p.Spec.Volumes {
		if e := p.Spec.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			create(p.Name+"-"+p.Spec.Volumes[i].Name, metav1.ObjectMeta{
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}}, e.VolumeClaimTemplate.Spec)
		}
	}
}

// bindClaims writes what Berth has reserved for a bind, and does what the volume
// controller and a provisioner do then: they bind reserved volumes, and make others. It
// fails, before it writes anything, if one of the objects has changed since Berth read
// it, other than by the bind of a pod that shares it; and in the end, if a claim of the pod isn't bound.
func (w *World) bindClaims(job *step.Bind) error {
	var writes []cluster.Object
	for _, o := range job.Writes {
		now := w.objects[objectKey{cluster.KindOf(o), o.GetNamespace(), o.GetName()}]
		switch {
		case now != nil && now.GetResourceVersion() == o.GetResourceVersion():
			writes = append(writes, o)
		case now == nil || !cluster.ReservesAs(now, o):
			return fmt.Errorf("reserving volumes: %T %s has been modified", o, o.GetName())
		}
	}
	for _, o := range writes {
		switch o := o.(type) {
		case *v1.PersistentVolume:
			o = o.DeepCopy()
			o.Status.Phase = v1.VolumeBound
			w.storeObject(o)
			if ref := o.Spec.ClaimRef; ref != nil {
				w.markClaimBound(ref.Namespace, ref.Name, o.Name)
			}
		case *v1.PersistentVolumeClaim:
			w.provision(o.DeepCopy(), job.Node)
		}
	}
	for _, name := range job.Claims {
		if c := w.claim(job.Namespace, name); c == nil || !cluster.ClaimBound(c) {
			return fmt.Errorf("binding volumes: claim %s/%s is not bound", job.Namespace, name)
		}
	}
	return nil
}

// provision makes a volume for a claim, in the zone of the node, and binds them.
func (w *World) provision(c *v1.PersistentVolumeClaim, node string) {
	name := "pvc-" + c.Namespace + "-" + c.Name
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec = v1.PersistentVolumeSpec{
		Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, StorageClassName: cluster.ClaimClass(c), VolumeMode: c.Spec.VolumeMode,
		ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
	}
	if class, ok := w.objects[objectKey{cluster.StorageClassKind, "", pv.Spec.StorageClassName}].(*storagev1.StorageClass); ok {
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: name}
	}
	if n := w.nodes[node]; n != nil {
		if zone, ok := n.obj.Labels[v1.LabelTopologyZone]; ok { // most cloud disks are of one zone
			pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
		}
	}
	pv.Status.Phase = v1.VolumeBound
	w.storeObject(pv)
	w.storeObject(c)
	w.markClaimBound(c.Namespace, c.Name, name)
}

// markClaimBound writes what the volume controller does when a claim is bound.
func (w *World) markClaimBound(namespace, name, volume string) {
	c := w.claim(namespace, name)
	if c == nil {
		return
	}
	c = c.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, cluster.AnnBindCompleted, "yes")
	c.Spec.VolumeName = volume
	c.Status.Phase = v1.ClaimBound
	w.storeObject(c)
}

// storageFor reports whether each of a pod's claims is bound to a volume that the node
// reaches, or could be. It takes the claims one by one: two may count on one volume.
func (w *World) storageFor(p *v1.Pod, n *v1.Node) bool {
	for i := range p.Spec.Volumes {
		source := p.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		c := w.claim(p.Namespace, source.ClaimName)
		if c == nil {
			return false
		}
		if pv, ok := w.objects[objectKey{cluster.VolumeKind, "", c.Spec.VolumeName}].(*v1.PersistentVolume); ok {
			if !cluster.VolumeAdmits(pv, n) {
				return false
			}
			continue
		}
		class, ok := w.objects[objectKey{cluster.StorageClassKind, "", cluster.ClaimClass(c)}].(*storagev1.StorageClass)
		if !ok || !w.canProvide(class, n) {
			return false
		}
	}
	return true
}

// canProvide reports whether a volume of the class could be provisioned for a node, or is
// there unclaimed.
func (w *World) canProvide(class *storagev1.StorageClass, n *v1.Node) bool {
	if class.Provisioner != "kubernetes.io/no-provisioner" {
		return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(t v1.TopologySelectorTerm) bool { return selects(t, n) })
	}
	for _, key := range w.stored {
		pv, ok := w.objects[key].(*v1.PersistentVolume)
		if ok && pv.Spec.ClaimRef == nil && pv.Spec.StorageClassName == class.Name && cluster.VolumeAdmits(pv, n) {
			return true
		}
	}
	return false
}

// selects reports whether a node's labels meet all demands of a term. A term without any
// selects no node. The plugin volumebinding has the same rule; the world doesn't ask it, since
// this checks what it has decided.
func selects(t v1.TopologySelectorTerm, n *v1.Node) bool {
	for _, r := range t.MatchLabelExpressions {
		if value, ok := n.Labels[r.Key]; !ok || !slices.Contains(r.Values, value) {
			return false
		}
	}
	return len(t.MatchLabelExpressions) > 0
}
