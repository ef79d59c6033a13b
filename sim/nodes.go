package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file is the Node objects of the API server and what happens to them. An object
// is never changed: a changed copy takes its place, since Berth has read the former one.

// node is a node as the API server has it, with its kubelet.
type node struct {
	obj         *v1.Node
	group       string
	instance    *instance
	pods        []*pod
	layers      map[string]bool // image layers that are there
	diskRate    float64
	pulling     bool
	waiting     []*pod // for the pull
	dead        bool   // its instance is gone
	lingers     bool   // it is dead, and the API keeps its object
	duties      nodeDuties
	evicted     int // pods that Berth evicted so that it could go
	counted     bool
	countedAs   *int  // the count of its state in the stats
	cpu, memory int64 // what the stats count of it, when ready
	gpus        int64
}

// adoptNode adds a node that exists at the beginning, with an instance of the
// group that adopts it.
func (w *World) adoptNode(o *v1.Node) {
	for _, g := range w.groups {
		if len(g.cfg.Adopt) > 0 && labels.SelectorFromSet(g.cfg.Adopt).Matches(labels.Set(o.Labels)) {
			m := w.newInstance(g, o.Name)
			m.id = cmp.Or(o.Spec.ProviderID, m.id)
			m.state = registered
			g.target++
			obj := *o
			obj.Spec.ProviderID = m.id
			w.bill(m)
			w.addNode(&obj, m)
			return
		}
	}
	w.addNode(o, nil)
}

// addNode creates a node, with its instance or nil, and has the DaemonSets look at it.
func (w *World) addNode(o *v1.Node, m *instance) *node {
	obj := *o
	if obj.CreationTimestamp.IsZero() {
		obj.CreationTimestamp = w.stamp()
	}
	n := &node{obj: &obj, instance: m, layers: map[string]bool{}, diskRate: math.Inf(1)}
	n.duties.foreign = n.hasTaint(autoscaler.ToBeDeletedTaint) && obj.Annotations[autoscaler.RemovalNote] == ""
	for _, i := range obj.Status.Images {
		for _, name := range i.Names {
			for _, l := range w.images[name] {
				n.layers[l.Digest] = true
			}
		}
	}
	if m != nil {
		m.node, n.group = n, m.group.id
		n.diskRate = limitOf(m.group.cfg.DiskRate)
		for _, name := range m.group.cfg.Images {
			for _, l := range w.images[name] {
				n.layers[l.Digest] = true
			}
		}
	}
	w.nodes[obj.Name] = n
	if w.berth != nil {
		delete(w.berth.leaving, obj.Name) // that was another of its name
	}
	w.stats.nodeChanged(n)
	w.publishNode(n)
	for _, d := range w.daemons {
		d.missing = append(d.missing, n)
		w.reconcile(d)
	}
	w.noteChange()
	return n
}

// changeNode replaces the node's object by a changed copy.
func (w *World) changeNode(n *node, f func(o *v1.Node)) {
	obj := *n.obj
	f(&obj)
	n.obj = &obj
	if obj.Spec.Unschedulable || len(obj.Spec.Taints) > 0 || !n.ready() {
		w.excuseGangs()
	}
	w.stats.nodeChanged(n)
	w.publishNode(n)
	w.noteChange()
}

// ready reports whether the node's object says that it is, as Berth sees it.
func (n *node) ready() bool {
	return slices.ContainsFunc(n.obj.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

func (n *node) hasTaint(key string) bool {
	return slices.ContainsFunc(n.obj.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

// withoutTaint returns a copy of taints without those of a key.
func withoutTaint(taints []v1.Taint, key string) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t v1.Taint) bool { return t.Key == key })
}

// becomeReady writes what the kubelet reports when it is ready, and takes the taint away,
// as the node controller does then.
func (w *World) becomeReady(n *node) {
	w.changeNode(n, func(o *v1.Node) {
		o.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: w.stamp()}}
		o.Spec.Taints = withoutTaint(o.Spec.Taints, v1.TaintNodeNotReady)
	})
	if n.instance != nil {
		w.publishDevices(n, w.devicesDelay(n.instance.group, n.obj.Name))
	}
}

// removeNode takes a node out of the API. Pods that are bound to it stay until the
// garbage collector deletes them. byBerth says whether Berth deleted the node.
func (w *World) removeNode(n *node, byBerth bool) {
	if w.nodes[n.obj.Name] != n {
		return
	}
	delete(w.nodes, n.obj.Name)
	n.dead = true
	if n.inVain() {
		w.stats.InVain = append(w.stats.InVain, n.obj.Name)
	}
	w.excuseGangs()
	w.stats.nodeGone(n)
	w.losePods(n, byBerth)
	w.slicesLost(n)
	w.reconcileUnboundDaemons(n)
	w.publish("nodes", step.NodeGone{Name: n.obj.Name})
	w.noteChange()
}

// losePods ends the pods of a dead node, which Berth may have deleted.
func (w *World) losePods(n *node, byBerth bool) {
	for _, p := range slices.Clone(n.pods) {
		if !p.daemon() {
			p.lost = true
			w.countPod(p)
			w.stats.podLost(p, byBerth)
		}
		w.takeOffNode(p)
		w.collectOrphan(p)
	}
}

func (p *pod) mirror() bool { return p.obj.Annotations[v1.MirrorPodAnnotationKey] != "" }

// daemon reports whether a DaemonSet controls the pod.
func (p *pod) daemon() bool {
	controller := metav1.GetControllerOfNoCopy(p.obj)
	return controller != nil && controller.Kind == "DaemonSet"
}

// sortedNodes returns the nodes by name.
func (w *World) sortedNodes() []*node {
	return slices.SortedFunc(maps.Values(w.nodes), func(a, b *node) int { return strings.Compare(a.obj.Name, b.obj.Name) })
}

// sortedPods returns the pods of the API by name.
func (w *World) sortedPods() []*pod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *pod) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.obj.UID, b.obj.UID))
	})
}
