package framework

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Extender is an HTTP extender as far as decisions go: which pods it concerns
// and what it is asked. The calls themselves are made at the edge.
type Extender struct {
	Managed     []string // resources; an extender without any concerns every pod
	Filters     bool
	Prioritizes bool
	Binds       bool
	Preempts    bool
	// Weight multiplies its scores, which are 0 to MaxScore; 0 when it gives none.
	Weight int64
}

// Concerns tells whether the extender is to be asked about a pod.
func (x *Extender) Concerns(pod *v1.Pod) bool {
	if len(x.Managed) == 0 {
		return true
	}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, amounts := range []v1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				for name := range amounts { // any will do
					if slices.Contains(x.Managed, string(name)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// Consults tells whether some extender has a say in where the pod goes.
func (p *Profile) Consults(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return (x.Filters || x.Prioritizes) && x.Concerns(pod) })
}

// ConsultsVictims tells whether some extender has a say in whose place the pod
// takes.
func (p *Profile) ConsultsVictims(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return x.Preempts && x.Concerns(pod) })
}

// ExtenderBinds tells whether an extender binds the pod.
func (p *Profile) ExtenderBinds(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return x.Binds && x.Concerns(pod) })
}
