package kubelets

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/internal/simulatedresizes"
)

// This file is resizes in place: a kubelet carries one out when its node has room, defers it, or calls it infeasible.
// What is deferred is tried again when a pod of the node is gone, gets smaller, or every retryResizes.
//
// What is allocated is in the status of every pod from the write on that says that it runs (startPod): the API server
// refuses to resize running pods whose status has none.

// retryResizes is how long a deferred resize waits at most before it is tried again, as with a kubelet.
const retryResizes = 3 * time.Minute

// noteResize records how a pod is shown. It reports whether a look at its resize is due: it is to have other amounts
// than at the last look. The caller holds mu.
func (k *kubelets) noteResize(s *podState, p *v1.Pod) (due bool) {
	s.shown = p
	delete(k.deferred, p.UID)
	if p.Status.Phase != v1.PodRunning || p.DeletionTimestamp != nil {
		return false
	}
	if simulatedresizes.Pending(p) == v1.PodReasonDeferred {
		k.deferred[p.UID] = true
	}
	if !resizes(p) {
		s.looked = nil
		return false
	}
	if s.looked != nil && sameRequests(s.looked, p) {
		return false
	}
	s.looked = p
	return true
}

// resizes reports whether a pod is to have other amounts than are allocated to it, or is shown as such.
func resizes(p *v1.Pod) bool { return simulatedresizes.Wanted(p) || simulatedresizes.Pending(p) != "" }

// sameRequests reports whether the containers of a pod request in one version what they do in another.
func sameRequests(a, b *v1.Pod) bool {
	return slices.EqualFunc(a.Spec.Containers, b.Spec.Containers, func(x, y v1.Container) bool {
		return equality.Semantic.DeepEqual(x.Resources.Requests, y.Resources.Requests)
	})
}

// resizePod decides about the resize of a pod, and writes what it has decided.
func (k *kubelets) resizePod(ctx context.Context, uid types.UID) {
	k.mu.Lock()
	s := k.pods[uid]
	if s == nil || s.shown == nil {
		k.mu.Unlock()
		return
	}
	p := s.shown
	n := k.nodes[p.Spec.NodeName]
	var others []*v1.Pod
	for _, other := range k.pods { // in any order: they are added up
		if o := other.shown; o != nil && o.Spec.NodeName == p.Spec.NodeName && o.Status.Phase != v1.PodSucceeded && o.Status.Phase != v1.PodFailed {
			others = append(others, o)
		}
	}
	k.mu.Unlock()
	if n == nil || p.DeletionTimestamp != nil || !resizes(p) || k.real(p.Spec.NodeName) {
		return
	}
	verdict := simulatedresizes.Decide(n, others, p)
	k.patchResize(ctx, p, verdict)
	if verdict.Reason == v1.PodReasonDeferred {
		k.at(time.Now().Add(retryResizes), func(ctx context.Context) { k.resizePod(ctx, uid) })
		return
	}
	k.retryResizesOn(p.Spec.NodeName, uid)
}

// retryResizesOn looks again at the resizes that a node has deferred, but for that of one pod.
func (k *kubelets) retryResizesOn(node string, but types.UID) {
	var again []types.UID
	k.mu.Lock()
	for uid := range k.deferred { // in any order
		if s := k.pods[uid]; uid != but && s != nil && s.shown.Spec.NodeName == node {
			again = append(again, uid)
		}
	}
	k.mu.Unlock()
	for _, uid := range again {
		k.at(time.Now(), func(ctx context.Context) { k.resizePod(ctx, uid) })
	}
}

// patchResize writes a verdict to a pod's status. A list of conditions is merged by type, so that the one that is gone
// has to be named.
func (k *kubelets) patchResize(ctx context.Context, p *v1.Pod, verdict simulatedresizes.Verdict) {
	after := *p
	simulatedresizes.Apply(&after, verdict, metav1.Now())
	condition := map[string]any{"type": v1.PodResizePending, "$patch": "delete"}
	if verdict.Reason != "" {
		condition = map[string]any{"type": v1.PodResizePending, "status": v1.ConditionTrue, "reason": verdict.Reason, "message": verdict.Message, "lastTransitionTime": metav1.Now()}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID},
		"status": map[string]any{"containerStatuses": after.Status.ContainerStatuses, "conditions": []any{condition}}})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	k.again(err, func(ctx context.Context) { k.patchResize(ctx, p, verdict) })
}
