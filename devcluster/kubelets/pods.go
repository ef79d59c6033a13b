package kubelets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/internal/simulatedresizes"
)

// This file is what kubelets do with pods:
//
//	bound ── StartDelay ──▶ running ── annotation RunFor ──▶ succeeded
//	  └──────────┴── deleted: after StopAfter, at most the grace period ──▶ failed, removed

// podState says which calls for a pod were put into the timetable, so that each is put
// there once, however often the pod changes.
type podState struct {
	started, finishing, stopping bool
	// shown is the pod as it is now, with what was decided about its resize. looked is the pod as it was when its resize was last looked at, nil when none is
	// wanted.
	shown, looked *v1.Pod
	// retrying reports whether a call of retryResize is due.
	retrying bool
}

// podChanged plans what a pod, as it now is, needs next.
func (k *kubelets) podChanged(p *v1.Pod) {
	k.mu.Lock()
	s := k.pods[p.UID]
	if s == nil {
		s = &podState{}
		k.pods[p.UID] = s
	}
	start := !s.started && p.DeletionTimestamp == nil && p.Status.Phase == v1.PodPending
	stop := !s.stopping && p.DeletionTimestamp != nil
	finish := !s.finishing && p.Status.Phase == v1.PodRunning && p.Annotations[RunFor] != ""
	s.started = s.started || start
	s.stopping = s.stopping || stop
	s.finishing = s.finishing || finish
	resize := k.noteResize(s, p)
	k.mu.Unlock()
	now := time.Now()
	at := func(when time.Time, job func(context.Context, *v1.Pod)) {
		k.at(when, func(ctx context.Context) {
			if !k.real(p.Spec.NodeName) {
				job(ctx, p)
			}
		})
	}
	if start {
		at(now.Add(k.o.StartDelay), k.startPod)
	}
	if finish {
		run, err := time.ParseDuration(p.Annotations[RunFor])
		if err != nil {
			fmt.Fprintf(os.Stderr, "pod %s/%s: annotation %s is %q; it must be a duration such as 30s\n", p.Namespace, p.Name, RunFor, p.Annotations[RunFor])
		} else {
			at(started(p, now).Add(run), k.finishPod)
		}
	}
	if resize {
		at(now.Add(k.o.StartDelay), func(ctx context.Context, p *v1.Pod) { k.resizePod(ctx, p.UID) })
	}
	if stop {
		at(now.Add(stopTime(p)), k.stopPod)
	}
}

// started returns when a pod started, now if its status doesn't say.
func started(p *v1.Pod, now time.Time) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return now
}

// stopTime returns how long a pod takes from its deletion to its removal.
func stopTime(p *v1.Pod) time.Duration {
	d := time.Second
	if v, err := time.ParseDuration(p.Annotations[StopAfter]); err == nil {
		d = v
	}
	if g := p.DeletionGracePeriodSeconds; g != nil {
		d = min(d, time.Duration(*g)*time.Second)
	}
	return d
}

// podGone forgets a pod. Calls for it that are still due fail by its UID, and aren't repeated.
func (k *kubelets) podGone(uid types.UID) {
	k.mu.Lock()
	s := k.pods[uid]
	delete(k.pods, uid)
	delete(k.deferred, uid)
	k.mu.Unlock()
	k.podIPs.release(string(uid))
	if s != nil && s.shown != nil {
		k.retryResizesOn(s.shown.Spec.NodeName, uid)
	}
}

// startPod reports that a pod runs and is ready, and that what it requests is allocated and set up.
func (k *kubelets) startPod(ctx context.Context, p *v1.Pod) {
	now := metav1.Now()
	yes := v1.ConditionTrue
	status := v1.PodStatus{Phase: v1.PodRunning, StartTime: &now, Conditions: []v1.PodCondition{
		{Type: v1.PodInitialized, Status: yes, LastTransitionTime: now}, {Type: v1.ContainersReady, Status: yes, LastTransitionTime: now},
		{Type: v1.PodReady, Status: yes, LastTransitionTime: now},
	}}
	ip := k.podIPs.of(string(p.UID))
	status.PodIP, status.PodIPs = ip, []v1.PodIP{{IP: ip}}
	up := true
	for i := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: p.Spec.Containers[i].Name, Image: p.Spec.Containers[i].Image, Ready: true, Started: &up,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	running := *p
	running.Status = status
	simulatedresizes.Allocate(&running)
	k.patchPod(ctx, p, running.Status)
}

// finishPod reports that a pod has succeeded.
func (k *kubelets) finishPod(ctx context.Context, p *v1.Pod) {
	now := metav1.Now()
	done := v1.ConditionFalse
	status := v1.PodStatus{Phase: v1.PodSucceeded, Conditions: []v1.PodCondition{
		{Type: v1.ContainersReady, Status: done, Reason: "PodCompleted", LastTransitionTime: now},
		{Type: v1.PodReady, Status: done, Reason: "PodCompleted", LastTransitionTime: now},
	}}
	for i := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: p.Spec.Containers[i].Name, Image: p.Spec.Containers[i].Image,
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.NewTime(started(p, now.Time)), FinishedAt: now}},
		})
	}
	k.patchPod(ctx, p, status)
}

// patchPod writes a pod's status. The UID in the patch makes it fail when another pod has
// the name by now.
func (k *kubelets) patchPod(ctx context.Context, p *v1.Pod, status v1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	k.again(err, func(ctx context.Context) { k.patchPod(ctx, p, status) })
}

// stopPod reports that a deleted pod has ended, and removes its object, as a kubelet does when
// the pod has stopped. A Job makes no other pod before it is told that.
func (k *kubelets) stopPod(ctx context.Context, p *v1.Pod) {
	now := metav1.Now()
	done := v1.ConditionFalse
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{
		{Type: v1.ContainersReady, Status: done, Reason: "PodFailed", LastTransitionTime: now},
		{Type: v1.PodReady, Status: done, Reason: "PodFailed", LastTransitionTime: now},
	}}})
	if err != nil {
		return
	}
	if _, err = k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		k.again(err, func(ctx context.Context) { k.stopPod(ctx, p) })
		return
	}
	k.removePod(ctx, p)
}

// removePod removes a deleted pod's object.
func (k *kubelets) removePod(ctx context.Context, p *v1.Pod) {
	opts := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID}}
	err := k.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, opts)
	k.again(err, func(ctx context.Context) { k.removePod(ctx, p) })
}
