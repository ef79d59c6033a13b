package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	Rate        int           // pods that are created in a second; 0 for as many as can be
	Shadow      bool          // measure a shadow beside Berth, too, from when all nodes are there
}

// Run measures. There are no kubelets, so pods stay bound.
// Its error says which expectation wasn't met. The cluster is gone when it returns.
func (z Size) Run(ctx context.Context) error {
	// The caller's context: Ctrl-C ends the last wait, but the limit doesn't.
	interrupted := ctx.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, z.Limit, fmt.Errorf("expected %d pods to be bound within %s", z.Pods, z.Limit))
	defer cancel()
	dir, err := controlplane.MakeTemp("berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := startTestbed(ctx, controlplane.Options{Progress: z.Out, NoKubelets: true}, program{berth: z.Berth, dir: dir})
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
	var shadow *controlplane.Process
	var shadowBefore time.Duration
	if z.Shadow {
		if shadow, err = startShadow(ctx, bed, z.Berth, filepath.Join(dir, "shadow.log")); err != nil {
			return err
		}
		defer shadow.Stop(10 * time.Second)
		// What it took to start isn't counted.
		shadowBefore = shadow.Usage().CPU
	}
	before := bed.berth.Usage().CPU
	fmt.Fprintf(z.Out, "creating %d pods …\n", z.Pods)
	start := time.Now()
	if err := z.createAndFollow(ctx, bed, start); err != nil {
		return err
	}
	took := time.Since(start)
	if shadow != nil {
		u := shadow.Usage()
		fmt.Fprintf(z.Out, "\nthe shadow used %.1f %% of a core and at most %d MiB\n", 100*(u.CPU-shadowBefore).Seconds()/took.Seconds(), u.PeakRSS>>20)
	}
	fmt.Fprintf(z.Out, "\n%d pods bound on %d nodes in %.1f s: %.0f pods/s, %.2f ms of Berth's CPU per pod\n", z.Pods, z.Nodes, took.Seconds(),
		float64(z.Pods)/took.Seconds(), (bed.berth.Usage().CPU-before).Seconds()*1000/float64(z.Pods))
	// Rates are of the time before this wait; memory is looked at after it.
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

// startShadow starts a shadow, and waits until it has the nodes.
// It is told ready by its log, since it serves on a port of its own choice.
func startShadow(ctx context.Context, bed *testbed, berth, log string) (*controlplane.Process, error) {
	p, err := controlplane.StartProcess("the shadow", log, berth, "run", "--shadow", "--kubeconfig", bed.cluster.Kubeconfig, "--secure-port", "0")
	if err != nil {
		return nil, err
	}
	// A shadow that ended won't get ready.
	for ctx.Err() == nil && !p.Ended() {
		if raw, _ := os.ReadFile(log); bytes.Contains(raw, []byte(`"ready"`)) {
			return p, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.Stop(time.Second)
	raw, _ := os.ReadFile(log)
	return nil, fmt.Errorf("the shadow isn't ready; its log:\n%s", raw)
}

// sizeNode returns the i-th node: 16 CPUs, 64 GiB, 110 pods.
// Zones are three, in turn.
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
// It reads counters and one page of a list, so that following costs the API server little.
func (z Size) createAndFollow(ctx context.Context, bed *testbed, start time.Time) error {
	var created atomic.Int64
	creating := make(chan error, 1)
	go func() {
		creating <- api.Each(ctx, z.Pods, func(ctx context.Context, i int) error {
			if z.Rate > 0 {
				// Each pod has its own moment, so that a slow call doesn't delay those that
				// follow.
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(z.Rate))))
			}
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
			// A nil channel is never ready.
			creating = nil
			continue
		case <-tick.C:
		}
		if err := bed.failed(); err != nil {
			return err
		}
		u := bed.berth.Usage()
		fmt.Fprintf(z.Out, "%5.0fs  created %6d  berth: %6.1fs CPU, %4d MiB\n", time.Since(start).Seconds(), created.Load(), u.CPU.Seconds(), u.PeakRSS>>20)
		// Only asked once all pods exist.
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
