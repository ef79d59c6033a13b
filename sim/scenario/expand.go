package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file makes objects of what a scenario says in short: equal nodes, workload
// and traces. Objects that come together are one Arrival; the times of arrivals
// depend on the seed and on the workload's name alone, so that they are the same
// under every policy.

// nodes adds equal nodes.
// They are ready and of no group, so the autoscaler never removes them.
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
		for _, slice := range simulateddevices.Slices(n.Devices, name, 1) {
			if err := o.add(slice); err != nil {
				return err
			}
		}
	}
	return nil
}

// workload adds the pods or controllers of a workload, each copy with its Service
// and its disruption budget.
func (o *objects) workload(w *Workload, seed uint64) {
	copies := max(w.Copies, 1)
	pods := w.Kind == "" || w.Kind == "Pod"
	arrivals := copies
	if pods {
		arrivals *= w.Count
	}
	at := w.arrivals(arrivals, seed)
	for i := range copies {
		name := w.Name
		if copies > 1 {
			name = fmt.Sprintf("%s-%d", w.Name, i)
		}
		meta := metav1.ObjectMeta{Namespace: cmp.Or(w.Namespace, metav1.NamespaceDefault), Name: name}
		template := w.template(name)
		if claimed := w.claimed(meta, &template.Spec); claimed != nil {
			o.arrive(at[i*len(at)/copies], 0, claimed...) // they stay: a claim is in use as long as a pod that names it
		}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": template.Labels["app"]}}
		with := w.around(meta, selector)
		if g := w.podGroup(meta, &template.Spec); g != nil {
			with = append(with, g)
		}
		if !pods {
			o.arrive(at[i], w.DeleteAfter.Duration, append(with, w.controller(meta, template, selector))...)
			continue
		}
		for k := range w.Count {
			// Each pod has metadata of its own; the rest of the template is shared and
			// never changed.
			pod := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
			pod.Namespace, pod.Name = meta.Namespace, fmt.Sprintf("%s-%d", name, k)
			o.arrive(at[i*w.Count+k], w.DeleteAfter.Duration, append(with, pod)...)
			with = nil // they come with the first pod
		}
	}
}

// template returns the pod template of a copy, with the label that the copy's
// Service, budget and controller select.
// A label app of the template's own is kept, so that workloads can share a Service.
func (w *Workload) template(name string) *v1.PodTemplateSpec {
	template := w.Template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, "app", cmp.Or(template.Labels["app"], name))
	if w.RunFor != nil {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, RunFor, w.RunFor.Min.Duration.String()+".."+w.RunFor.Max.Duration.String())
	}
	if w.Resize != nil {
		raw, err := json.Marshal(w.Resize)
		if err != nil {
			panic(err) // plain data
		}
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, ResizeTo, string(raw))
	}
	return template
}

// ParseResize reads the annotation ResizeTo; nil for a pod that isn't resized. Its error goes on after the name of
// the annotation.
func ParseResize(text string) (*Resize, error) {
	if text == "" {
		return nil, nil
	}
	out := &Resize{}
	if err := door.Read([]byte(text), out); err != nil || len(out.Requests) == 0 || out.After.Min.Duration < 0 || out.After.Max.Duration < out.After.Min.Duration {
		return nil, fmt.Errorf(`is %q; it must be JSON such as {"after": {"min": "5m", "max": "5m"}, "requests": {"cpu": "2"}}`, text)
	}
	for name, q := range out.Requests {
		if q.Sign() <= 0 || name != v1.ResourceCPU && name != v1.ResourceMemory {
			return nil, fmt.Errorf("has %s %s; only cpu and memory can be resized, to more than 0", q.String(), name)
		}
	}
	return out, nil
}

// controller returns the controller of a copy; its kind has been validated.
// A Job without parallelism runs all of its pods at once.
func (w *Workload) controller(meta metav1.ObjectMeta, template *v1.PodTemplateSpec, selector *metav1.LabelSelector) runtime.Object {
	replicas := int32(w.Count)
	switch w.Kind {
	case "Job":
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Completions: &replicas, Parallelism: new(int32(cmp.Or(w.Parallelism, w.Count))), Template: *template}}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: *template}}
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: *template}}
	default: // DaemonSet
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: *template}}
	}
}

// around returns the Service and the disruption budget of a copy.
func (w *Workload) around(meta metav1.ObjectMeta, selector *metav1.LabelSelector) (out []runtime.Object) {
	if w.Service {
		out = append(out, &v1.Service{ObjectMeta: *meta.DeepCopy(), Spec: v1.ServiceSpec{Selector: selector.MatchLabels}})
	}
	if w.MaxUnavailable != nil {
		maxUnavailable := intstr.FromInt32(int32(*w.MaxUnavailable))
		out = append(out, &policyv1.PodDisruptionBudget{ObjectMeta: *meta.DeepCopy(),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &maxUnavailable}})
	}
	return out
}

// arrivals returns when each of n comes, in order.
// After is added to each, so it delays the workload as a whole.
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
			// The first comes at once and the last at the end.
			out[i] = time.Duration(over * float64(i) / float64(max(n-1, 1)))
		}
	}
	for i := range out {
		out[i] += w.Arrive.After.Duration
	}
	return out
}

// trace adds the nodes of a recorded workload in a folder, and its pods as they come.
// Only the first t.Limit pods come; the time begins with the first of the trace.
func (o *objects) trace(t *Trace, folder string) error {
	tr, err := openb.Load(folder)
	if err != nil {
		return err
	}
	for i := range tr.Nodes {
		if err := o.add(tr.Nodes[i].Object()); err != nil {
			return err
		}
	}
	var first int64 = math.MaxInt64
	for i := range tr.Pods {
		first = min(first, tr.Pods[i].CreationTime)
	}
	// Traces have seconds.
	played := func(seconds int64) time.Duration {
		return time.Duration(float64(seconds) / cmp.Or(t.Speed, 1) * float64(time.Second))
	}
	pods := tr.Pods
	if t.Limit > 0 {
		pods = pods[:min(t.Limit, len(pods))]
	}
	for i := range pods {
		p := &pods[i]
		pod := p.Object("default")
		// A pod without a deletion runs for ever.
		if p.DeletionTime > p.CreationTime {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, RunFor, played(p.DeletionTime-p.CreationTime).String())
		}
		o.arrive(played(p.CreationTime-first), 0, pod)
	}
	return nil
}

// ParseRunFor reads the annotation; nil for a pod that runs for ever. Its error goes on after the name of
// the annotation.
// The bound keeps sums of times from overflowing.
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
		return nil, fmt.Errorf("is %q; it must be a duration such as 90s, or a range such as 1m..5m", text)
	}
	return &simulatedgroup.Span{Min: metav1.Duration{Duration: a}, Max: metav1.Duration{Duration: b}}, nil
}
