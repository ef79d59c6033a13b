package headroom

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file says how much room a CapacityBuffer asks for, and for whom.

// maxChunks is how many chunks a buffer may have: each is a pod that is placed and
// planned for.
const maxChunks = 10000

// buffer is what a CapacityBuffer asks for, made out.
type buffer struct {
	admits   *cluster.Headroom
	shape    *v1.Pod
	chunks   int
	template *v1.PodTemplate // nil when the shape is a scalable's
}

// advanceBuffer gives a buffer the room that it asks for.
func (m *Machine) advanceBuffer(t *lifecycle.Turn, a *ask, o *autoscalingapi.CapacityBuffer) {
	if o.Spec.Strategy() != autoscalingapi.ActiveCapacity {
		m.empty(t, a) // somebody else follows it
		a.report.silent = true
		return
	}
	a.report.silent = false
	b, err := m.makeOut(t.State, o)
	if err != nil {
		m.refuse(t, a, err.Error())
		m.empty(t, a)
		a.report.buffer = nil
		return
	}
	m.refuse(t, a, "")
	t.State.SetHeadroom(b.admits)
	before, _ := m.counts(a)
	wants := []want{{b.shape, b.chunks}}
	other := m.reshape(a, wants)
	m.resize(t, a, wants)
	if other || before != b.chunks {
		t.Decide(step.Decision{Kind: step.HeadroomSet, Headroom: a.String(), Reason: fmt.Sprintf("%d chunk(s), previously %d", b.chunks, before)})
	}
	a.report.buffer = b
}

// makeOut finds the objects that a buffer refers to, and counts its chunks.
func (m *Machine) makeOut(s *cluster.State, o *autoscalingapi.CapacityBuffer) (*buffer, error) {
	b := &buffer{admits: &cluster.Headroom{ID: cluster.HeadroomID(o.UID), Namespace: o.Namespace}}
	replicas := -1 // of the scalable
	switch template, scalable := o.Spec.PodTemplateRef, o.Spec.ScalableRef; {
	case template != nil && scalable != nil:
		return nil, errors.New("podTemplateRef and scalableRef are both set; set only one of them")
	case template != nil:
		b.template, _ = s.Object(cluster.PodTemplateKind, o.Namespace, template.Name).(*v1.PodTemplate)
		if b.template == nil {
			return nil, fmt.Errorf("PodTemplate %s/%s, which podTemplateRef names, doesn't exist; create it, or name another", o.Namespace, template.Name)
		}
		b.shape = lifecycle.StandInShape(o.Namespace, &b.template.Template)
		if b.admits.Labels = b.template.Template.Labels; len(b.admits.Labels) == 0 {
			b.admits.Labels = nil
			b.admits.Annotations = []cluster.Annotation{{Key: autoscalingapi.BufferAnnotation, Value: o.Name}}
		}
	case scalable != nil:
		name := cluster.ScalableName(scalable.Kind, scalable.Name)
		x, _ := s.Object(cluster.ScalableKind, o.Namespace, name).(*cluster.Scalable)
		if x == nil {
			return nil, fmt.Errorf("%s %s/%s, which scalableRef names, doesn't exist, or isn't a Deployment, StatefulSet or ReplicaSet; create it, or name another", scalable.Kind, o.Namespace, scalable.Name)
		}
		b.shape, replicas = lifecycle.StandInShape(o.Namespace, &x.Template), int(x.Replicas)
		b.admits.Controller = &cluster.Controller{Kind: scalable.Kind, Name: scalable.Name}
	default:
		return nil, errors.New("neither podTemplateRef nor scalableRef is set; set one of them")
	}
	if pod := s.Schema.ParsePod(b.shape); !m.scheduler.Responsible(pod) {
		return nil, fmt.Errorf("the template's schedulerName is %q, which no profile of Berth has; add a profile, or use another name", b.shape.Spec.SchedulerName)
	}
	var err error
	b.chunks, err = chunks(&o.Spec, b.shape, replicas)
	return b, err
}

// chunks returns how many chunks a buffer has: as Cluster Autoscaler has it, the fewest that
// replicas, percentage (rounded down) and limits give. replicas are the scalable's, -1
// without one.
func chunks(spec *autoscalingapi.CapacityBufferSpec, shape *v1.Pod, replicas int) (int, error) {
	n := math.MaxInt
	if spec.Replicas != nil {
		n = max(int(*spec.Replicas), 0)
	}
	if spec.Percentage != nil && replicas >= 0 {
		n = min(n, max(int(*spec.Percentage)*replicas/100, 0))
	}
	if spec.Limits != nil {
		fit, err := chunksWithin(spec.Limits, shape)
		if err != nil {
			return 0, err
		}
		n = min(n, fit)
	}
	switch {
	case n == math.MaxInt:
		return 0, errors.New("none of replicas, percentage (with scalableRef) and limits is set; set one of them")
	case n > maxChunks:
		return 0, fmt.Errorf("the buffer would have %d chunks, more than the limit of %d; ask for fewer or larger ones", n, maxChunks)
	}
	return n, nil
}

// chunksWithin returns how many chunks keep to limits together.
func chunksWithin(limits v1.ResourceList, shape *v1.Pod) (int, error) {
	n := math.MaxInt
	requests := resourcehelper.PodRequests(shape, resourcehelper.PodResourcesOptions{})
	for name, limit := range limits { // in any order: the fewest count
		if request := requests[name]; request.MilliValue() > 0 {
			n = min(n, int(max(limit.MilliValue(), 0)/request.MilliValue()))
		}
	}
	if n == math.MaxInt {
		var names []v1.ResourceName
		for name := range limits {
			names = append(names, name)
		}
		slices.SortFunc(names, cmp.Compare)
		return 0, fmt.Errorf("the template requests none of the resources that limits names, %v; limit one that it requests", names)
	}
	return n, nil
}
