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
	after, retry, changed := k.decideResize(uid)
	k.mu.Unlock()
	if after == nil {
		return
	}
	if changed {
		k.patchResize(ctx, after)
	}
	if retry {
		k.at(time.Now().Add(retryResizes), func(ctx context.Context) { k.retryResize(ctx, uid) })
	}
	if simulatedresizes.Pending(after) != v1.PodReasonDeferred {
		k.retryResizesOn(after.Spec.NodeName, uid)
	}
}

// decideResize returns a pod as it is after a decision about its resize, nil when there is none to decide about. It records
// that pod, so that a decision about another one counts what this one takes before a watch shows it. changed reports whether
// the status is another than before, and retry whether the caller must schedule retryResize. The caller holds mu.
func (k *kubelets) decideResize(uid types.UID) (after *v1.Pod, retry, changed bool) {
	s := k.pods[uid]
	if s == nil || s.shown == nil {
		return nil, false, false
	}
	p := s.shown
	n := k.nodes[p.Spec.NodeName]
	if n == nil || n.Labels[RealNode] != "" || p.DeletionTimestamp != nil || !resizes(p) {
		return nil, false, false
	}
	var others []*v1.Pod
	for _, other := range k.pods { // in any order: they are added up
		if o := other.shown; o != nil && o.Spec.NodeName == p.Spec.NodeName && o.Status.Phase != v1.PodSucceeded && o.Status.Phase != v1.PodFailed {
			others = append(others, o)
		}
	}
	after = p.DeepCopy()
	simulatedresizes.Apply(after, simulatedresizes.Decide(n, others, p), metav1.Now())
	s.shown = after
	if delete(k.deferred, uid); simulatedresizes.Pending(after) == v1.PodReasonDeferred {
		k.deferred[uid] = true
		retry, s.retrying = !s.retrying, true
	}
	return after, retry, !equality.Semantic.DeepEqual(p.Status, after.Status)
}

// retryResize decides again about a resize that was deferred retryResizes ago.
func (k *kubelets) retryResize(ctx context.Context, uid types.UID) {
	k.mu.Lock()
	if s := k.pods[uid]; s != nil {
		s.retrying = false
	}
	k.mu.Unlock()
	k.resizePod(ctx, uid)
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

// patchResize writes what is decided about a resize to a pod's status: after is the pod with the decision. A list of
// conditions is merged by type, so that the one that is gone has to be named.
func (k *kubelets) patchResize(ctx context.Context, after *v1.Pod) {
	var condition any = map[string]any{"type": v1.PodResizePending, "$patch": "delete"}
	for _, c := range after.Status.Conditions {
		if c.Type == v1.PodResizePending {
			condition = c
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": after.UID},
		"status": map[string]any{"containerStatuses": after.Status.ContainerStatuses, "conditions": []any{condition}}})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Pods(after.Namespace).Patch(ctx, after.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	k.again(err, func(ctx context.Context) { k.patchResize(ctx, after) })
}
