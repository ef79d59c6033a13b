package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file measures how fast Berth binds many pods on many nodes, and how much memory
// that takes.

// Size are the options of a measurement.
type Size struct {
	Berth       string // path of the berth binary
	Nodes, Pods int
	Out         io.Writer
	Limit       time.Duration // until all pods are bound
	MaxMemory   int64         // bytes that Berth may take at its peak; 0 for no limit
	WaitAtEnd   time.Duration // with the cluster up, to see what Berth takes at rest
}

// Run measures. There are no kubelets, so pods stay bound.
func (z Size) Run(ctx context.Context) error {
	interrupted := ctx.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, z.Limit, fmt.Errorf("expected %d pods to be bound within %s", z.Pods, z.Limit))
	defer cancel()
	dir, err := os.MkdirTemp("", "berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := startTestbed(ctx, controlplane.Options{Progress: z.Out, NoKubelets: true}, z.Berth, dir, "")
	if err != nil {
		return err
	}
	defer bed.stop()
	fmt.Fprintf(z.Out, "creating %d nodes …\n", z.Nodes)
	if err := api.Each(ctx, z.Nodes, func(ctx context.Context, i int) error {
		_, err := bed.client.CoreV1().Nodes().Create(ctx, sizeNode(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	before := bed.berth.Usage().CPU
	fmt.Fprintf(z.Out, "creating %d pods …\n", z.Pods)
	start := time.Now()
	if err := z.createAndFollow(ctx, bed, start); err != nil {
		return err
	}
	took := time.Since(start)
	fmt.Fprintf(z.Out, "\n%d pods bound on %d nodes in %.1f s: %.0f pods/s, %.2f ms of Berth's CPU per pod\n", z.Pods, z.Nodes, took.Seconds(),
		float64(z.Pods)/took.Seconds(), (bed.berth.Usage().CPU-before).Seconds()*1000/float64(z.Pods))
	select {
	case <-interrupted:
		return context.Cause(ctx)
	case <-time.After(z.WaitAtEnd):
	}
	u, _ := bed.usage()
	if z.MaxMemory > 0 && u.PeakRSS > z.MaxMemory {
		return fmt.Errorf("expected berth to take at most %d MiB, it took %d", z.MaxMemory>>20, u.PeakRSS>>20)
	}
	return nil
}

// sizeNode returns the i-th node: 16 CPUs, 64 GiB, 110 pods.
func sizeNode(i int) *v1.Node {
	n := &v1.Node{}
	n.Name = fmt.Sprintf("node-%05d", i)
	n.Labels = map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// sizePod returns the i-th pod, of one of 20 apps. It requests what the pods did that
// kube-scheduler was measured with: 100m and 500 MiB.
func sizePod(i int) *v1.Pod {
	p := &v1.Pod{}
	p.Name = fmt.Sprintf("pod-%06d", i)
	p.Labels = map[string]string{"app": fmt.Sprint("app-", i%20)}
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("500Mi")}}}}
	return p
}

// createAndFollow creates the pods, and returns when all of them are bound.
func (z Size) createAndFollow(ctx context.Context, bed *testbed, start time.Time) error {
	var created atomic.Int64
	creating := make(chan error, 1)
	go func() {
		creating <- api.Each(ctx, z.Pods, func(ctx context.Context, i int) error {
			_, err := bed.client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, sizePod(i), metav1.CreateOptions{})
			if err == nil {
				created.Add(1)
			}
			return err
		})
	}()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-creating:
			if err != nil {
				return fmt.Errorf("creating pods: %w", err)
			}
			creating = nil
			continue
		case <-tick.C:
		}
		if err := bed.failed(); err != nil {
			return err
		}
		u := bed.berth.Usage()
		fmt.Fprintf(z.Out, "%5.0fs  created %6d  berth: %6.1fs CPU, %4d MiB\n", time.Since(start).Seconds(), created.Load(), u.CPU.Seconds(), u.PeakRSS>>20)
		if creating == nil && bed.pending(ctx) == 0 {
			return nil
		}
	}
}

// pending returns how many pods have no node, by listing one of them and how many more
// there are: at least 1 when the API server doesn't say.
func (bed *testbed) pending(ctx context.Context) int64 {
	list, err := bed.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: 1})
	if err != nil {
		return 1
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	} else if list.Continue != "" {
		n++
	}
	return n
}
