package kubelets

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file is what kubelets do with nodes: they report a new node ready and renew its
// lease until it is deleted.

// nodeChanged begins to renew the lease of a new node, completes what its object says about it,
// and reports a node ready that needs it.
func (k *kubelets) nodeChanged(n *v1.Node) {
	k.mu.Lock()
	known := k.nodes[n.Name] != nil
	k.nodes[n.Name] = n
	k.mu.Unlock()
	if k.real(n.Name) {
		return
	}
	if !known {
		k.at(time.Now(), func(ctx context.Context) { k.renew(ctx, n.Name, n.UID) })
	}
	if m := missingMetadata(n); m != nil {
		k.at(time.Now(), func(ctx context.Context) { k.patchNode(ctx, n, m) })
	}
	if s := missingStatus(n, k.nodeIPs, k.o.Port); s != nil {
		k.at(time.Now(), func(ctx context.Context) { k.patchNode(ctx, n, s, "status") })
	}
	if needsReady(n) {
		k.at(time.Now(), func(ctx context.Context) { k.reportReady(ctx, n) })
	}
}

// real reports whether a node has a kubelet of its own.
func (k *kubelets) real(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[name]
	return n != nil && n.Labels[RealNode] != ""
}

// needsReady reports whether nobody else reports how the node is. A node whose provider
// reports that it is starting is left to the provider.
func needsReady(n *v1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionUnknown
		}
	}
	return true
}

// unnoticed reports whether the node controller hasn't noticed that a node is ready. When it can't
// take the taint away, since the API server or etcd is away just then, it doesn't try again
// before the node changes; a kubelet reports every few minutes that nothing has changed.
func unnoticed(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }) &&
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeNotReady })
}

// nodeGone forgets a node, which ends the renewals of its lease. The node's address stays taken.
func (k *kubelets) nodeGone(name string) {
	k.mu.Lock()
	delete(k.nodes, name)
	k.mu.Unlock()
}

// reportReady writes the condition Ready.
func (k *kubelets) reportReady(ctx context.Context, n *v1.Node) {
	now := metav1.Now()
	k.patchNode(ctx, n, map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated kubelet is ready",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}}, "status")
}

// patchNode merges a patch into a node's object. The UID makes it fail when another node has
// the name by now.
func (k *kubelets) patchNode(ctx context.Context, n *v1.Node, patch map[string]any, subresources ...string) {
	withUID := maps.Clone(patch)
	meta := map[string]any{"uid": n.UID}
	if m, ok := patch["metadata"].(map[string]any); ok {
		maps.Copy(meta, m)
	}
	withUID["metadata"] = meta
	raw, err := json.Marshal(withUID)
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, raw, metav1.PatchOptions{}, subresources...)
	k.again(err, func(ctx context.Context) { k.patchNode(ctx, n, patch, subresources...) })
}

// renew renews a node's lease and plans the next renewal, as long as the node exists, and reports
// again what hasn't been noticed. The garbage collector deletes the lease with its node.
func (k *kubelets) renew(ctx context.Context, name string, uid types.UID) {
	k.mu.Lock()
	n := k.nodes[name]
	k.mu.Unlock()
	if n == nil {
		return
	}
	if unnoticed(n) {
		k.patchNode(ctx, n, map[string]any{"status": map[string]any{"conditions": []map[string]any{{
			"type": v1.NodeReady, "lastHeartbeatTime": metav1.Now(),
		}}}}, "status")
	}
	leases := k.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(3 * k.o.LeaseInterval / time.Second)), RenewTime: &now}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}},
		}, Spec: spec}, metav1.CreateOptions{})
	}
	next := k.o.LeaseInterval
	if err != nil {
		next = 5 * time.Second
	}
	k.at(time.Now().Add(next), func(ctx context.Context) { k.renew(ctx, name, uid) })
}
