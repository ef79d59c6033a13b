package storm

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// This file deletes objects and creates them again under their names while no Berth sees it.
// Six pods fill two nodes of 4 CPUs. A Berth that kept the old ones would have no room for the new ones.

const namedPods = 6

// makeNamed creates the pods of the named pool.
func makeNamed(ctx context.Context, client kubernetes.Interface) error {
	for i := range namedPods {
		p := bare(fmt.Sprint("named-", i), "1300m", "storm-middle")
		p.Spec.NodeSelector = map[string]string{poolLabel: namedPool}
		if _, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a pod again: %w", err)
		}
	}
	return nil
}

// useNamesAgain deletes the pods and nodes of the named pool and creates them again.
func useNamesAgain(ctx context.Context, r *run, _ Step) (time.Time, error) {
	return r.unseen(ctx, func() error {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		for i := range namedPods {
			if err := r.bed.client.CoreV1().Pods(namespace).Delete(ctx, fmt.Sprint("named-", i), now); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting a pod: %w", err)
			}
		}
		for i := range namedSize {
			n := fixedNode(namedPool, i)
			if err := r.bed.client.CoreV1().Nodes().Delete(ctx, n.Name, now); err != nil {
				return fmt.Errorf("deleting a node: %w", err)
			}
			if _, err := r.bed.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a node again: %w", err)
			}
		}
		err := waitFor(ctx, time.Minute, "the nodes to be ready again", func() bool { return r.namedNodesReady(ctx) })
		if err != nil {
			return err
		}
		return makeNamed(ctx, r.bed.client)
	})
}

// namedNodesReady reports whether pods may be placed on the nodes of the named pool.
func (r *run) namedNodesReady(ctx context.Context) bool {
	list, err := r.bed.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + namedPool})
	if err != nil || len(list.Items) != namedSize {
		return false
	}
	for i := range list.Items {
		for _, t := range list.Items[i].Spec.Taints {
			if t.Key == v1.TaintNodeNotReady {
				return false
			}
		}
	}
	return true
}
