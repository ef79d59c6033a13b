package testkit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws histories: changes of a cluster's state, one after the other, each written
// down so that a failing property can print how its state came to be.

// World takes a state through a random history.
type World struct {
	State   *cluster.State
	Nodes   []string // names of all nodes that may be there
	Group   string   // the node group that they are in, "" for none
	next    int      // number of the last pod
	storage bool     // the history is about storage, too
}

// NewWorld returns a world over an empty state, with nodes n0, n1, … still to be added.
func NewWorld(s *cluster.State, nodes int) *World { return &World{State: s, Nodes: Names("n", nodes)} }

// Furnish draws whether the history is about storage: then the state gets objects of
// storage and all nodes, many pods have volumes, and a quarter of the changes are of
// storage.
func (w *World) Furnish(t *rapid.T) {
	if w.storage = maybe(t, 40, "about storage"); !w.storage {
		return
	}
	for _, o := range RandomStorage(t) {
		w.State.SetObject(o)
	}
	for _, name := range w.Nodes {
		w.State.SetNode(w.State.Schema.ParseNode(w.node(t, name), w.Group))
	}
}

// Pod draws a pod. Where the history is about storage, many pods have nothing but volumes.
func (w *World) Pod(t *rapid.T, name string) *v1.Pod {
	if w.storage && maybe(t, 60, "stores") {
		p := Pod(name).Namespaced(pick(t, spaces, "ns")).Obj() // only rules of storage can reject it
		AddVolumes(t, p)
		return p
	}
	return RandomPod(t, name)
}

// Siblings draws pods as those of a StatefulSet: they differ only in their names and in the
// names of their claims, which are equal and wait for their first consumer.
func (w *World) Siblings(t *rapid.T, names ...string) []*v1.Pod {
	base := w.Pod(t, "sibling")
	base.Namespace, base.Spec.Volumes = "default", nil
	class := pick(t, []string{"static", "static", "fast", "zoned"}, "sibling class")
	var out []*v1.Pod
	for _, name := range names {
		c := randomClaim(t, "default", "of-"+name)
		c.Spec = v1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: modes[:1],
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}
		c.Annotations, c.Status, c.DeletionTimestamp = nil, v1.PersistentVolumeClaimStatus{}, nil
		w.State.SetObject(c)
		p := base.DeepCopy()
		p.Name, p.UID = name, types.UID("pod-"+name)
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}}}
		out = append(out, p)
	}
	return out
}

// node draws a node. Where the history is about storage, most nodes have room, so that
// storage decides.
func (w *World) node(t *rapid.T, name string) *v1.Node {
	n := RandomNode(t, name)
	if w.storage && maybe(t, 80, "roomy") {
		n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("64")
		n.Spec.Taints, n.Spec.Unschedulable = nil, false
	}
	return n
}

// Change makes one random change and returns what it was.
func (w *World) Change(t *rapid.T) string {
	k := Uniform(t, 100, "what")
	if w.storage && maybe(t, 25, "storage") {
		return w.changeStorage(t)
	}
	switch {
	case k < 32:
		return w.placePod(t)
	case k < 37:
		return w.changePod(t)
	case k < 52:
		uid := w.anyPod(t)
		w.State.Remove(uid)
		return "remove " + string(uid)
	case k < 68:
		name := pick(t, w.Nodes, "node")
		w.State.SetNode(w.State.Schema.ParseNode(w.node(t, name), w.Group))
		return "set " + name
	case k < 72:
		name := pick(t, w.Nodes, "node")
		w.State.RemoveNode(name)
		return "remove " + name
	case k < 79:
		return w.changeStorage(t)
	case k < 80:
		if maybe(t, 60, "group") {
			return w.changePodGroup(t)
		}
		return w.changeDeviceClass(t)
	case k < 83:
		return w.changeBudget(t)
	case k < 84:
		return w.changeHeadroom(t)
	case k < 90:
		return w.nominate(t)
	case k < 95:
		return w.changeNamespace(t, k == 94)
	default:
		return w.changeWorkload(t, k >= 98)
	}
}

// placePod puts a new pod on a node, whatever rules say: states that no scheduler would reach must be
// counted right, too.
func (w *World) placePod(t *rapid.T) string {
	w.next++
	obj, node := w.Pod(t, fmt.Sprint("p", w.next)), pick(t, w.Nodes, "on")
	placeOn(t, obj, node)
	p := w.State.Schema.ParsePod(obj)
	w.State.Place(p, node)
	return fmt.Sprintf("place %s on %s", p.Name(), node)
}

// changePod changes a part of a pod that is placed, its labels among them, where it is.
func (w *World) changePod(t *rapid.T) string {
	uid := w.anyPod(t)
	old, n := w.State.PodOn(uid), w.State.NodeOf(uid)
	if n == nil {
		return "nothing"
	}
	obj := old.Object.DeepCopy()
	Perturb(t, obj)
	obj.UID, obj.Name, obj.Namespace = old.Object.UID, old.Object.Name, old.Object.Namespace
	w.State.Place(w.State.Schema.ParsePod(obj), n.Name)
	return fmt.Sprintf("change %s on %s, which has the labels %v", old.Name(), n.Name, obj.Labels)
}

// changeStorage sets or removes an object of storage.
func (w *World) changeStorage(t *rapid.T) string {
	o, gone := RandomStored(t)
	if gone {
		w.State.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
		return fmt.Sprintf("remove %T %s/%s", o, o.GetNamespace(), o.GetName())
	}
	w.State.SetObject(o)
	return fmt.Sprintf("set %T %s/%s", o, o.GetNamespace(), o.GetName())
}

// changeBudget sets or removes a disruption budget.
func (w *World) changeBudget(t *rapid.T) string {
	b, gone := RandomBudget(t)
	if gone {
		w.State.RemoveObject(cluster.BudgetKind, b.Namespace, b.Name)
		return fmt.Sprintf("remove budget %s/%s", b.Namespace, b.Name)
	}
	w.State.SetObject(b)
	return fmt.Sprintf("set budget %s/%s of %v to %d", b.Namespace, b.Name, b.Spec.Selector, b.Status.DisruptionsAllowed)
}

// changeNamespace sets a namespace's labels, or removes it while pods are in it.
func (w *World) changeNamespace(t *rapid.T, gone bool) string {
	if gone {
		name := pick(t, spaces, "gone")
		w.State.RemoveObject(cluster.NamespaceKind, "", name)
		return "remove namespace " + name
	}
	n := RandomNamespace(t)
	w.State.SetObject(n)
	return fmt.Sprintf("set namespace %s %v", n.Name, n.Labels)
}

// changeWorkload sets or removes a workload. Its pods stay.
func (w *World) changeWorkload(t *rapid.T, gone bool) string {
	wl := RandomWorkload(t)
	if gone {
		w.State.RemoveWorkload(wl.Kind, wl.Namespace, wl.Name)
		return fmt.Sprintf("remove %s %s/%s", wl.Kind, wl.Namespace, wl.Name)
	}
	w.State.SetWorkload(wl)
	return fmt.Sprintf("set %s %s/%s", wl.Kind, wl.Namespace, wl.Name)
}

// headroomIDs are the headrooms that there may be.
var headroomIDs = []cluster.HeadroomID{"room0", "room1"}

// headroomAnnotation is the annotation by which headrooms admit pods.
var headroomAnnotation = cluster.Annotation{Key: "autoscaling.x-k8s.io/consume-provisioning-request", Value: "r"}

// changeHeadroom sets or removes a headroom. Its stand-ins may outlive it here: then they
// keep room from everybody.
func (w *World) changeHeadroom(t *rapid.T) string {
	id := pick(t, headroomIDs, "headroom")
	if maybe(t, 25, "gone") {
		w.State.RemoveHeadroom(id)
		return fmt.Sprintf("remove headroom %s", id)
	}
	h := RandomHeadroom(t, id)
	w.State.SetHeadroom(h)
	return fmt.Sprintf("set headroom %s for pods of %s by %v %v %v %v", id, h.Namespace, h.Controller, h.Labels, h.Annotations, h.Group)
}

// RandomHeadroom draws for which pods room is kept.
func RandomHeadroom(t *rapid.T, id cluster.HeadroomID) *cluster.Headroom {
	h := &cluster.Headroom{ID: id, Namespace: pick(t, spaces, "of headroom")}
	switch Uniform(t, 5, "by") {
	case 4:
		h.Namespace, h.Group = "", &cluster.GroupRoom{Key: cluster.PodGroupKey{Namespace: pick(t, spaces, "ns"), Name: pick(t, podGroups, "group")}, Priority: int32(pick(t, []int{0, 5, 100}, "priority")),
			Preempts: maybe(t, 50, "preempts"), Within: time.Duration(Uniform(t, 3, "within")) * time.Minute}
	case 0:
		h.Controller = &cluster.Controller{Kind: pick(t, []string{"ReplicaSet", "StatefulSet"}, "kind"), Name: pick(t, apps, "owner")}
	case 1:
		h.Annotations = []cluster.Annotation{headroomAnnotation}
	case 2:
		h.Labels = map[string]string{"app": pick(t, apps, "app")}
	default:
		h.Labels = map[string]string{} // every pod of the namespace
	}
	return h
}

// nominate nominates a pod that isn't placed, a stand-in among them, or ends a nomination.
func (w *World) nominate(t *rapid.T) string {
	if list := w.State.Nominations(); len(list) > 0 && maybe(t, 40, "end") {
		n := list[Uniform(t, len(list), "nomination")]
		w.State.Nominate(n.Pod, "")
		return "end the nomination of " + n.Pod.Name()
	}
	p := w.State.Schema.ParsePod(w.Pod(t, fmt.Sprint("nominee", Uniform(t, 4, "nominee"))))
	if _, placed := w.State.Placed(p.UID); placed {
		return "nothing"
	}
	node := pick(t, w.Nodes, "to")
	if maybe(t, 40, "stands in") {
		p.StandIn = pick(t, headroomIDs, "for")
	}
	if maybe(t, 30, "for a place") {
		w.State.KeepPlace(p, node)
	} else {
		w.State.Nominate(p, node)
	}
	return fmt.Sprintf("nominate %s of priority %d, standing in for %q, to %s", p.Name(), p.Priority, p.StandIn, node)
}

// anyPod draws the UID of a pod that was placed once, "" when none was.
func (w *World) anyPod(t *rapid.T) types.UID {
	if w.next == 0 {
		return ""
	}
	return types.UID(fmt.Sprint("pod-p", rapid.IntRange(1, w.next).Draw(t, "pod")))
}
