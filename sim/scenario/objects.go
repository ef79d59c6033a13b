package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/tools/checker"
)

// Annotations of pods in manifests.
const (
	// ArriveAfter is how long after the beginning the pod comes.
	ArriveAfter = "berth.dev/arrive-after"
	// RunFor is how long it runs: a duration, or two with ".." between them for
	// one that is drawn for each pod.
	RunFor = "berth.dev/run-for"
)

// objects gathers what a run begins with and what comes.
type objects struct {
	run     *Run
	left    map[string]int // kinds left out
	serial  int
	defined map[string]bool // kind/namespace/name
}

func kindOf(kind string) runtime.Object {
	switch kind {
	case "Node":
		return &v1.Node{}
	case "Pod":
		return &v1.Pod{}
	case "Service":
		return &v1.Service{}
	case "ReplicationController":
		return &v1.ReplicationController{}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "DaemonSet":
		return &appsv1.DaemonSet{}
	case "Job":
		return &batchv1.Job{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "Namespace":
		return &v1.Namespace{}
	case "PersistentVolumeClaim":
		return &v1.PersistentVolumeClaim{}
	case "PersistentVolume":
		return &v1.PersistentVolume{}
	case "StorageClass":
		return &storagev1.StorageClass{}
	case "CSINode":
		return &storagev1.CSINode{}
	case "CSIDriver":
		return &storagev1.CSIDriver{}
	case "CSIStorageCapacity":
		return &storagev1.CSIStorageCapacity{}
	case "VolumeAttachment":
		return &storagev1.VolumeAttachment{}
	}
	return nil
}

// Kinds are those that the virtual world knows.
var Kinds = []string{"Node", "Pod", "Service", "ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget",
	"Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"}

func (o *objects) inline(raw map[string]any) error {
	text, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	kind := fmt.Sprint(raw["kind"])
	obj := kindOf(kind)
	if obj == nil {
		return fmt.Errorf("kind is %q; the kinds are %s", kind, strings.Join(Kinds, ", "))
	}
	strict, err := kjson.UnmarshalStrict(text, obj)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return errors.Join(strict...)
	}
	return o.put(obj)
}

// file adds the objects of a manifest or dump.
func (o *objects) file(path string) error {
	return readManifest(path, func(raw []byte, _ int) error {
		var head struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return fmt.Errorf("this is no Kubernetes object: %w", err)
		}
		if head.Kind == "" {
			return errors.New("kind is missing; a Kubernetes object was expected")
		}
		obj := kindOf(head.Kind)
		if obj == nil {
			if o.left == nil {
				o.left = map[string]int{}
			}
			o.left[head.Kind]++
			return nil
		}
		if err := json.Unmarshal(raw, obj); err != nil {
			return fmt.Errorf("%s %s/%s: %w", head.Kind, head.Metadata.Namespace, head.Metadata.Name, err)
		}
		return o.put(obj)
	})
}

func namespaced(obj runtime.Object) bool {
	switch obj.(type) {
	case *v1.Node, *v1.Namespace, *v1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode, *storagev1.CSIDriver, *storagev1.VolumeAttachment:
		return false
	}
	return true
}

// put adds one object, at the beginning or when its annotation says.
func (o *objects) put(obj runtime.Object) error {
	meta := obj.(metav1.Object)
	if meta.GetName() == "" {
		return errors.New("metadata.name is missing; give the object a name")
	}
	if namespaced(obj) && meta.GetNamespace() == "" {
		meta.SetNamespace(metav1.NamespaceDefault)
	}
	p, ok := obj.(*v1.Pod)
	if !ok {
		return o.add(obj)
	}
	if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return nil // over: it takes nothing
	}
	if _, err := ParseRunFor(p.Annotations[RunFor]); err != nil {
		return fmt.Errorf("pod %s/%s: annotation %s %w", p.Namespace, p.Name, RunFor, err)
	}
	after := p.Annotations[ArriveAfter]
	if after == "" {
		return o.add(obj)
	}
	d, err := time.ParseDuration(after)
	if err != nil || d < 0 {
		return fmt.Errorf("pod %s/%s: annotation %s is %q; write a duration such as 90s, not negative", p.Namespace, p.Name, ArriveAfter, after)
	}
	o.arrive(d, 0, obj)
	return nil
}

func (o *objects) add(obj runtime.Object) error {
	if err := o.once(obj); err != nil {
		return err
	}
	o.run.Objects = append(o.run.Objects, obj)
	return nil
}

// once refuses a second object of the same name.
func (o *objects) once(obj runtime.Object) error {
	meta := obj.(metav1.Object)
	key := fmt.Sprintf("%T/%s/%s", obj, meta.GetNamespace(), meta.GetName())
	if o.defined == nil {
		o.defined = map[string]bool{}
	}
	if o.defined[key] {
		return fmt.Errorf("%s %s/%s is there twice; names must differ", strings.TrimLeft(fmt.Sprintf("%T", obj), "*v1."), meta.GetNamespace(), meta.GetName())
	}
	o.defined[key] = true
	if meta.GetUID() == "" {
		o.serial++
		meta.SetUID(types.UID(fmt.Sprintf("%s/%s#%d", meta.GetNamespace(), meta.GetName(), o.serial)))
	}
	return nil
}

func (o *objects) arrive(at, deleteAfter time.Duration, objs ...runtime.Object) {
	for _, obj := range objs {
		meta := obj.(metav1.Object)
		if meta.GetUID() == "" {
			o.serial++
			meta.SetUID(types.UID(fmt.Sprintf("%s/%s#%d", meta.GetNamespace(), meta.GetName(), o.serial)))
		}
	}
	o.run.Arrivals = append(o.run.Arrivals, Arrival{At: at, Objects: objs, DeleteAfter: deleteAfter})
}

// nodes adds equal nodes.
func (o *objects) nodes(n *Nodes) error {
	count, suffix := n.Count, true
	if count == 0 {
		count, suffix = 1, false
	}
	for i := range count {
		g := simulatedgroup.GroupConfig{Name: n.Name, Template: n.Template}
		name := n.Name
		if suffix {
			name = fmt.Sprintf("%s-%d", n.Name, i)
		}
		node := g.NewNode(name)
		delete(node.Labels, simulatedgroup.GroupLabel)
		node.Spec.ProviderID = ""
		if len(n.Zones) > 0 {
			node.Labels[v1.LabelTopologyZone] = n.Zones[i%len(n.Zones)]
		}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		if err := o.add(node); err != nil {
			return err
		}
	}
	return nil
}

// workload adds what comes.
func (o *objects) workload(w *Workload, seed uint64) {
	namespace := cmp.Or(w.Namespace, metav1.NamespaceDefault)
	copies := max(w.Copies, 1)
	total := copies
	if w.Kind == "" || w.Kind == "Pod" {
		total = copies * w.Count
	}
	at := w.arrivals(total, seed)
	for i := range copies {
		name := w.Name
		if copies > 1 {
			name = fmt.Sprintf("%s-%d", w.Name, i)
		}
		template := w.Template.DeepCopy()
		if template.Labels == nil {
			template.Labels = map[string]string{}
		}
		if template.Labels["app"] == "" {
			template.Labels["app"] = name
		}
		if w.RunFor != nil {
			if template.Annotations == nil {
				template.Annotations = map[string]string{}
			}
			template.Annotations[RunFor] = w.RunFor.Min.Duration.String() + ".." + w.RunFor.Max.Duration.String()
		}
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": template.Labels["app"]}}
		with := o.around(w, meta, selector)
		replicas := int32(w.Count)
		switch w.Kind {
		case "", "Pod":
			for k := range w.Count {
				p := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
				p.Namespace, p.Name = namespace, fmt.Sprintf("%s-%d", name, k)
				objs := []runtime.Object{p}
				if k == 0 {
					objs = append(with, p)
				}
				o.arrive(at[i*w.Count+k], w.DeleteAfter.Duration, objs...)
			}
		case "Job":
			parallel := replicas
			if w.Parallelism > 0 {
				parallel = int32(w.Parallelism)
			}
			j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Completions: &replicas, Parallelism: &parallel, Template: *template}}
			o.arrive(at[i], w.DeleteAfter.Duration, append(with, j)...)
		case "ReplicaSet":
			rs := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: *template}}
			o.arrive(at[i], w.DeleteAfter.Duration, append(with, rs)...)
		case "StatefulSet":
			ss := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: *template}}
			o.arrive(at[i], w.DeleteAfter.Duration, append(with, ss)...)
		case "DaemonSet":
			ds := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: *template}}
			o.arrive(at[i], w.DeleteAfter.Duration, append(with, ds)...)
		}
	}
}

// around returns the Service and the disruption budget of a copy.
func (o *objects) around(w *Workload, meta metav1.ObjectMeta, selector *metav1.LabelSelector) (out []runtime.Object) {
	if w.Service {
		out = append(out, &v1.Service{ObjectMeta: *meta.DeepCopy(), Spec: v1.ServiceSpec{Selector: selector.MatchLabels}})
	}
	if w.MaxUnavailable != nil {
		most := intstr.FromInt32(int32(*w.MaxUnavailable))
		out = append(out, &policyv1.PodDisruptionBudget{ObjectMeta: *meta.DeepCopy(),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &most}})
	}
	return out
}

// arrivals returns when each of n comes, in order.
func (w *Workload) arrivals(n int, seed uint64) []time.Duration {
	out := make([]time.Duration, n)
	over := float64(w.Arrive.Over.Duration)
	if w.Arrive.Pattern == "poisson" {
		// n points of a Poisson process in a window are uniform in it.
		for i := range out {
			out[i] = time.Duration(seeded.Float(seed, "arrive", w.Namespace, w.Name, fmt.Sprint(i)) * over)
		}
		slices.Sort(out)
	} else {
		for i := range out {
			out[i] = time.Duration(over * float64(i) / float64(max(n-1, 1)))
		}
	}
	for i := range out {
		out[i] += w.Arrive.After.Duration
	}
	return out
}

// finish settles what depends on all objects: pods on absent nodes are left
// out, arrivals are put in order.
func (o *objects) finish() error {
	nodes := map[string]bool{}
	pods := 0
	for _, obj := range o.run.Objects {
		if n, ok := obj.(*v1.Node); ok {
			nodes[n.Name] = true
		}
	}
	absent := 0
	example := ""
	o.run.Objects = slices.DeleteFunc(o.run.Objects, func(obj runtime.Object) bool {
		p, ok := obj.(*v1.Pod)
		if ok {
			pods++
		}
		if !ok || p.Spec.NodeName == "" || nodes[p.Spec.NodeName] {
			return false
		}
		absent++
		if example == "" {
			example = fmt.Sprintf("%s/%s on %s", p.Namespace, p.Name, p.Spec.NodeName)
		}
		return true
	})
	if absent > 0 {
		o.run.Notes = append(o.run.Notes, fmt.Sprintf("%d pods are on nodes that the input doesn't have and are left out, such as %s", absent, example))
	}
	for _, kind := range slices.Sorted(maps.Keys(o.left)) {
		o.run.Notes = append(o.run.Notes, fmt.Sprintf("%d objects of kind %s are left out: the virtual world doesn't know it", o.left[kind], kind))
	}
	if pods == 0 && len(o.run.Arrivals) == 0 && !slices.ContainsFunc(o.run.Objects, func(obj runtime.Object) bool {
		switch obj.(type) {
		case *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
			return true
		}
		return false
	}) {
		o.run.Notes = append(o.run.Notes, "there is no workload: no pod exists or comes")
	}
	o.noteUnfit()
	slices.SortStableFunc(o.run.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// noteUnfit says of which node group no pod would fit an empty node.
func (o *objects) noteUnfit() {
	var shapes []*v1.PodSpec
	seen := map[*v1.Container]bool{} // pods of one template share its containers
	look := func(obj runtime.Object) {
		var spec *v1.PodSpec
		switch x := obj.(type) {
		case *v1.Pod:
			spec = &x.Spec
		case *appsv1.ReplicaSet:
			spec = &x.Spec.Template.Spec
		case *appsv1.StatefulSet:
			spec = &x.Spec.Template.Spec
		case *batchv1.Job:
			spec = &x.Spec.Template.Spec
		}
		if spec != nil && len(spec.Containers) > 0 && !seen[&spec.Containers[0]] {
			seen[&spec.Containers[0]] = true
			shapes = append(shapes, spec)
		}
	}
	for _, obj := range o.run.Objects {
		look(obj)
	}
	for i := range o.run.Arrivals {
		for _, obj := range o.run.Arrivals[i].Objects {
			look(obj)
		}
	}
	for i := range o.run.Spec.NodeGroups {
		g := &o.run.Spec.NodeGroups[i]
		node := g.NewNode(g.Name)
		if len(shapes) > 0 && !slices.ContainsFunc(shapes, func(s *v1.PodSpec) bool {
			return checker.Fits(&v1.Pod{Spec: *s}, node, []*v1.Node{node}, nil)
		}) {
			o.run.Notes = append(o.run.Notes, fmt.Sprintf("node group %s: no pod of the input fits its template, so it will not grow", g.Name))
		}
	}
}

func setRunFor(meta *metav1.ObjectMeta, d time.Duration) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[RunFor] = d.String()
}

// ParseRunFor reads the annotation; nil for a pod that runs for ever.
func ParseRunFor(text string) (*simulatedgroup.Span, error) {
	if text == "" {
		return nil, nil
	}
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	a, err1 := time.ParseDuration(low)
	b, err2 := time.ParseDuration(high)
	if err1 != nil || err2 != nil || a < 0 || b < a || b > math.MaxInt64/4 {
		return nil, fmt.Errorf("is %q; write a duration such as 90s, or two such as 1m..5m", text)
	}
	return &simulatedgroup.Span{Min: metav1.Duration{Duration: a}, Max: metav1.Duration{Duration: b}}, nil
}
