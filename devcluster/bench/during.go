package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/devcluster/api"
)

// This file is what happens in the cluster while a contender works. An error of it ends the run,
// but for one that the end of the context brings.

// paced calls f for 0, 1, … at a rate, n times or, with n 0, until the context ends. A call that takes
// longer than its turn delays the next: churn never piles up on a slow machine. Errors after the end of
// the context are its own.
func paced(ctx context.Context, every time.Duration, n int, f func(i int) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; n == 0 || i < n; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := f(i); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// perSecond returns the time between two of so many in a second.
func perSecond(n int) time.Duration { return time.Second / time.Duration(n) }

// each creates a pod every so many milliseconds.
func each(millis int, shape func(i int) *v1.Pod) func(context.Context, *bench, Size) error {
	return func(ctx context.Context, b *bench, _ Size) error {
		return paced(ctx, time.Duration(millis)*time.Millisecond, 0, func(i int) error {
			_, err := b.client.CoreV1().Pods(churning).Create(ctx, shape(i), metav1.CreateOptions{})
			return wrapped("creating a pod meanwhile", err)
		})
	}
}

// wrapped adds to an error what was being done; nil stays nil.
func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// comeAndGo creates and deletes, in turn, a node, a Service and a pod that fits nowhere.
func comeAndGo(ctx context.Context, b *bench, _ Size) error {
	core := b.client.CoreV1()
	return paced(ctx, time.Second, 0, func(i int) error {
		node, pod := newNode(0), huge(0)
		node.Name = "churn"
		if i%2 == 0 {
			_, err := core.Nodes().Create(ctx, node, metav1.CreateOptions{})
			_, err2 := core.Pods(churning).Create(ctx, pod, metav1.CreateOptions{})
			return wrapped("creating what comes and goes", errors.Join(err, err2, b.service(ctx, "churn")))
		}
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		return wrapped("deleting what comes and goes", errors.Join(core.Nodes().Delete(ctx, node.Name, now), core.Pods(churning).Delete(ctx, pod.Name, now),
			core.Services(measured).Delete(ctx, "churn", now)))
	})
}

// deleteStanding deletes the pods that have been on nodes before, so many a second.
func deleteStanding(rate int) func(context.Context, *bench, Size) error {
	return func(ctx context.Context, b *bench, _ Size) error {
		pods, err := api.Pods(ctx, b.client, beforehand, "spec.nodeName!=")
		if err != nil {
			return err
		}
		return paced(ctx, perSecond(rate), len(pods), func(i int) error {
			err := b.client.CoreV1().Pods(beforehand).Delete(ctx, pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			if apierrors.IsNotFound(err) {
				return nil // a preemptor was faster
			}
			return wrapped("deleting a pod", err)
		})
	}
}

// ungate takes the gates off the measured pods, so many a second.
func ungate(rate int) func(context.Context, *bench, Size) error {
	return func(ctx context.Context, b *bench, s Size) error {
		return paced(ctx, perSecond(rate), s.Pods, func(i int) error {
			_, err := b.client.CoreV1().Pods(measured).Patch(ctx, gated(i).Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
			return wrapped("taking a gate away", err)
		})
	}
}

// addNodes adds nodes until there are as many as the size says.
func addNodes(rate int) func(context.Context, *bench, Size) error {
	return func(ctx context.Context, b *bench, s Size) error {
		return paced(ctx, perSecond(rate), s.Nodes-1, func(i int) error {
			n := newNode(i + 1)
			n.Status.Capacity = n.Status.Allocatable
			_, err := b.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
			return wrapped("creating a node", err)
		})
	}
}

// uncordon lets all nodes take pods, so many a second.
func uncordon(rate int) func(context.Context, *bench, Size) error {
	return func(ctx context.Context, b *bench, s Size) error {
		return paced(ctx, perSecond(rate), s.Nodes, func(i int) error {
			_, err := b.client.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, []byte(`{"spec":{"unschedulable":null,"taints":null}}`), metav1.PatchOptions{})
			return wrapped("uncordoning a node", err)
		})
	}
}

// eventStorm changes labels of nodes and deletes pods: events that a scheduler must not retry every
// waiting pod for.
func eventStorm(ctx context.Context, b *bench, s Size) error {
	deleting := make(chan error, 1)
	go func() { deleting <- deleteStanding(50)(ctx, b, s) }()
	err := paced(ctx, perSecond(50), 0, func(i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"storm":"%d"}}}`, i)
		_, err := b.client.CoreV1().Nodes().Patch(ctx, nodeName(i%s.Nodes), types.MergePatchType, patch, metav1.PatchOptions{})
		return wrapped("changing a node", err)
	})
	return errors.Join(err, <-deleting)
}

// arrive creates the measured pods of a case in which they come last, when all pods that wait were tried.
func (a *attempt) arrive(ctx context.Context) error {
	waiting := 0
	for _, x := range a.c.before {
		if x.waiting {
			waiting += x.count(a.o.Size)
		}
	}
	if !a.bare() {
		if err := awaitTried(ctx, a.bench, waiting); err != nil {
			return err
		}
	}
	err := api.Each(ctx, a.pods, func(ctx context.Context, i int) error { return a.createPod(ctx, a.c, i) })
	if ctx.Err() != nil {
		return nil
	}
	return wrapped("creating the pods that come last", err)
}

// awaitTried returns when so many pods that are there before have the condition that says whether they were placed, or
// when the context ends. It follows a watch, which costs the API server the same with each contender.
func awaitTried(ctx context.Context, b *bench, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tried, all := map[types.UID]bool{}, make(chan struct{})
	look := func(o any) {
		p := o.(*v1.Pod)
		known := tried[p.UID] || !slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
		if known {
			return
		}
		if tried[p.UID] = true; len(tried) == n {
			close(all)
		}
	}
	pods := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(beforehand)).Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }}); err != nil {
		return wrapped("watching the pods that wait", err)
	}
	go pods.RunWithContext(ctx)
	select {
	case <-all:
	case <-ctx.Done():
	}
	return nil
}
