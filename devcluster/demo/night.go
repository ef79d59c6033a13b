package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file is the night batch: Jobs are created on a cluster without nodes, Berth orders
// nodes for them, and deletes the nodes when the Jobs are done. What must hold at the
// end: every pod has succeeded, no node is left, and no placement that the checker has
// seen breaks a rule. Then services may follow, in the same cluster (services.go).

// namespace is that of the batch's Jobs.
const namespace = "night"

// Night are the options of the night batch. Only Berth, Groups, Scale and Out are needed.
type Night struct {
	Berth  string // path of the berth binary
	Groups string // path of the node groups' file
	Scale  int    // percent of the full batch's pods
	// Services is how many services follow the batch, 0 for none.
	Services int
	Out      io.Writer
	Record   string // path of a recording to make, "" for none
	AuditLog string // path of a file with what Berth asks of the API server, "" for none
	// Scheduler places the pods, beside Berth as autoscaler only; nil for Berth.
	Scheduler func(*controlplane.Cluster) (*controlplane.Process, error)
}

// job is one Job of the batch: so many equal pods at a time, with their requests, ""
// for none.
type job struct {
	name             string
	pods             int
	cpu, memory, gpu string
	runFor           time.Duration
}

// fullBatch is 2,000 pods.
var fullBatch = []job{
	{"etl", 900, "500m", "1Gi", "", 8 * time.Second},
	{"features", 500, "1", "2Gi", "", 10 * time.Second},
	{"render", 400, "2", "4Gi", "", 12 * time.Second},
	{"train", 80, "4", "16Gi", "1", 12 * time.Second},
	{"sweep", 120, "1", "4Gi", "1", 8 * time.Second},
}

// Run plays the night. Its error says what was expected and not met. The cluster and all processes are
// gone when it returns, whatever happened.
func (n Night) Run(ctx context.Context) error {
	file, err := simulatedgroup.Load(n.Groups)
	if err != nil {
		return err
	}
	dir, err := controlplane.MakeTemp("berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := startTestbed(ctx, controlplane.Options{Progress: n.Out, AuditLog: n.AuditLog},
		program{berth: n.Berth, dir: dir, groups: n.Groups, serves: true, flags: n.flags()})
	if err != nil {
		return err
	}
	defer bed.stop()
	console := n.console(bed)
	if err := console.await(ctx, bed); err != nil {
		return err
	}
	console.invite(n.Out)
	if n.Scheduler != nil {
		p, err := n.Scheduler(bed.cluster)
		if err != nil {
			return err
		}
		defer p.Stop(10 * time.Second)
	}
	total, err := n.submit(ctx, bed)
	if err != nil {
		return err
	}
	fmt.Fprintf(n.Out, "submitted %d pods in %d Jobs; there is no node yet\n\n", total, len(fullBatch))
	w, err := newWatcher(ctx, bed, file)
	if err != nil {
		return err
	}
	if err := n.follow(ctx, bed, w, total, console.why); err != nil {
		return err
	}
	if err := n.summary(ctx, bed, w, total); err != nil {
		return err
	}
	if n.Services > 0 {
		if err := playServices(ctx, bed, file, n.Services, console.why); err != nil {
			return err
		}
	}
	bed.usage()
	return nil
}

// flags returns Berth's flags: timers so short that the night takes a minute, and a failed launch
// or removal is made up for soon.
// Lease times are long because a leader that loses its Lease ends, and the demo with it.
func (n Night) flags() []string {
	flags := []string{
		"--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline=45s", // for a laptop that stands still for a while
		"--scan-interval=1s",
		"--scale-down-unneeded-time=3s", "--scale-down-delay-after-add=3s", "--scale-down-delay-after-failure=5s", "--node-delete-delay-after-taint=1s",
		"--initial-node-group-backoff-duration=5s", "--max-node-group-backoff-duration=30s",
		"--max-scale-down-parallelism=200", "--max-drain-parallelism=10",
	}
	if n.Record != "" {
		flags = append(flags, "--record="+n.Record)
	}
	if n.Scheduler != nil {
		flags = append(flags, "--mode=autoscaler")
	}
	return flags
}

// console returns the way to Berth.
func (n Night) console(bed *testbed) *console {
	c := &console{berth: n.Berth, reach: []string{"--kubeconfig", bed.cluster.Kubeconfig, "--server", "https://127.0.0.1:" + strconv.Itoa(bed.port)}}
	if n.Scheduler != nil { // --mode=autoscaler holds the Lease of Cluster Autoscaler
		c.reach = append(c.reach, "--lease", metav1.NamespaceSystem+"/cluster-autoscaler")
	}
	return c
}

// submit creates the Jobs, and returns how many pods they have.
// Each Job has at least one pod, whatever the scale.
func (n Night) submit(ctx context.Context, bed *testbed) (int, error) {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := bed.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("making the namespace: %w", err)
	}
	total := 0
	for _, j := range fullBatch {
		j.pods = max(j.pods*n.Scale/100, 1)
		total += j.pods
		if _, err := bed.client.BatchV1().Jobs(namespace).Create(ctx, j.object(), metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("submitting job %s: %w", j.name, err)
		}
	}
	return total, nil
}

// object returns the Job. It has as many pods at a time as in all.
// GPUs are requested and limited alike, as the API wants it of extended resources.
func (j job) object() *batchv1.Job {
	count := int32(j.pods)
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse(j.cpu), v1.ResourceMemory: resource.MustParse(j.memory)}
	spec := v1.PodSpec{RestartPolicy: v1.RestartPolicyNever}
	limits := v1.ResourceList{}
	if j.gpu != "" {
		requests["nvidia.com/gpu"] = resource.MustParse(j.gpu)
		limits["nvidia.com/gpu"] = resource.MustParse(j.gpu)
		spec.Tolerations = []v1.Toleration{{Key: "nvidia.com/gpu", Operator: v1.TolerationOpExists}}
	}
	spec.Containers = []v1.Container{{Name: "work", Image: "night/" + j.name, Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}}
	// A pod of a Job that is evicted has done its work in vain.
	annotations := map[string]string{kubelets.RunFor: j.runFor.String(), cluster.SafeToEvictAnnotation: "false"}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: j.name},
		Spec: batchv1.JobSpec{Parallelism: &count, Completions: &count, Template: v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec:       spec,
		}},
	}
}

// follow shows progress until all pods are done and all nodes gone. It samples four times
// a second, adds a row to the table every two seconds, and checks placements every ten.
// What fails in the background ends it (bed.failed).
func (n Night) follow(ctx context.Context, bed *testbed, w *watcher, total int, why func(context.Context) string) error {
	fmt.Fprintf(n.Out, "%6s │ %7s %6s %7s %6s │ %9s %8s %6s %8s │ %8s\n", "", "pods", "", "", "", "nodes", "", "", "", "")
	fmt.Fprintf(n.Out, "%6s │ %7s %6s %7s %6s │ %9s %8s %6s %8s │ %8s\n", "time", "pending", "bound", "running", "done", "launching", "starting", "ready", "draining", "$/h")
	table := newProgress(n.Out, why, w.start)
	goal := fmt.Sprintf("all %d pods to be done and all nodes to be removed", total)
	sample := time.NewTicker(250 * time.Millisecond)
	defer sample.Stop()
	nextCheck := 0
	for {
		select {
		// The error says how far it came.
		case <-ctx.Done():
			return fmt.Errorf("%w; at the end: %s", context.Cause(ctx), w.text())
		case <-sample.C:
		}
		if err := bed.failed(); err != nil {
			return err
		}
		w.sample(time.Now(), total)
		// Ordered nodes are read for the table only: that is a call to Berth.
		if table.due(w.last) {
			w.ordered = bed.ordered(ctx)
			if err := table.row(ctx, w.last, w.cells(), goal); err != nil {
				return err
			}
		}
		// Placements are checked on the way: at the end there are none.
		if at := int(w.elapsed().Seconds()) / 10; at > nextCheck {
			nextCheck = at
			if err := w.check(ctx, bed); err != nil {
				return err
			}
		}
		// Done pods have left their nodes; Berth has removed these.
		if w.done() >= total && w.nodes.all() == 0 {
			return nil
		}
	}
}

// summary prints what the night took, and returns an error for each expectation that
// isn't met.
// Everything is printed, also when something isn't met.
func (n Night) summary(ctx context.Context, bed *testbed, w *watcher, total int) error {
	if err := w.check(ctx, bed); err != nil { // a pod that is still bound is on no node
		return err
	}
	jobs, err := bed.client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
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
	return errors.Join(errs...)
}
