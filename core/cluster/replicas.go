package cluster

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// This file has how many pods each workload is to have and how many it has, and which
// workload a pod is of. The autoscaler reads that: an evicted pod is expected to come again
// as long as its owner lacks pods.

// Replicas is how many pods a workload is to have, and how many it has, as its controller
// said last. Pods that are terminating aren't counted. A controller says it some time after
// the pods have changed, and watches of pods and of workloads are apart: Existing may be old.
type Replicas struct{ Wanted, Existing int32 }

// Missing returns how many pods the controller is still to create: Wanted minus Existing, or
// 0.
func (r Replicas) Missing() int { return int(max(r.Wanted-r.Existing, 0)) }

// replicasOf reads an object's; none of a kind that doesn't keep up a number of pods.
func replicasOf(obj runtime.Object) Replicas {
	switch o := obj.(type) {
	case *v1.ReplicationController:
		return Replicas{ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas}
	case *appsv1.ReplicaSet:
		return Replicas{ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas}
	case *appsv1.StatefulSet:
		return Replicas{ptr.Deref(o.Spec.Replicas, 1), statefulPods(&o.Status)}
	case *batchv1.Job:
		return jobReplicas(o)
	}
	return Replicas{}
}

// statefulPods returns how many pods a StatefulSet has that aren't terminating. Its
// status.replicas counts terminating pods; the pods of each revision are counted without
// them (computeReplicaStatus in pkg/controller/statefulset).
func statefulPods(s *appsv1.StatefulSetStatus) int32 {
	if s.CurrentRevision == s.UpdateRevision {
		return s.CurrentReplicas
	}
	return s.CurrentReplicas + s.UpdatedReplicas
}

// jobReplicas: a Job has so many pods at a time, and no more than completions are missing.
// One without a number of completions makes no pod any more when one has succeeded. One that
// is suspended or over makes none.
func jobReplicas(o *batchv1.Job) Replicas {
	r := Replicas{ptr.Deref(o.Spec.Parallelism, 1), o.Status.Active}
	switch {
	case o.Spec.Completions != nil:
		r.Wanted = max(min(r.Wanted, *o.Spec.Completions-o.Status.Succeeded), 0)
	case o.Status.Succeeded > 0:
		r.Wanted = min(r.Wanted, r.Existing)
	}
	if ptr.Deref(o.Spec.Suspend, false) {
		r.Wanted = 0
	}
	for i := range o.Status.Conditions {
		if endsJob(&o.Status.Conditions[i]) {
			r.Wanted = 0
		}
	}
	return r
}

// endsJob reports whether a condition says that a Job is over, or will be when its pods have
// terminated.
func endsJob(c *batchv1.JobCondition) bool {
	switch c.Type {
	case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget:
		return c.Status == v1.ConditionTrue
	}
	return false
}

// OwnerOf returns the workload that controls a pod; nil when the pod has no controller, and
// when that isn't known: it is gone, or of a kind that isn't read.
func (s *State) OwnerOf(p *Pod) *Workload {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	if ref == nil {
		return nil
	}
	kind := WorkloadKind(ref.Kind)
	if group, _, _ := strings.Cut(ref.APIVersion, "/"); group != ownerGroup(kind) {
		return nil
	}
	return s.work.byKey[workloadKey{kind, p.Object.Namespace, ref.Name}]
}

// podTemplateHash is the label by which a Deployment tells its ReplicaSets apart: each is
// called after the Deployment and the value (pkg/controller/deployment/sync.go).
const podTemplateHash = "pod-template-hash"

// Deployment returns the name of the Deployment whose ReplicaSet controls the pod, "" when
// none does.
func (p *Pod) Deployment() string {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	if ref == nil || ref.Kind != string(ReplicaSet) {
		return ""
	}
	name, ok := strings.CutSuffix(ref.Name, "-"+p.Object.Labels[podTemplateHash])
	if !ok {
		return ""
	}
	return name
}

// IsSurgedAlone reports whether a pod asks for a successor before it leaves, and is the only one
// of its Deployment as far as the ReplicaSet says: so its Deployment can roll, which deletes the
// pod without an eviction.
func (s *State) IsSurgedAlone(p *Pod) bool {
	if !p.WantsSurge() || p.Deployment() == "" {
		return false
	}
	owner := s.OwnerOf(p)
	return owner != nil && owner.Replicas.Wanted == 1
}

// MaxSurgedMembers is how many members get their successors together at most: before each Deployment rolls, those of all are read. Of 16 that takes 272 calls, some 25 s of what
// Berth spends on Deployments.
const MaxSurgedMembers = 16

// SurgesWhole returns the group with whose other members a pod gets its successor before any of them
// leaves: it asks for one, and they go together. ok is false for other pods, and for those that are
// declared safe to evict.
func (s *State) SurgesWhole(p *Pod) (key PodGroupKey, ok bool) {
	if !p.WantsSurge() || p.Eviction.Safe == SafeTrue {
		return PodGroupKey{}, false
	}
	return s.GoesWhole(p)
}

// EachSurgedMember calls f for the members of a group that get successors together, or that keep the others
// from them: those on nodes that aren't terminating, nor declared safe to evict. It costs O(pods on these nodes).
func (s *State) EachSurgedMember(k PodGroupKey, f func(*Pod)) {
	s.EachPlacedMember(k, func(p *Pod) {
		if p.Object.DeletionTimestamp == nil && p.Eviction.Safe != SafeTrue {
			f(p)
		}
	})
}

// WhyNoSuccessors returns why the members of a group can't all have successors before one of them
// leaves, as far as their ReplicaSets say; "" when they can. first is the first by name that can't; nil when
// there are too many. It costs O(pods on the members' nodes).
func (s *State) WhyNoSuccessors(k PodGroupKey) (first *Pod, why string) {
	n := 0
	s.EachSurgedMember(k, func(p *Pod) {
		n++
		if !s.IsSurgedAlone(p) && (first == nil || p.Name() < first.Name()) {
			first = p
		}
	})
	if n > MaxSurgedMembers {
		return nil, fmt.Sprintf("it has %d members, more than the %d that can get successors together", n, MaxSurgedMembers)
	}
	if first == nil {
		return nil, ""
	}
	why = "its Deployment is not known"
	if !first.WantsSurge() {
		why = fmt.Sprintf("it does not have the annotation %s: \"true\"", SurgeAnnotation)
	} else if owner := s.OwnerOf(first); owner != nil && first.Deployment() != "" {
		why = fmt.Sprintf("its ReplicaSet has %d replicas", owner.Replicas.Wanted)
	}
	return first, fmt.Sprintf("%s can't: %s", first.Name(), why)
}

// ownerGroup returns the API group of a kind, as it stands before the slash of an
// apiVersion: objects of other groups may have a kind of the same name.
func ownerGroup(kind WorkloadKind) string {
	switch kind {
	case ReplicaSet, StatefulSet, DaemonSet:
		return appsv1.GroupName
	case Job:
		return batchv1.GroupName
	}
	return "v1" // the core group has no name, and an apiVersion of it no slash
}
