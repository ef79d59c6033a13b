// Package api is how the parts of the dev cluster talk to its API server: in protobuf,
// and without the client's rate limit, since one process does the work of all kubelets,
// of a benchmark's users, or of a scheduler that is measured.
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

// Config returns a copy that sends protobuf and has no rate limit.
func Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.QPS = runtime.ContentTypeProtobuf, -1
	return cfg
}

// New returns a client with protobuf and without a rate limit.
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

// Each calls f for 0 to n-1, 32 calls at a time, begun in that order. It begins none after
// one has failed or the context has ended, and returns when all have returned.
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

// Nodes returns all nodes.
func Nodes(ctx context.Context, client kubernetes.Interface) ([]*v1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading nodes: %w", err)
	}
	return pointers(list.Items), nil
}

// Pods returns the pods that a field selector selects, of a namespace or, for "", of all.
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
