package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

const namespace = "night"

// Night are the options of the night batch.
type Night struct {
	Berth  string // path of the berth binary
	Groups string // path of the node groups' file
	Scale  int    // percent of the full batch's pods
	Limit  time.Duration
	Out    io.Writer
	Record string // path of a recording to make, "" for none
	// Scheduler places the pods, beside Berth as autoscaler only; nil for Berth.
	Scheduler func(*controlplane.Cluster) (*controlplane.Process, error)
}

type batch struct {
	name             string
	pods             int
	cpu, memory, gpu string
	run              time.Duration
}

// full is the batch: 2,000 pods in all.
var full = []batch{
	{"etl", 900, "500m", "1Gi", "", 20 * time.Second},
	{"features", 500, "1", "2Gi", "", 25 * time.Second},
	{"render", 400, "2", "4Gi", "", 30 * time.Second},
	{"train", 80, "4", "16Gi", "1", 30 * time.Second},
	{"sweep", 120, "1", "4Gi", "1", 20 * time.Second},
}

// Run plays the night. Its error says what was expected and not met.
func (n Night) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, n.Limit, fmt.Errorf("expected the batch to be done and the nodes to be gone within %s", n.Limit))
	defer cancel()
	file, err := simulatedgroup.Load(n.Groups)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	flags := []string{
		"--cloud-provider=simulated", "--cloud-config=" + n.Groups, "--scan-interval=2s",
		"--scale-down-unneeded-time=8s", "--scale-down-delay-after-add=15s", "--node-delete-delay-after-taint=1s", "--max-scale-down-parallelism=200",
	}
	if n.Record != "" {
		flags = append(flags, "--record="+n.Record)
	}
	if n.Scheduler != nil {
		flags = append(flags, "--mode=autoscaler")
	}
	s, err := setStage(ctx, n.Out, n.Berth, dir, flags...)
	if err != nil {
		return err
	}
	defer s.strike()
	if n.Scheduler != nil {
		p, err := n.Scheduler(s.cluster)
		if err != nil {
			return err
		}
		defer p.Stop(10 * time.Second)
	}
	total, err := n.submit(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(n.Out, "submitted %d pods in %d Jobs; there is no node yet\n\n", total, len(full))
	w, err := newWatcher(ctx, s, file)
	if err != nil {
		return err
	}
	if err := n.follow(ctx, s, w, total); err != nil {
		return err
	}
	return n.summary(ctx, s, w, total)
}

func (n Night) submit(ctx context.Context, s *stage) (int, error) {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("making the namespace: %w", err)
	}
	total := 0
	for _, b := range full {
		b.pods = max(b.pods*n.Scale/100, 1)
		total += b.pods
		if _, err := s.client.BatchV1().Jobs(namespace).Create(ctx, b.job(), metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("submitting job %s: %w", b.name, err)
		}
	}
	return total, nil
}

func (b batch) job() *batchv1.Job {
	count := int32(b.pods)
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse(b.cpu), v1.ResourceMemory: resource.MustParse(b.memory)}
	spec := v1.PodSpec{RestartPolicy: v1.RestartPolicyNever}
	limits := v1.ResourceList{}
	if b.gpu != "" {
		requests["nvidia.com/gpu"] = resource.MustParse(b.gpu)
		limits["nvidia.com/gpu"] = resource.MustParse(b.gpu)
		spec.Tolerations = []v1.Toleration{{Key: "nvidia.com/gpu", Operator: v1.TolerationOpExists}}
	}
	spec.Containers = []v1.Container{{Name: "work", Image: "night/" + b.name, Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.name},
		Spec: batchv1.JobSpec{Parallelism: &count, Completions: &count, Template: v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kubelets.RunFor: b.run.String()}},
			Spec:       spec,
		}},
	}
}

// follow shows progress until all pods are done and all nodes gone.
func (n Night) follow(ctx context.Context, s *stage, w *watcher, total int) error {
	fmt.Fprintf(n.Out, "%6s │ %7s %6s %7s %6s │ %9s %8s %6s %8s │ %8s\n", "", "pods", "", "", "", "nodes", "", "", "", "")
	fmt.Fprintf(n.Out, "%6s │ %7s %6s %7s %6s │ %9s %8s %6s %8s │ %8s\n", "time", "pending", "bound", "running", "done", "launching", "starting", "ready", "draining", "$/h")
	sample := time.NewTicker(250 * time.Millisecond)
	defer sample.Stop()
	line, nextCheck := 0, 0
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at the end: %s", context.Cause(ctx), w.text())
		case <-sample.C:
		}
		if err := s.failed(); err != nil {
			return err
		}
		w.sample(time.Now(), total)
		if at := int(w.elapsed().Seconds()) / 2; at > line {
			line = at
			w.launching(ctx, s)
			fmt.Fprintln(n.Out, w.line())
		}
		// Look at the placements while they are there to be seen.
		if at := int(w.elapsed().Seconds()) / 10; at > nextCheck {
			nextCheck = at
			if err := w.check(ctx, s); err != nil {
				return err
			}
		}
		if w.done() >= total && w.nodes() == 0 {
			return nil
		}
	}
}

func (n Night) summary(ctx context.Context, s *stage, w *watcher, total int) error {
	if err := w.check(ctx, s); err != nil { // by now nothing may be bound any more
		return err
	}
	jobs, err := s.client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading the jobs back: %w", err)
	}
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("expected "+format, args...))
		}
	}
	succeeded := int32(0)
	for i := range jobs.Items {
		succeeded += jobs.Items[i].Status.Succeeded
	}
	expect(int(succeeded) == total, "%d pods to succeed by their Jobs' status, got %d", total, succeeded)
	expect(w.allRunning > 0, "all %d pods to have started", total)
	expect(w.checked > 0, "the checker to have seen running pods")
	expect(w.violations == 0, "no placement that breaks a rule, got %d", w.violations)
	fmt.Fprintf(n.Out, "\n%-26s %d of %d\n", "pods done", succeeded, total)
	fmt.Fprintf(n.Out, "%-26s %.1f s\n", "time to all started", w.allRunning.Seconds())
	fmt.Fprintf(n.Out, "%-26s %.1f s\n", "time to nothing again", w.elapsed().Seconds())
	fmt.Fprintf(n.Out, "%-26s %d\n", "peak nodes", w.peak)
	fmt.Fprintf(n.Out, "%-26s %.2f\n", "node-hours", w.nodeHours)
	fmt.Fprintf(n.Out, "%-26s $%.2f\n", "cost", w.cost)
	fmt.Fprintf(n.Out, "%-26s %.0f %% of CPU, %.0f %% of memory (time-weighted, until the last pod was done)\n", "wasted", 100*w.wasted(0), 100*w.wasted(1))
	fmt.Fprintf(n.Out, "%-26s %d placements checked, %d violations\n", "checker", w.checked, w.violations)
	s.usage()
	return errors.Join(errs...)
}

// launchingFrom reads the counts of nodes asked for from Berth's status.
func launchingFrom(cm *v1.ConfigMap) int {
	status := live.Status{}
	if err := yaml.Unmarshal([]byte(cm.Data["status"]), &status); err != nil {
		return 0
	}
	sum := 0
	for _, g := range status.NodeGroups {
		sum += g.Health.NodeCounts.Unregistered
	}
	return sum
}
