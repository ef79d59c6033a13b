package cluster

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Scoring counts a container without a request as asking this much, as
// kube-scheduler does (pkg/scheduler/util/pod_resources.go).
const (
	DefaultMilliCPURequest = 100
	DefaultMemoryRequest   = 200 << 20
)

// Pod is what a Pod object says, parsed. It is immutable; where the pod runs
// is the State's to know.
type Pod struct {
	Object   *v1.Pod
	UID      types.UID
	Priority int32
	Request  Resources
	NonZero  [2]int64 // CPU and Memory, with defaults where a container requests none
	Ports    []HostPort
	Terms    []OwnedTerm // pod affinity and anti-affinity, required and preferred
	Claims   []ClaimRef  // in the order of its volumes
	Problems []Problem
}

// Name returns namespace/name, as people and logs write it.
func (p *Pod) Name() string { return p.Object.Namespace + "/" + p.Object.Name }

// Daemon tells whether a DaemonSet controls the pod, or its annotation
// cluster-autoscaler.kubernetes.io/daemonset-pod says to treat it so.
func (p *Pod) Daemon() bool {
	if ref := metav1.GetControllerOfNoCopy(p.Object); ref != nil && ref.Kind == "DaemonSet" {
		return true
	}
	return p.Object.Annotations["cluster-autoscaler.kubernetes.io/daemonset-pod"] == "true"
}

// Mirror tells whether the pod is the API's image of a static pod.
func (p *Pod) Mirror() bool {
	_, ok := p.Object.Annotations[v1.MirrorPodAnnotationKey]
	return ok
}

// HostPort is a port that a pod takes on its node.
type HostPort struct {
	IP       string // "0.0.0.0" when the pod names none
	Protocol v1.Protocol
	Port     int32
}

// Conflicts tells whether both can't be had on one node.
func (h HostPort) Conflicts(o HostPort) bool {
	return h.Port == o.Port && h.Protocol == o.Protocol &&
		(h.IP == o.IP || h.IP == anyIP || o.IP == anyIP)
}

const anyIP = "0.0.0.0"

// ParsePod reads a Pod object. Quantities that don't fit are capped and
// reported as Problems.
func (s *Schema) ParsePod(p *v1.Pod) *Pod {
	out := &Pod{Object: p, UID: p.UID}
	if p.Spec.Priority != nil {
		out.Priority = *p.Spec.Priority
	}
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: p.Spec.NodeName != ""})
	for _, name := range sortedNames(requests) {
		v := quantity(name, requests[name], maxPodQuantity, "requests["+string(name)+"]", &out.Problems)
		if v != 0 && name != v1.ResourcePods {
			out.Request.set(s.ID(name), v)
		}
	}
	nonZero := requests
	if !everyContainerRequests(p) {
		nonZero = resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
			UseStatusResources: p.Spec.NodeName != "",
			NonMissingContainerRequests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(DefaultMilliCPURequest, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(DefaultMemoryRequest, resource.BinarySI),
			},
		})
	}
	var ignored []Problem // the same values were reported above
	out.NonZero[0] = quantity(v1.ResourceCPU, nonZero[v1.ResourceCPU], maxPodQuantity, "", &ignored)
	out.NonZero[1] = quantity(v1.ResourceMemory, nonZero[v1.ResourceMemory], maxPodQuantity, "", &ignored)
	out.Ports = hostPorts(p)
	out.Terms = affinityTerms(p)
	out.Claims = claimRefs(p)
	return out
}

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

// hostPorts collects the ports of containers and of restartable init
// containers, as kube-scheduler's util.GetHostPorts does.
func hostPorts(p *v1.Pod) []HostPort {
	var out []HostPort
	collect := func(c *v1.Container) {
		for _, port := range c.Ports {
			if port.HostPort <= 0 {
				continue
			}
			h := HostPort{IP: port.HostIP, Protocol: port.Protocol, Port: port.HostPort}
			if h.IP == "" {
				h.IP = anyIP
			}
			if h.Protocol == "" {
				h.Protocol = v1.ProtocolTCP
			}
			out = append(out, h)
		}
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			collect(c)
		}
	}
	for i := range p.Spec.Containers {
		collect(&p.Spec.Containers[i])
	}
	return out
}

// SameToRules tells whether no rule could tell two versions of a placed pod
// apart.
func SameToRules(a, b *Pod) bool {
	return a.Priority == b.Priority && a.NonZero == b.NonZero &&
		slices.Equal(trimmed(a.Request), trimmed(b.Request)) && slices.Equal(a.Ports, b.Ports) &&
		(a.Object.DeletionTimestamp == nil) == (b.Object.DeletionTimestamp == nil) &&
		maps.Equal(a.Object.Labels, b.Object.Labels) && maps.Equal(a.Object.Annotations, b.Object.Annotations) &&
		slices.EqualFunc(a.Terms, b.Terms, func(x, y OwnedTerm) bool { return x.Kind == y.Kind && x.Weight == y.Weight && x.Key == y.Key }) &&
		slices.Equal(a.Claims, b.Claims)
}

// Instance returns a pod like p under another name, for simulations.
func (p *Pod) Instance(name string) *Pod {
	object := *p.Object
	object.Name, object.UID = name, types.UID(name)
	out := *p
	out.Object, out.UID = &object, object.UID
	return &out
}
