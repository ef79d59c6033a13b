// Package api is how the parts of the dev cluster talk to its API server: in
// protobuf and without limits of their own, for what they do is what is measured
// or what a whole cluster would do.
package api

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns a copy without limits, and with the fastest encoding.
func Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.QPS = runtime.ContentTypeProtobuf, -1
	return cfg
}

// New returns such a client.
func New(cfg *rest.Config) (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(Config(cfg))
}

// Dial returns a client for the cluster of a kubeconfig file.
func Dial(kubeconfig string) (*kubernetes.Clientset, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return New(cfg)
}

// workers is how many calls Each has under way.
const workers = 32

// Each calls f for 0 to n-1, several at a time, started in that order, until one
// fails or the context ends; it returns when all have returned.
func Each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error { return f(inner, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Nodes reads all nodes.
func Nodes(ctx context.Context, client kubernetes.Interface) ([]*v1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading nodes: %w", err)
	}
	return pointers(list.Items), nil
}

// Pods reads the pods of a namespace, or of all, that a field selector selects.
func Pods(ctx context.Context, client kubernetes.Interface, namespace, fields string) ([]*v1.Pod, error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields})
	if err != nil {
		return nil, fmt.Errorf("reading pods: %w", err)
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
