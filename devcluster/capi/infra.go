package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// This file is the infrastructure: an instance is a node, and its provider ID has the node's name.

// ProviderID returns that of a node.
func ProviderID(node string) string { return "played://" + node }

// reconcile brings a Machine one step closer to being a node, or to being gone.
func (c *Controller) reconcile(ctx context.Context, m *clusterv1.Machine) error {
	c.mu.Lock()
	failure := c.failed[m.Name]
	c.mu.Unlock()
	switch {
	case m.DeletionTimestamp != nil:
		if err := c.deleteNode(ctx, m.Name); err != nil || len(m.Finalizers) == 0 {
			return err
		}
		return patch(ctx, c.Objects, Machines, m.Name, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	case failure != nil && m.Status.Phase == "":
		return patch(ctx, c.Objects, Machines, m.Name, map[string]any{"status": map[string]any{"phase": "Failed", // of v1beta1, as the rest
			"deprecated": map[string]any{"v1beta1": map[string]any{"failureReason": failure.Reason, "failureMessage": failure.Message}}}}, "status")
	case failure != nil:
		return nil
	case m.Spec.ProviderID == "":
		return patch(ctx, c.Objects, Machines, m.Name, map[string]any{"spec": map[string]any{"providerID": ProviderID(m.Name)}})
	case m.Status.NodeRef.Name == "":
		if err := c.createNode(ctx, m.Name, m.Labels); err != nil {
			return err
		}
		return patch(ctx, c.Objects, Machines, m.Name, map[string]any{"status": map[string]any{"phase": clusterv1.MachinePhaseRunning, "nodeRef": map[string]any{"name": m.Name}}}, "status")
	}
	return nil
}

// fill gives a MachinePool as many instances as it has replicas: Machines when it has them, and
// otherwise nodes, of which it removes those that were made last.
func (c *Controller) fill(ctx context.Context, p *clusterv1.MachinePool, all []*clusterv1.Machine) error {
	want := int(ptr.Deref(p.Spec.Replicas, 0))
	ids := []string{}
	if _, ok := p.Annotations[WithMachines]; ok {
		owner := metav1.NewControllerRef(p, clusterv1.GroupVersion.WithKind("MachinePool"))
		if err := c.scale(ctx, owner, want, &p.Spec.Template, all); err != nil {
			return err
		}
		for _, m := range all {
			if metav1.IsControlledBy(m, p) && m.Spec.ProviderID != "" {
				ids = append(ids, m.Spec.ProviderID)
			}
		}
	} else {
		for i := range max(want, len(p.Spec.ProviderIDList)) {
			name := fmt.Sprintf("%s-%d", p.Name, i)
			if i >= want {
				if err := c.deleteNode(ctx, name); err != nil {
					return err
				}
				continue
			}
			ids = append(ids, ProviderID(name))
			if err := c.createNode(ctx, name, p.Spec.Template.Labels); err != nil {
				return err
			}
		}
	}
	if slices.Equal(ids, p.Spec.ProviderIDList) {
		return nil
	}
	return patch(ctx, c.Objects, Pools, p.Name, map[string]any{"spec": map[string]any{"providerIDList": ids}})
}

// createNode creates a node with those labels that Cluster API gives nodes.
func (c *Controller) createNode(ctx context.Context, name string, labels map[string]string) error {
	n := &v1.Node{}
	n.Name, n.Labels, n.Spec.ProviderID = name, map[string]string{}, ProviderID(name)
	for key, value := range labels {
		if strings.HasPrefix(key, clusterv1.ManagedNodeLabelDomain+"/") {
			n.Labels[key] = value
		}
	}
	n.Status.Allocatable = c.Allocatable
	_, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *Controller) deleteNode(ctx context.Context, name string) error {
	err := c.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
