package cluster

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// This file works out what a pod requests, as resource.PodRequests of component-helpers does for
// kube-scheduler. Of a pod on a node, what the node has allocated and set up counts besides the spec
// (a resize in place may not have been carried out yet): in which way depends on the version. Most
// pods aren't being resized, and their spec says all (settled).

// parseRequests sets what a pod requests, and what scoring counts.
func (s *Schema) parseRequests(p *v1.Pod, out *Pod) {
	settled := p.Spec.NodeName == "" || settled(p)
	requests := s.podRequests(p, settled)
	out.Request = s.vector(requests, &out.Problems)
	var ignored []Problem // the same values are reported above
	whole := resourcehelper.IsPodLevelRequestsSet(p)
	switch {
	case !whole && settled && everyContainerRequests(p):
		out.NonZero = [2]int64{out.Request.At(CPU), out.Request.At(Memory)}
		out.Scored = out.Request
	case settled && isOneContainer(p) && p.Spec.Overhead == nil:
		out.Scored = withDefaults(out.Request, requests)
		out.NonZero = [2]int64{out.Scored.At(CPU), out.Scored.At(Memory)}
	case !whole:
		all := s.vector(s.requestsWith(p, settled, defaultRequests(nil)), &ignored)
		out.NonZero = [2]int64{all.At(CPU), all.At(Memory)}
		out.Scored = all
	default:
		all := s.vector(s.requestsWith(p, settled, defaultRequests(requests)), &ignored)
		out.NonZero = [2]int64{all.At(CPU), all.At(Memory)}
		out.Scored = s.vector(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
			SkipPodLevelResources: true, NonMissingContainerRequests: defaultRequests(nil)}), &ignored)
	}
}

// withDefaults returns what a pod of one container counts for, whose requests are a list, with
// defaultRequests of what the list doesn't have.
func withDefaults(request Resources, list v1.ResourceList) Resources {
	if _, ok := list[v1.ResourceCPU]; !ok {
		request.Set(CPU, DefaultMilliCPURequest)
	}
	if _, ok := list[v1.ResourceMemory]; !ok {
		request.Set(Memory, DefaultMemoryRequest)
	}
	return request
}

// defaultRequests are what a container counts for that requests nothing, of
// those resources that aren't in except.
func defaultRequests(except v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	if _, ok := except[v1.ResourceCPU]; !ok {
		out[v1.ResourceCPU] = *resource.NewMilliQuantity(DefaultMilliCPURequest, resource.DecimalSI)
	}
	if _, ok := except[v1.ResourceMemory]; !ok {
		out[v1.ResourceMemory] = *resource.NewQuantity(DefaultMemoryRequest, resource.BinarySI)
	}
	return out
}

// podRequests returns what a pod requests. The list may be the pod's own: that of a pod that is one
// container and nothing else, as most are, needn't be added up.
func (s *Schema) podRequests(p *v1.Pod, settled bool) v1.ResourceList {
	if settled && isOneContainer(p) && p.Spec.Overhead == nil {
		return p.Spec.Containers[0].Resources.Requests
	}
	return s.requestsWith(p, settled, nil)
}

// isOneContainer reports whether the requests of the pod's only container are those of the pod,
// overhead aside.
func isOneContainer(p *v1.Pod) bool {
	return len(p.Spec.Containers) == 1 && len(p.Spec.InitContainers) == 0 && p.Spec.Resources == nil
}

// requestsWith returns what a pod requests, with defaults for what its containers don't request.
func (s *Schema) requestsWith(p *v1.Pod, settled bool, defaults v1.ResourceList) v1.ResourceList {
	if settled {
		return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{NonMissingContainerRequests: defaults})
	}
	return s.requestsOnNode(p, defaults)
}

// requestsByPod returns what a pod on a node requests in kube-scheduler 1.37: the greatest of what
// its spec, what its node has allocated, and what that has set up come to for the pod.
func requestsByPod(p *v1.Pod, defaults v1.ResourceList) v1.ResourceList {
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true, NonMissingContainerRequests: defaults})
}

// requestsByContainer returns what a pod on a node requests in kube-scheduler 1.36: there the
// greatest of the three counts for each container, and for the pod as a whole if that requests
// something.
func requestsByContainer(p *v1.Pod, defaults v1.ResourceList) v1.ResourceList {
	as := *p // that it was the spec that said so
	infeasible := resourcehelper.IsPodResizeInfeasible(p)
	as.Spec.Containers = resized(p, p.Spec.Containers, infeasible, func(*v1.Container) bool { return true })
	as.Spec.InitContainers = resized(p, p.Spec.InitContainers, infeasible, isSidecar)
	if r := p.Status.Resources; r != nil && resourcehelper.IsPodLevelRequestsSet(p) {
		counts := greatest(infeasible, p.Spec.Resources.Requests, r.Requests, p.Status.AllocatedResources)
		requests := v1.ResourceList{}
		for name := range p.Spec.Resources.Requests {
			requests[name] = counts[name] // 0 where only the spec has it, and doesn't count
		}
		as.Spec.Resources = &v1.ResourceRequirements{Requests: requests}
	}
	return resourcehelper.PodRequests(&as, resourcehelper.PodResourcesOptions{NonMissingContainerRequests: defaults})
}

// resized returns the containers of a pod with what counts of each in kube-scheduler 1.36. byStatus
// reports whether that is more than the spec: it isn't of an init container that ends.
func resized(p *v1.Pod, containers []v1.Container, infeasible bool, byStatus func(*v1.Container) bool) []v1.Container {
	out := make([]v1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: c.Resources}
		if s := statusOf(p, c.Name); s != nil && s.Resources != nil && byStatus(c) {
			out[i].Resources = v1.ResourceRequirements{Requests: greatest(infeasible, c.Resources.Requests, s.Resources.Requests, s.AllocatedResources)}
		}
	}
	return out
}

// greatest returns the greatest amount of each resource in the lists; that of the spec doesn't count
// when the resize can't be carried out.
func greatest(infeasible bool, spec, actuated, allocated v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	if infeasible {
		spec = nil
	}
	for _, list := range []v1.ResourceList{spec, actuated, allocated} {
		for name, q := range list {
			if have, ok := out[name]; !ok || q.Cmp(have) > 0 {
				out[name] = q
			}
		}
	}
	return out
}

// settled reports whether the status of a pod on a node has nothing else to say about its requests
// than its spec: no resize is on its way, or can't be.
func settled(p *v1.Pod) bool {
	if resourcehelper.IsPodResizeInfeasible(p) {
		return false
	}
	for _, containers := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			if s := statusOf(p, c.Name); s != nil && !agree(c.Resources.Requests, s.Resources, s.AllocatedResources) {
				return false
			}
		}
	}
	if p.Status.Resources == nil {
		return true // then what is allocated to the pod as a whole isn't read
	}
	return isOneContainer(p) && agree(p.Spec.Containers[0].Resources.Requests, p.Status.Resources, p.Status.AllocatedResources)
}

// agree reports whether what is set up and what is allocated, each where it is known, are what the
// spec requests.
func agree(spec v1.ResourceList, actuated *v1.ResourceRequirements, allocated v1.ResourceList) bool {
	return (actuated == nil || actuated.Requests == nil || sameAmounts(spec, actuated.Requests)) &&
		(allocated == nil || sameAmounts(spec, allocated))
}

// sameAmounts reports whether two lists have the same amounts of the same resources.
func sameAmounts(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		if other, ok := b[name]; !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// statusOf returns the status of a pod's container, nil when there is none yet.
func statusOf(p *v1.Pod, container string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// everyContainerRequests reports whether each container of the pod requests CPU and memory.
func everyContainerRequests(p *v1.Pod) bool {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Requests[v1.ResourceCPU]; !ok {
				return false
			}
			if _, ok := list[i].Resources.Requests[v1.ResourceMemory]; !ok {
				return false
			}
		}
	}
	return true
}
