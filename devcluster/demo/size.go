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
)

// Size are the options of a measurement: many equal nodes, many pods, how fast
// Berth binds them and how much memory it takes.
type Size struct {
	Berth       string
	Nodes, Pods int
	Out         io.Writer
	Limit       time.Duration
	MaxMemory   int64 // bytes Berth may take at its peak; 0 for anything
	Settle      time.Duration
}

// Run measures. Nodes have 16 CPUs, 64 GiB and 110 pods; pods ask for 100m and
// 500 Mi, as in the baseline that kube-scheduler was measured with. There are
// no kubelets: pods stay bound.
func (z Size) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, z.Limit, fmt.Errorf("expected %d pods to be bound within %s", z.Pods, z.Limit))
	defer cancel()
	dir, err := os.MkdirTemp("", "berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := setStage(ctx, z.Out, z.Berth, dir, withoutKubelets)
	if err != nil {
		return err
	}
	defer s.strike()
	fmt.Fprintf(z.Out, "creating %d nodes …\n", z.Nodes)
	node := func(ctx context.Context, i int) error {
		n := &v1.Node{}
		n.Name = fmt.Sprintf("node-%05d", i)
		n.Labels = map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("110")}
		n.Status.Capacity = n.Status.Allocatable
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		_, err := s.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	}
	if err := api.Each(ctx, z.Nodes, node); err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	before := s.berth.Usage().CPU
	fmt.Fprintf(z.Out, "creating %d pods …\n", z.Pods)
	var created atomic.Int64
	start := time.Now()
	failed := make(chan error, 1)
	go func() {
		failed <- api.Each(ctx, z.Pods, func(ctx context.Context, i int) error {
			p := &v1.Pod{}
			p.Name = fmt.Sprintf("pod-%06d", i)
			p.Labels = map[string]string{"app": fmt.Sprint("app-", i%20)}
			p.Spec.Containers = []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("500Mi")}}}}
			_, err := s.client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, p, metav1.CreateOptions{})
			if err == nil {
				created.Add(1)
			}
			return err
		})
	}()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for bound := 0; bound < z.Pods; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-failed:
			if err != nil {
				return fmt.Errorf("creating pods: %w", err)
			}
			failed = nil
			continue
		case <-tick.C:
		}
		if err := s.failed(); err != nil {
			return err
		}
		bound = z.Pods - int(s.pending(ctx))
		if int(created.Load()) < z.Pods {
			bound = min(bound, int(created.Load()))
		}
		u := s.berth.Usage()
		fmt.Fprintf(z.Out, "%5.0fs  created %6d  berth: %6.1fs CPU, %4d MiB\n", time.Since(start).Seconds(), created.Load(), u.CPU.Seconds(), u.PeakRSS>>20)
		if failed != nil {
			bound = 0 // not before all are created
		}
	}
	took := time.Since(start)
	fmt.Fprintf(z.Out, "\n%d pods bound on %d nodes in %.1f s: %.0f pods/s, %.2f ms of Berth's CPU per pod\n", z.Pods, z.Nodes, took.Seconds(),
		float64(z.Pods)/took.Seconds(), (s.berth.Usage().CPU-before).Seconds()*1000/float64(z.Pods))
	time.Sleep(z.Settle)
	u, _ := s.usage()
	if z.MaxMemory > 0 && u.PeakRSS > z.MaxMemory {
		return fmt.Errorf("expected berth to take at most %d MiB, it took %d", z.MaxMemory>>20, u.PeakRSS>>20)
	}
	return nil
}

// pending counts pods without a node, by asking for one and how many more
// there are.
func (s *stage) pending(ctx context.Context) int64 {
	list, err := s.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: 1})
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
