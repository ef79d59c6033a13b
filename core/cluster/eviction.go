package cluster

// This file holds what pods and nodes say about being given up: whether a pod may be evicted
// for its node's removal, how long it may take to terminate, and whether a node may be
// removed at all. The rules that read it are core/autoscaler/drainability and
// core/autoscaler/scaledown; a plan asks them of every pod, so that texts are read here,
// once for each version of an object.
//
// An annotation whose value isn't one of those below says nothing, as in Cluster
// Autoscaler, and is a Problem.

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// The annotations by which pods and nodes say that they stay, or may go.
const (
	// SafeToEvictAnnotation has the eviction of a pod allowed ("true"), refused ("false"),
	// or its end waited for ("on-completion").
	SafeToEvictAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// LocalVolumesAnnotation names the local volumes, with commas between, whose data a pod
	// may lose.
	LocalVolumesAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	// DaemonPodAnnotation has a pod be treated as a DaemonSet's when its value is "true".
	DaemonPodAnnotation = "cluster-autoscaler.kubernetes.io/daemonset-pod"
	// ScaleDownDisabledAnnotation keeps a node when its value is "true".
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// DoNotDisruptAnnotation keeps a node, or a pod with its node, when its value is
	// "true". It is Karpenter's.
	DoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
	// SurgeAnnotation, on a Deployment's pod template with the value "true", asks for the pod's
	// successor before the pod is evicted from a node that is drained.
	SurgeAnnotation = "berth.dev/surge"
	// SurgedAtAnnotation is written to the pod template to that end, with the time. Its
	// change makes the Deployment roll.
	SurgedAtAnnotation = "berth.dev/surged-at"
)

// WantsSurge reports whether the pod's SurgeAnnotation asks for a successor before the pod leaves.
func (p *Pod) WantsSurge() bool { return p.Object.Annotations[SurgeAnnotation] == "true" }

// SystemNamespace is the namespace of system pods.
const SystemNamespace = "kube-system"

// SafeToEvict is what a pod's SafeToEvictAnnotation says.
type SafeToEvict uint8

// The values of SafeToEvictAnnotation.
const (
	SafeUnsaid SafeToEvict = iota
	SafeTrue
	SafeFalse
	SafeOnCompletion
)

// Eviction is what a pod's annotations and owner allow about its eviction.
type Eviction struct {
	// LocalVolume is the first of the pod's volumes whose data an eviction would lose and
	// that LocalVolumesAnnotation doesn't name; "" for none.
	LocalVolume string
	// Grace is how many seconds the pod may take to terminate, 30 where it doesn't say.
	Grace        int32
	Safe         SafeToEvict
	DoNotDisrupt bool
	Terminating  bool // it has a deletion timestamp
	// Ended says that the pod has run to its end: none of its containers runs or will be
	// started again.
	Ended bool
}

// evictionOf reads what a pod's spec, status and annotations say about its eviction. A value that
// can't be read counts as not set, and is added to problems.
func evictionOf(p *v1.Pod, problems *[]Problem) Eviction {
	e := Eviction{LocalVolume: localVolume(p), Grace: v1.DefaultTerminationGracePeriodSeconds, Terminating: p.DeletionTimestamp != nil,
		Ended: p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		e.Grace = int32(min(max(*s, 0), maxGrace))
	}
	if len(p.Annotations) == 0 {
		return e
	}
	switch text, ok := p.Annotations[SafeToEvictAnnotation]; {
	case !ok:
	case text == "true":
		e.Safe = SafeTrue
	case text == "false":
		e.Safe = SafeFalse
	case text == "on-completion":
		e.Safe = SafeOnCompletion
	default:
		*problems = append(*problems, unsaid(SafeToEvictAnnotation, text))
	}
	e.DoNotDisrupt = saysTrue(p.Annotations, DoNotDisruptAnnotation, problems)
	saysTrue(p.Annotations, DaemonPodAnnotation, problems)
	saysTrue(p.Annotations, SurgeAnnotation, problems)
	return e
}

// maxGrace is ten years, in seconds: any longer is as long.
const maxGrace = 10 * 365 * 24 * 3600

// saysTrue reports whether an annotation is "true". One that is neither that nor "false" is a
// Problem.
func saysTrue(annotations map[string]string, key string, problems *[]Problem) bool {
	text, ok := annotations[key]
	if ok && text != "true" && text != "false" {
		*problems = append(*problems, unsaid(key, text))
	}
	return text == "true"
}

func unsaid(key, text string) Problem {
	return Problem{"metadata.annotations[" + key + "]", strconv.Quote(text), "unset"}
}

// localVolume returns the name of the first volume that keeps its pod's node: one on the
// node's own disk that LocalVolumesAnnotation doesn't name. The API has no volume without a
// name.
func localVolume(p *v1.Pod) string {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if onNodesDisk(v) && v.Name != "" && !listed(p.Annotations[LocalVolumesAnnotation], v.Name) {
			return v.Name
		}
	}
	return ""
}

// listed reports whether a list with commas between has a name. Spaces count.
func listed(list, name string) bool {
	for x := range strings.SplitSeq(list, ",") {
		if x == name {
			return true
		}
	}
	return false
}

// onNodesDisk reports whether a volume's data is lost with the node. What is in memory is
// lost with the pod anyway.
func onNodesDisk(v *v1.Volume) bool {
	return v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != v1.StorageMediumMemory
}
