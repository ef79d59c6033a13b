package checker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	corehelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// This file checks what concerns one node and the pods on it.

// capacity compares the sum of the requests of a node's pods, and their number, with what
// the node has. The violation is that of the pod that is last in the list.
func (c *check) capacity(node *v1.Node) {
	pods := c.podsByNode[node.Name]
	if len(pods) == 0 {
		return
	}
	sum := v1.ResourceList{}
	for _, pod := range pods {
		for name, q := range Requests(pod) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	last := pods[len(pods)-1]
	asks := Requests(last)
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		want, have, own := sum[name], node.Status.Allocatable[name], asks[name]
		if want.Cmp(have) > 0 && !own.IsZero() { // a deferred resize may have a node over its capacity by itself
			c.add(last, "capacity", "%d pods request %s of %s, allocatable is %s", len(pods), want.String(), name, have.String())
		}
	}
	allowed := node.Status.Allocatable[v1.ResourcePods]
	if allowed.Cmp(*resource.NewQuantity(int64(len(pods)), resource.DecimalSI)) < 0 {
		c.add(last, "pods", "%d pods on a node that allows %s", len(pods), allowed.String())
	}
}

// Requests returns what counts of a pod: of one that is being resized in place the greatest of what its spec requests,
// its node has allocated and has set up; of an infeasible resize only what is allocated.
func Requests(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// DropRequests removes what a pod requests of resources that claims for devices stand for, also as its kubelet has
// allocated it and set it up: no node has these in its allocatable. It changes the pod.
func DropRequests(pod *v1.Pod, claimed func(v1.ResourceName) bool) {
	drop := func(list v1.ResourceList) {
		maps.DeleteFunc(list, func(name v1.ResourceName, _ resource.Quantity) bool { return claimed(name) })
	}
	for i := range pod.Spec.Containers {
		drop(pod.Spec.Containers[i].Resources.Requests)
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		drop(s.AllocatedResources)
		if s.Resources != nil {
			drop(s.Resources.Requests)
		}
	}
}

// nodeAffinity checks nodeSelector and required node affinity.
func (c *check) nodeAffinity(node *v1.Node, pod *v1.Pod) {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !ok || err != nil {
		c.add(pod, "affinity", "node selector or required node affinity doesn't match (%v)", err)
	}
}

// taints checks that the pod tolerates the node's taints of some effects.
func (c *check) taints(node *v1.Node, pod *v1.Pod, effects ...v1.TaintEffect) {
	taint, untolerated := corehelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(t *v1.Taint) bool {
		return slices.Contains(effects, t.Effect) && (c.ignoreTaint == nil || !c.ignoreTaint(*t))
	}, false)
	if untolerated {
		c.add(pod, "taint", "%s isn't tolerated", taint.ToString())
	}
}

// cordon checks that the node isn't cordoned, or the pod tolerates it.
func (c *check) cordon(node *v1.Node, pod *v1.Pod) {
	taint := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !corehelper.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &taint, false) {
		c.add(pod, "cordon", "the node is cordoned")
	}
}

// ports checks that two pods of one node don't want the same host port.
func (c *check) ports(pod, other *v1.Pod) {
	for _, a := range hostPorts(pod) {
		for _, b := range hostPorts(other) {
			anyIP := a.HostIP == "" || a.HostIP == "0.0.0.0" || b.HostIP == "" || b.HostIP == "0.0.0.0"
			if a.HostPort == b.HostPort && protocol(a) == protocol(b) && (anyIP || a.HostIP == b.HostIP) {
				c.add(pod, "ports", "host port %d/%s is taken by %s/%s", a.HostPort, protocol(a), other.Namespace, other.Name)
			}
		}
	}
}

func protocol(p v1.ContainerPort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}

func hostPorts(pod *v1.Pod) []v1.ContainerPort {
	var out []v1.ContainerPort
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort > 0 {
				out = append(out, port)
			}
		}
	}
	return out
}
