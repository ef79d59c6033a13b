// Package simulatedresizes decides about resizes in place as a kubelet does, for the kubelets of the virtual
// world: a resize is carried out, deferred until the node has room, or infeasible.
//
// Kubelets look at CPU and memory. What counts of the other pods is what the node has allocated to them, not what
// their spec has asked for since.
package simulatedresizes

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Verdict is what a kubelet decides about a resize.
type Verdict struct {
	// Reason is v1.PodReasonDeferred or v1.PodReasonInfeasible; "" for a resize that is carried out.
	Reason  string
	Message string // of the condition
}

// Wanted reports whether the spec of a pod asks for other amounts than its node has allocated. A pod without
// allocations in its status has been allocated what its spec requests.
func Wanted(p *v1.Pod) bool {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if s := statusOf(p, c.Name); s != nil && s.AllocatedResources != nil && !equal(s.AllocatedResources, c.Resources.Requests) {
			return true
		}
	}
	return false
}

// Decide returns what the kubelet of a node decides about the resize of a pod, beside all pods that it runs; the pod
// itself may be among these.
func Decide(n *v1.Node, pods []*v1.Pod, p *v1.Pod) Verdict {
	wants := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if want, has := wants[name], n.Status.Allocatable[name]; want.Cmp(has) > 0 {
			return Verdict{v1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %s, capacity: %s", name, &want, &has)}
		}
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		used, want, has := resource.Quantity{}, wants[name], n.Status.Allocatable[name]
		for _, other := range pods {
			if other.UID != p.UID {
				used.Add(Allocated(other)[name])
			}
		}
		total := used.DeepCopy()
		if total.Add(want); total.Cmp(has) > 0 && increases(p, name, want) {
			return Verdict{v1.PodReasonDeferred, fmt.Sprintf("Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s", name, &want, &used, &has)}
		}
	}
	return Verdict{}
}

// increases reports whether a resize asks for more of a resource than is allocated: only then it may lack room.
func increases(p *v1.Pod, name v1.ResourceName, want resource.Quantity) bool {
	return want.Cmp(Allocated(p)[name]) > 0
}

// Allocated returns what the node of a pod has allocated to it.
func Allocated(p *v1.Pod) v1.ResourceList {
	as := *p
	as.Spec.Containers = slices.Clone(p.Spec.Containers)
	for i := range as.Spec.Containers {
		c := &as.Spec.Containers[i]
		if s := statusOf(p, c.Name); s != nil && s.AllocatedResources != nil {
			c.Resources.Requests = s.AllocatedResources
		}
	}
	return resourcehelper.PodRequests(&as, resourcehelper.PodResourcesOptions{})
}

// Allocate writes to the status of a pod that what its spec requests is allocated and set up. Kubelets do so when a
// pod starts and when a resize is carried out. What the status had before isn't changed: others may read it.
func Allocate(p *v1.Pod) {
	statuses := slices.Clone(p.Status.ContainerStatuses)
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		at := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.Name })
		if at < 0 {
			at = len(statuses)
			statuses = append(statuses, v1.ContainerStatus{Name: c.Name})
		}
		statuses[at].AllocatedResources = maps.Clone(c.Resources.Requests)
		statuses[at].Resources = &v1.ResourceRequirements{Requests: maps.Clone(c.Resources.Requests), Limits: maps.Clone(c.Resources.Limits)}
	}
	p.Status.ContainerStatuses = statuses
}

// Apply writes a verdict to the status of a pod: the condition PodResizePending, or what is allocated.
func Apply(p *v1.Pod, v Verdict, now metav1.Time) {
	conditions := slices.Clone(p.Status.Conditions)
	at := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizePending })
	switch {
	case v.Reason == "":
		Allocate(p)
		if at >= 0 {
			conditions = slices.Delete(conditions, at, at+1)
		}
	case at < 0:
		conditions = append(conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v.Reason, Message: v.Message, LastTransitionTime: now})
	default:
		c := &conditions[at]
		if c.Reason != v.Reason {
			c.LastTransitionTime = now
		}
		c.Reason, c.Message = v.Reason, v.Message
	}
	p.Status.Conditions = conditions
}

// Pending returns why the resize of a pod is pending, as its condition has it; "" when none is.
func Pending(p *v1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodResizePending && c.Status == v1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

func statusOf(p *v1.Pod, container string) *v1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == container {
			return s
		}
	}
	return nil
}

func equal(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}
