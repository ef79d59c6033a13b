package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file places a production trace: its nodes and pods are created as recorded, and
// no pod ever runs to an end. What must hold at the end: every pod is placed or was told
// why not, and no placement breaks a rule.

// Trace are the options of a run of an openb trace. Berth, Dir, Limit and Out are needed.
type Trace struct {
	Berth   string        // path of the berth binary
	Dir     string        // of the trace's files
	MaxPods int           // 0 for all
	Limit   time.Duration // for the whole run
	Out     io.Writer
	// AuditLog is the path of a file with what Berth asks of the API server, "" for none.
	AuditLog string
	// MaxCPUShare is how much CPU time Berth may use, as a share of the API server's; 0
	// for no limit.
	MaxCPUShare float64
}

// Run creates the trace's nodes and then its pods in order of arrival, lets
// Berth place them, and reports. Pods are created as fast as the API server takes them, so that the
// rate is Berth's and the API server's and not the trace's.
func (t Trace) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Limit, fmt.Errorf("expected every pod to be placed or refused within %s", t.Limit))
	defer cancel()
	trace, err := openb.Load(t.Dir)
	if err != nil {
		return err
	}
	if t.MaxPods > 0 && t.MaxPods < len(trace.Pods) {
		trace.Pods = trace.Pods[:t.MaxPods]
	}
	dir, err := controlplane.MakeTemp("berth-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := startTestbed(ctx, controlplane.Options{Progress: t.Out, AuditLog: t.AuditLog}, program{berth: t.Berth, dir: dir})
	if err != nil {
		return err
	}
	defer bed.stop()
	fmt.Fprintf(t.Out, "creating %d nodes …\n", len(trace.Nodes))
	if err := api.Each(ctx, len(trace.Nodes), func(ctx context.Context, i int) error {
		_, err := bed.client.CoreV1().Nodes().Create(ctx, trace.Nodes[i].Object(), metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	fmt.Fprintf(t.Out, "creating %d pods in order of arrival …\n", len(trace.Pods))
	start := time.Now()
	var created atomic.Int64
	creating := make(chan error, 1)
	go func() {
		creating <- api.Each(ctx, len(trace.Pods), func(ctx context.Context, i int) error {
			_, err := bed.client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, trace.Pods[i].Object(v1.NamespaceDefault), metav1.CreateOptions{})
			if err == nil {
				created.Add(1)
			}
			return err
		})
	}()
	r, err := t.follow(ctx, bed, start, &created, creating, len(trace.Pods))
	if err != nil {
		return err
	}
	return t.report(ctx, bed, trace, r)
}

// result is what follow returns: the pods as the last poll saw them. Times are since the first pod was
// created, and as exact as polls are frequent.
type result struct {
	pods      []v1.Pod
	placed    int
	placedIn  time.Duration // until the last pod was placed
	createdIn time.Duration
}

// follow polls until every pod is placed or was told that it can't be, and two polls in
// a row show no change.
func (t Trace) follow(ctx context.Context, bed *testbed, start time.Time, created *atomic.Int64, creating chan error, total int) (result, error) {
	var r result
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	quiet := 0
	for {
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case err := <-creating:
			if err != nil {
				return r, fmt.Errorf("creating pods: %w", err)
			}
			r.createdIn = time.Since(start)
			creating = nil
			continue
		case <-tick.C:
		}
		if err := bed.failed(); err != nil {
			return r, err
		}
		// Resource version 0: from the API server's watch cache, so that polling doesn't
		// count much in its CPU time.
		list, err := bed.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return r, fmt.Errorf("reading pods: %w", err)
		}
		placed, refused := 0, 0
		for i := range list.Items {
			switch {
			case list.Items[i].Spec.NodeName != "":
				placed++
			case refusal(&list.Items[i]) != "":
				refused++
			}
		}
		if placed > r.placed {
			r.placed, r.placedIn = placed, time.Since(start)
		}
		fmt.Fprintf(t.Out, "%5.0fs  created %5d  placed %5d  refused %5d\n", time.Since(start).Seconds(), created.Load(), placed, refused)
		r.pods = list.Items
		if creating == nil && placed+refused == total && placed == r.placed {
			if quiet++; quiet > 1 {
				return r, nil
			}
		} else {
			quiet = 0
		}
	}
}

// refusal returns why a pod can't be placed, as its condition says; "" if it has no such
// condition.
func refusal(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// report prints the result, and returns an error for what doesn't hold. Everything is printed before any
// error is returned.
func (t Trace) report(ctx context.Context, bed *testbed, trace *openb.Trace, r result) error {
	fmt.Fprintf(t.Out, "\n%-26s %d of %d\n", "pods placed", r.placed, len(trace.Pods))
	fmt.Fprintf(t.Out, "%-26s %d\n", "pods not placed", len(trace.Pods)-r.placed)
	for _, line := range reasons(r.pods) {
		fmt.Fprintf(t.Out, "%-26s %s\n", "", line)
	}
	allocation(t.Out, trace, r.pods)
	fmt.Fprintf(t.Out, "%-26s %.0f pods/s placed (%.1f s); created at %.0f pods/s (%.1f s)\n", "rate",
		float64(r.placed)/r.placedIn.Seconds(), r.placedIn.Seconds(), float64(len(trace.Pods))/r.createdIn.Seconds(), r.createdIn.Seconds())
	checked, found, err := bed.check(ctx, v1.NamespaceDefault)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%-26s %d placements checked, %d violations\n", "checker", checked, found)
	berth, server := bed.usage()
	switch {
	case found > 0:
		return fmt.Errorf("expected no placement that breaks a rule, got %d", found)
	case checked != r.placed:
		return fmt.Errorf("expected the checker to see all %d placed pods, it saw %d", r.placed, checked)
	case t.MaxCPUShare > 0 && server.CPU > 0 && float64(berth.CPU) > t.MaxCPUShare*float64(server.CPU):
		return fmt.Errorf("expected berth to use at most %.2f of the API server's CPU time, it used %.2f", t.MaxCPUShare, float64(berth.CPU)/float64(server.CPU))
	}
	return nil
}

// leadingCount matches how many nodes a reason in a pod's message is about, which differs from pod to pod.
var leadingCount = regexp.MustCompile(`^\d+ `)

// reasons returns a line for each reason that a pod that isn't placed was told, with how
// many pods were told it, the most frequent first.
func reasons(pods []v1.Pod) []string {
	counts := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			continue
		}
		_, list, _ := strings.Cut(refusal(&pods[i]), ": ")
		for part := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
			counts[leadingCount.ReplaceAllString(part, "")]++
		}
	}
	type entry struct {
		reason string
		pods   int
	}
	var all []entry
	for reason, n := range counts {
		all = append(all, entry{reason, n})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(b.pods-a.pods, cmp.Compare(a.reason, b.reason)) })
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%5d  %s", e.pods, e.reason))
	}
	return out
}

// allocation prints how much of each resource of the cluster the placed pods request.
func allocation(out io.Writer, trace *openb.Trace, pods []v1.Pod) {
	rows := []struct {
		label string
		name  v1.ResourceName
	}{{"CPU allocated", v1.ResourceCPU}, {"memory allocated", v1.ResourceMemory}, {"GPU allocated", openb.GPUMilli}}
	for _, row := range rows {
		var have, used float64
		for i := range trace.Nodes {
			q := trace.Nodes[i].Object().Status.Allocatable[row.name]
			have += q.AsApproximateFloat64()
		}
		for i := range pods {
			if pods[i].Spec.NodeName == "" {
				continue
			}
			q := pods[i].Spec.Containers[0].Resources.Requests[row.name]
			used += q.AsApproximateFloat64()
		}
		fmt.Fprintf(out, "%-26s %.1f %%\n", row.label, 100*used/have)
	}
}
