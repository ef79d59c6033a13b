package framework

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Extender is an HTTP extender as far as decisions go: which pods it concerns
// and what it is asked. The calls themselves are made at the edge.
type Extender struct {
	Managed     []string // resources; an extender without any concerns every pod
	Filters     bool     // it is asked which of the feasible nodes it allows
	Prioritizes bool     // it is asked to score them
	Binds       bool     // it binds the pod in the scheduler's stead; of a profile's extenders one may
	Preempts    bool     // it is asked about candidates for preemption
	// Weight multiplies its scores, which are 0 to MaxScore; 0 when it gives none.
	// How much the weights may add up to is engine.MaxExtenderWeights.
	Weight int64
}

// Concerns reports whether the extender is to be asked about a pod: whether one of its
// containers requests a managed resource, or limits it.
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

// Consults reports whether an extender filters or scores nodes for the pod, so that
// its place can't be decided without asking.
func (p *Profile) Consults(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return (x.Filters || x.Prioritizes) && x.Concerns(pod) })
}

// ConsultsVictims reports whether an extender has a say in which pods the pod may
// preempt.
func (p *Profile) ConsultsVictims(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return x.Preempts && x.Concerns(pod) })
}

// ExtenderBinds reports whether an extender binds the pod.
func (p *Profile) ExtenderBinds(pod *v1.Pod) bool {
	return slices.ContainsFunc(p.Extenders, func(x Extender) bool { return x.Binds && x.Concerns(pod) })
}
