package cluster

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	NonZero  [2]int64 // CPU and Memory, with defaults where nothing is requested
	// Scored is what NodeResourcesFit scores the pod by: without what it requests
	// as a whole (kube-scheduler leaves that out), CPU and Memory with
	// defaults.
	Scored      Resources
	Ports       []HostPort
	Terms       []OwnedTerm      // pod affinity and anti-affinity, required and preferred
	TermProblem string           // why a term can't be read; such a pod isn't placed
	Spread      []SpreadSelector // of its own topology spread constraints, in their order
	Claims      []ClaimRef       // in the order of its volumes
	Disks       []Disk           // of in-tree plugins in the pod's own spec, in their order
	Group       *PodGroupKey     // nil when the pod is a member of no pod group
	// OfNode says that the pod belongs to its node, which would make another one for
	// itself: it is Daemon or Mirror.
	OfNode bool
	// StandIn names the headroom that the pod keeps room for, "" for none. Such a pod is in
	// no API.
	StandIn HeadroomID
	// Devices are the claims that the pod named in its object and that are in no API either: a stand-in's. They have
	// no allocation.
	Devices []*resourcev1.ResourceClaim
	// ScaleUpDelay is how long the pod has to wait before nodes are bought for it, as its
	// annotation asks; 0 without.
	ScaleUpDelay time.Duration
	// Eviction is what the pod says about being evicted.
	Eviction Eviction
	Problems []Problem
}

// Name returns namespace/name, as people and logs write it.
func (p *Pod) Name() string { return p.Object.Namespace + "/" + p.Object.Name }

// StandsIn reports whether the pod keeps room for others and is in no API.
func (p *Pod) StandsIn() bool { return p.StandIn != "" }

// Daemon reports whether a DaemonSet controls the pod, or its annotation
// DaemonPodAnnotation says to treat it so.
func (p *Pod) Daemon() bool {
	if ref := metav1.GetControllerOfNoCopy(p.Object); ref != nil && ref.Kind == "DaemonSet" {
		return true
	}
	return p.Object.Annotations[DaemonPodAnnotation] == "true"
}

// OwnedBy reports whether a DaemonSet controls the pod.
func (p *Pod) OwnedBy(w *Workload) bool {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	return ref != nil && ref.Kind == string(w.Kind) && ref.Name == w.Name && p.Object.Namespace == w.Namespace
}

// Mirror reports whether the pod is the API's image of a static pod.
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

// Conflicts reports whether both can't be had on one node.
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
	s.parseRequests(p, out)
	out.Ports = hostPorts(p)
	if terms, err := s.affinityTerms(p); err != nil {
		out.Terms, out.TermProblem = terms, err.Error()
	} else {
		out.Terms = terms
	}
	out.Spread = spreadSelectors(p)
	out.Claims = claimRefs(p)
	out.Disks = inlineDisks(p)
	out.Group = groupOf(p)
	out.OfNode = out.Daemon() || out.Mirror()
	out.Eviction = evictionOf(p, &out.Problems)
	if text, ok := p.Annotations[ScaleUpDelayAnnotation]; ok {
		out.ScaleUpDelay = delay(text, &out.Problems)
	}
	return out
}

// ScaleUpDelayAnnotation says for how long a pod has to wait before nodes are bought for
// it, as a duration such as 90s.
const ScaleUpDelayAnnotation = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"

// delay reads ScaleUpDelayAnnotation. One that isn't a duration, or negative, delays
// nothing and is a Problem.
func delay(text string, problems *[]Problem) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		*problems = append(*problems, Problem{"metadata.annotations[" + ScaleUpDelayAnnotation + "]", strconv.Quote(text), "0s"})
		return 0
	}
	return d
}

// vector turns requests into numbers; the number of pods isn't one.
func (s *Schema) vector(list v1.ResourceList, problems *[]Problem) (out Resources) {
	var room [4]v1.ResourceName
	for _, name := range sortedNames(list, room[:0]) {
		v := quantity(name, list[name], maxPodQuantity, "requests["+string(name)+"]", problems)
		if v != 0 && name != v1.ResourcePods {
			out.Set(ResourceOf(name), v)
		}
	}
	return out
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
		if c := &p.Spec.InitContainers[i]; isSidecar(c) {
			collect(c)
		}
	}
	for i := range p.Spec.Containers {
		collect(&p.Spec.Containers[i])
	}
	return out
}

// isSidecar reports whether an init container goes on beside the others.
func isSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// PodGroup returns the name of the pod group that the pod is a member of, "" for none.
func (p *Pod) PodGroup() string {
	if p.Group == nil {
		return ""
	}
	return p.Group.Name
}

// Instance returns a pod like p under another name, for simulations.
func (p *Pod) Instance(name string) *Pod { return p.InstanceWith(name, types.UID(name)) }

// InstanceWith returns a pod like p with another name and UID.
func (p *Pod) InstanceWith(name string, uid types.UID) *Pod {
	object := *p.Object
	object.Name, object.UID = name, uid
	out := *p
	out.Object, out.UID = &object, uid
	return &out
}
