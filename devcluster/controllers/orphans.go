package controllers

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// orphanage deletes the pods of nodes that are gone, as kube-controller-manager's garbage collector
// of pods does: nobody else would, since their kubelets are gone, too.
type orphanage struct {
	client  kubernetes.Interface
	pods    listers.PodLister
	nodes   listers.NodeLister
	missing map[string]time.Time // since when nodes are, by name
}

// orphansEvery is how often it looks, and quarantine for how long a node is gone before its pods are
// deleted: until then the cache shows how they have ended.
const (
	orphansEvery = 20 * time.Second
	quarantine   = 40 * time.Second
)

func newOrphanage(client kubernetes.Interface, pods listers.PodLister, nodes listers.NodeLister) *orphanage {
	return &orphanage{client: client, pods: pods, nodes: nodes, missing: map[string]time.Time{}}
}

func orphans(s *shared) (func(), error) {
	pods, nodes := s.informers.Core().V1().Pods(), s.informers.Core().V1().Nodes()
	o := newOrphanage(s.client, pods.Lister(), nodes.Lister())
	synced := []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced}
	return func() {
		if cache.WaitForCacheSync(s.ctx.Done(), synced...) {
			wait.UntilWithContext(s.ctx, func(ctx context.Context) { o.collect(ctx, time.Now()) }, orphansEvery)
		}
	}, nil
}

// collect deletes the orphans that there are. What fails is tried again by the next call.
func (o *orphanage) collect(ctx context.Context, now time.Time) {
	pods, err := o.pods.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing pods")
		return
	}
	byNode := map[string][]*v1.Pod{} // of nodes that the cache doesn't have
	for _, p := range pods {
		if _, err := o.nodes.Get(p.Spec.NodeName); err != nil && p.Spec.NodeName != "" {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	maps.DeleteFunc(o.missing, func(node string, _ time.Time) bool { return byNode[node] == nil })
	for node, pods := range byNode {
		since, known := o.missing[node]
		if !known {
			o.missing[node] = now
		}
		if !known || now.Sub(since) < quarantine || !o.isGone(ctx, node) {
			continue
		}
		for _, p := range pods {
			if err := o.remove(ctx, p); err != nil && !apierrors.IsNotFound(err) {
				klog.FromContext(ctx).Error(err, "Deleting the pod of a node that is gone", "pod", klog.KObj(p), "node", node)
			}
		}
	}
}

// isGone reports whether the API server has no such node: a cache may lag.
func (o *orphanage) isGone(ctx context.Context, name string) bool {
	_, err := o.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// remove deletes a pod at once. One that hasn't ended counts as failed, for whoever made it.
func (o *orphanage) remove(ctx context.Context, p *v1.Pod) error {
	if p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{"phase": v1.PodFailed, "conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists", LastTransitionTime: metav1.Now(),
		}}}})
		if err != nil {
			return err
		}
		if _, err := o.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(p.UID))
	return o.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *now)
}
