package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/kubelets"
)

// drained is a cluster that Berth drains: six nodes, and pods of a Deployment (web), a
// StatefulSet (db) and a Job (work), which are used to a fifth.
type drained struct {
	t      *testing.T
	client kubernetes.Interface

	mu      sync.Mutex
	overrun []string        // budgets that had fewer healthy pods than they want; guarded by mu
	evicted map[string]bool // pods whose condition said so; guarded by mu
}

// drainedPods is how many pods the three workloads have, and drainedLeast is how many of
// them have to be available. Plans count the pods of the node that another autoscaler has
// tainted as disrupted: each budget allows one more.
var (
	drainedPods  = map[string]int32{"web": 6, "db": 3, "work": 3}
	drainedLeast = map[string]int32{"web": 4, "db": 1, "work": 1}
)

func (d *drained) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// workloads creates the three workloads.
func (d *drained) workloads() {
	d.t.Helper()
	ctx, how := d.t.Context(), metav1.CreateOptions{}
	template := func(name, cpu string) (metav1.ObjectMeta, *metav1.LabelSelector, v1.PodTemplateSpec) {
		labels := map[string]string{"app": name, "drained": "yes"}
		return metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: name}, &metav1.LabelSelector{MatchLabels: labels},
			v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{kubelets.StopAfter: "2s"}}, Spec: pod(name, cpu).Spec}
	}
	meta, selector, pods := template("web", "400m")
	_, err := d.client.AppsV1().Deployments(meta.Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(drainedPods["web"]), Selector: selector, Template: pods}}, how)
	d.must(err)
	meta, selector, pods = template("db", "500m")
	_, err = d.client.AppsV1().StatefulSets(meta.Namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: new(drainedPods["db"]), Selector: selector, Template: pods, PodManagementPolicy: appsv1.ParallelPodManagement}}, how)
	d.must(err)
	meta, _, pods = template("work", "300m")
	pods.Spec.RestartPolicy = v1.RestartPolicyNever
	_, err = d.client.BatchV1().Jobs(meta.Namespace).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		Parallelism: new(drainedPods["work"]), Completions: new(drainedPods["work"]), BackoffLimit: new(int32(0)), Template: pods,
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}}}}},
	}}, how)
	d.must(err)
}

// watch records budgets that are overrun and of pods that are evicted, until the test
// ends.
func (d *drained) watch() {
	d.t.Helper()
	budgets, err := d.client.PolicyV1().PodDisruptionBudgets(v1.NamespaceDefault).Watch(d.t.Context(), metav1.ListOptions{})
	d.must(err)
	d.t.Cleanup(budgets.Stop)
	pods, err := d.client.CoreV1().Pods(v1.NamespaceDefault).Watch(d.t.Context(), metav1.ListOptions{LabelSelector: "drained=yes"})
	d.must(err)
	d.t.Cleanup(pods.Stop)
	go func() {
		for e := range budgets.ResultChan() {
			if b, ok := e.Object.(*policyv1.PodDisruptionBudget); ok && b.Status.CurrentHealthy < b.Status.DesiredHealthy {
				d.mu.Lock()
				d.overrun = append(d.overrun, fmt.Sprintf("%s: %d healthy, %d desired", b.Name, b.Status.CurrentHealthy, b.Status.DesiredHealthy))
				d.mu.Unlock()
			}
		}
	}()
	go func() {
		for e := range pods.ResultChan() {
			p, ok := e.Object.(*v1.Pod)
			if ok && slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Reason == "EvictionByEvictionAPI" }) {
				d.mu.Lock()
				d.evicted[p.Name] = true
				d.mu.Unlock()
			}
		}
	}()
}

// evictions returns how many pods have been evicted.
func (d *drained) evictions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.evicted)
}

// ready reports whether each workload has all its pods running, and no other.
func (d *drained) ready(ctx context.Context) bool {
	pods, err := d.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "drained=yes"})
	running := map[string]int32{}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == v1.PodRunning && p.DeletionTimestamp == nil {
			running[p.Labels["app"]]++
		}
	}
	return err == nil && running["web"] == drainedPods["web"] && running["db"] == drainedPods["db"] && running["work"] == drainedPods["work"]
}

// nodes returns all nodes, and of them the names of those that are marked for removal: by
// Berth, and by somebody else.
func (d *drained) nodes(ctx context.Context) (all []*v1.Node, berths, others []string) {
	all, err := api.Nodes(ctx, d.client)
	if err != nil && ctx.Err() == nil {
		d.t.Error(err)
	}
	for _, n := range all {
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == autoscaler.ToBeDeletedTaint })
		_, noted := n.Annotations[autoscaler.RemovalNote]
		switch {
		case noted || n.Spec.Unschedulable:
			berths = append(berths, n.Name)
		case tainted:
			others = append(others, n.Name)
		}
	}
	return all, berths, others
}

// TestDrain has Berth drain a cluster of three workloads. A budget that comes in the middle
// keeps the nodes: their taints and cordons are taken back. When it is gone, others hold while the nodes are drained, also when Berth is
// killed in the middle of it and started again: it leaves no node marked, and goes on. What
// another autoscaler has tainted, in the same group, is left alone all the time.
func TestDrain(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	d := &drained{t: t, client: client, evicted: map[string]bool{}}
	port := freePort(t)
	flags := append(nodeGroups(t, c, oneGroup), "--scan-interval=1s",
		"--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", port), "-v=2",
		"--scale-down-unneeded-time=3s", "--scale-down-delay-after-add=0s", "--scale-down-delay-after-failure=1s", "--unremovable-node-recheck-timeout=1s",
		"--node-delete-delay-after-taint=2s", "--max-pod-eviction-time=5s", "--max-drain-parallelism=5")
	first, _ := startBerth(t, c, flags...)
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	explained, state, second := "", "", ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s; berth explain says last:\n%s", state, explained)
		}
		if t.Failed() && second != "" {
			lines := strings.Split(logOf(t, second), "\n")
			t.Logf("the log of the second Berth ends with\n%s", strings.Join(lines[max(0, len(lines)-80):], "\n"))
		}
	})
	explains := func(ctx context.Context, patterns []string, args ...string) bool {
		args = append([]string{"explain", "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token-file", token, "--insecure-skip-tls-verify"}, args...)
		out, _ := exec.CommandContext(ctx, berth, args...).CombinedOutput()
		explained = string(out)
		return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile(p).Match(out) })
	}

	// Six pods that take half a node each have six nodes bought; the workloads are beside them.
	for i := range 6 {
		create(t, client, pod(fmt.Sprint("large", i), "2200m"))
	}
	eventually(t, "six nodes", func(ctx context.Context) bool { all, _, _ := d.nodes(ctx); return len(all) == 6 })
	nodesReady(t, client)
	d.workloads()
	eventually(t, "the workloads to run", d.ready)
	eventually(t, "the large pods to be on nodes", func(ctx context.Context) bool { return get(ctx, client, "large0").Spec.NodeName != "" })
	other := get(t.Context(), client, "large0").Spec.NodeName
	eventually(t, "another autoscaler's taint", func(ctx context.Context) bool {
		n, err := client.CoreV1().Nodes().Get(ctx, other, metav1.GetOptions{})
		if err != nil {
			return false
		}
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: "1", Effect: v1.TaintEffectNoSchedule})
		_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err == nil
	})
	for i := range 6 {
		d.must(client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), fmt.Sprint("large", i), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	}

	// A budget that allows nothing comes when nodes have been tainted, and before evictions.
	var tainted []string
	eventually(t, "nodes to be on their way out", func(ctx context.Context) bool { _, tainted, _ = d.nodes(ctx); return len(tainted) > 0 })
	createBudget(t, client, "none", "drained", "yes", 12)
	eventually(t, "all nodes to stay, and an event that says so", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=ScaleDownFailed"})
		_, marked, _ := d.nodes(ctx)
		return err == nil && len(marked) == 0 && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "Node" && slices.Contains(tainted, e.Regarding.Name) && strings.Contains(e.Note, "could not be evicted within 5s")
		})
	})
	if all, _, _ := d.nodes(t.Context()); len(all) != 6 {
		t.Errorf("%d nodes are left under a budget that allows nothing, want all 6", len(all))
	}
	eventually(t, "berth explain node to name the budget", func(ctx context.Context) bool {
		return explains(ctx, []string{`stays`, `none`}, "node", tainted[0])
	})

	// Budgets that allow two disruptions at a time; Berth is killed after an eviction.
	d.must(client.PolicyV1().PodDisruptionBudgets(v1.NamespaceDefault).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	for name, least := range drainedLeast {
		createBudget(t, client, name, "app", name, least)
	}
	eventually(t, "the budgets to be counted", func(ctx context.Context) bool {
		list, err := client.PolicyV1().PodDisruptionBudgets(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(b policyv1.PodDisruptionBudget) bool {
			return b.Status.DisruptionsAllowed == 0 && d.evictions() == 0
		})
	})
	before := d.evictions()
	d.watch()
	eventually(t, "a pod to be evicted", func(context.Context) bool { return d.evictions() > before })
	first.Kill()
	if _, marked, _ := d.nodes(t.Context()); len(marked) == 0 {
		t.Error("Berth was to be killed in the middle of a drain, and no node is marked")
	}
	_, second = startBerth(t, c, flags...)
	asked := time.Now()
	// The Job controller lets 10 s pass before it replaces a pod that was evicted, and after each
	// eviction more twice as long; as long as it does, the budget of the Job's pods keeps their nodes.
	within(t, "the workloads to run on at most two nodes beside the one of the other autoscaler, and none to be marked", 5*time.Minute, func(ctx context.Context) bool {
		all, marked, others := d.nodes(ctx)
		if ctx.Err() != nil {
			return false // what was last seen stays for the log
		}
		state = fmt.Sprint(len(all), " nodes; marked by Berth: ", marked, ", by others: ", others)
		if len(all) <= 3 && len(marked) == 0 && slices.Equal(others, []string{other}) && d.ready(ctx) {
			return true
		}
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			explains(ctx, nil, "nodes") // for the log
		}
		return false
	})
	within(t, "berth explain nodes to sum up", time.Minute, func(ctx context.Context) bool {
		return explains(ctx, []string{`(?m)^scale-down: NoCandidates`, `(?m)^ +[23] nodes, `, `(?m)^1 +.*stays +being removed by another controller +` + other, `(?m)^g +[23] `}, "nodes")
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.overrun) > 0 {
		t.Errorf("budgets were overrun: %v", d.overrun)
	}
	if !strings.Contains(logOf(t, second), "HomeTaken") {
		t.Error("no replacement has taken the room that was kept for it")
	}
}
