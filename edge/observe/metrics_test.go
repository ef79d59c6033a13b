package observe

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/metrics.md")

// live is a driven core whose Steps metrics and history see.
type live struct {
	t      *testing.T
	driver *drive.Driver
	core   *core.Core // of the driver
	m      *Metrics
	h      *History
	now    time.Time
	ready  step.Ready // of the last Step
}

func newLive(t *testing.T) *live {
	t.Helper()
	return newLiveOf(t, core.DefaultConfig())
}

// newLiveOf returns a driven core of a configuration, with the default profile.
func newLiveOf(t *testing.T, cfg core.Config) *live {
	t.Helper()
	l := &live{t: t, m: NewMetrics(), h: NewHistory(100), now: time.Unix(1000, 0)}
	keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { l.ready = *r })
	schema := cluster.NewSchema()
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	var err error
	l.driver, err = drive.New(drive.Config{
		Schema: schema, Core: cfg,
		Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: []drive.Hook{l.m, l.h, keep},
		Clock: func() time.Time { return l.now.Add(10 * time.Millisecond) }, // a Step takes 10 ms
	})
	if err != nil {
		t.Fatal(err)
	}
	l.core = l.driver.Core()
	return l
}

// step runs a Step and returns its work, which nobody does: the test gives the outcomes.
// One second passes after each Step.
func (l *live) step(in ...step.Input) step.Ready {
	l.t.Helper()
	if _, err := l.driver.Step(l.now, in...); err != nil {
		l.t.Fatal(err)
	}
	l.m.State(l.core)
	l.now = l.now.Add(time.Second)
	return l.ready
}

func TestMetricsOfAHistory(t *testing.T) {
	l := newLive(t)
	l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	l.step(step.PodSet{Pod: testkit.Pod("low").Req("cpu", "3").Obj()})
	l.step(step.BindDone{UID: "pod-low"})
	l.step(step.PodSet{Pod: testkit.Pod("same").Req("cpu", "3").Obj()}) // waits: nobody is less important
	l.step(step.PodSet{Pod: testkit.Pod("high").Req("cpu", "4").Priority(10).Obj()}, step.PodSet{Pod: testkit.Pod("held").Gate("g").Obj()})
	l.step(step.PreemptionDone{UID: "pod-low", By: "pod-high"})
	l.step(step.PodGone{UID: "pod-low"})
	l.step(step.BindDone{UID: "pod-high", Err: errors.New("refused")})
	l.step()
	l.step(step.BindDone{UID: "pod-high"})
	for name, want := range map[string]string{
		"scheduler_schedule_attempts_total": `
			# HELP scheduler_schedule_attempts_total Number of attempts to schedule pods, by result: scheduled, unschedulable, or error for an internal error of Berth or the API server.
			# TYPE scheduler_schedule_attempts_total counter
			scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1
			scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2
			scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 2
			`,
		"scheduler_pending_pods": `
			# HELP scheduler_pending_pods Number of pending pods by queue: active, backoff, unschedulable, or gated, which includes pods whose preemption victims are being deleted. incomplete and pending are always 0: pods whose pod group can't be tried count as gated.
			# TYPE scheduler_pending_pods gauge
			scheduler_pending_pods{queue="active"} 0
			scheduler_pending_pods{queue="backoff"} 0
			scheduler_pending_pods{queue="gated"} 1
			scheduler_pending_pods{queue="incomplete"} 0
			scheduler_pending_pods{queue="pending"} 0
			scheduler_pending_pods{queue="unschedulable"} 1
			`,
		"scheduler_queued_entities": `
			# HELP scheduler_queued_entities Number of entities that are scheduled as one, by queue as in pending_pods and by type: a pod group with its pending members, or a pod without one.
			# TYPE scheduler_queued_entities gauge
			scheduler_queued_entities{queue="active",type="pod"} 0
			scheduler_queued_entities{queue="active",type="podgroup"} 0
			scheduler_queued_entities{queue="backoff",type="pod"} 0
			scheduler_queued_entities{queue="backoff",type="podgroup"} 0
			scheduler_queued_entities{queue="gated",type="pod"} 1
			scheduler_queued_entities{queue="gated",type="podgroup"} 0
			scheduler_queued_entities{queue="unschedulable",type="pod"} 1
			scheduler_queued_entities{queue="unschedulable",type="podgroup"} 0
			`,
		"scheduler_preemption_attempts_total": `
			# HELP scheduler_preemption_attempts_total Number of scheduling attempts that found no node. Each counts as a preemption attempt, as in kube-scheduler, also if the pod may not preempt.
			# TYPE scheduler_preemption_attempts_total counter
			scheduler_preemption_attempts_total 2
			`,
		"scheduler_goroutines_execution_total": `
			# HELP scheduler_goroutines_execution_total The same as preemption_goroutines_execution_total, under the name in KEP-4832, which kube-scheduler does not serve. The objective there is less than 1 % errors.
			# TYPE scheduler_goroutines_execution_total counter
			scheduler_goroutines_execution_total{operation="preemption",result="error"} 0
			scheduler_goroutines_execution_total{operation="preemption",result="success"} 1
			`,
		"scheduler_unschedulable_pods": `
			# HELP scheduler_unschedulable_pods Number of unschedulable pods by plugin that rejects a node for them; a pod is counted for each such plugin.
			# TYPE scheduler_unschedulable_pods gauge
			scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1
			`,
	} {
		if err := testutil.GatherAndCompare(l.m.Registry, strings.NewReader(want), name); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]struct {
		count uint64
		sum   float64
	}{
		"scheduler_preemption_victims":      {1, 1},
		"scheduler_pod_scheduling_attempts": {2, 4}, // low at its first, high at its third
		// low: queued at 1 s, bound at 2 s; high: queued at 4 s, bound at 9 s.
		"scheduler_pod_scheduling_sli_duration_seconds": {2, 6},
	} {
		count, sum := histogram(t, l.m.Registry, name)
		if count != want.count || sum != want.sum {
			t.Errorf("%s: %d observations of %v in all, want %d of %v", name, count, sum, want.count, want.sum)
		}
	}
	l.wants(`scheduler_preemption_evaluation_duration_seconds_count{preemptor="pod",result="Unschedulable"} 1`,
		`scheduler_preemption_evaluation_duration_seconds_count{preemptor="pod",result="Success"} 1`,
		`scheduler_preemption_pdb_violations_total{preemptor="pod"} 0`)
	if len(l.m.binds) != 0 {
		t.Errorf("binds without an end: %v", l.m.binds)
	}
}

// TestIncomingEntitiesAreIncomingPods: each pod is an entity of its own, so the two counters agree on every
// queue and event.
func TestIncomingEntitiesAreIncomingPods(t *testing.T) {
	l := newLive(t)
	l.step(step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "3").Obj()}, step.PodSet{Pod: testkit.Pod("held").Gate("g").Obj()})
	l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	l.step()
	var pods, entities []string
	for _, line := range l.scrape() {
		if series, ok := strings.CutPrefix(line, "scheduler_queue_incoming_pods_total{"); ok {
			pods = append(pods, series)
		} else if series, ok := strings.CutPrefix(line, "scheduler_queue_incoming_entities_total{"); ok {
			entities = append(entities, strings.Replace(series, `,type="pod"`, "", 1))
		}
	}
	if len(pods) < 3 || !slices.Equal(pods, entities) {
		t.Errorf("pods came by\n%s\nand entities by\n%s\nwant the same, at least 3", strings.Join(pods, "\n"), strings.Join(entities, "\n"))
	}
}

// TestViolationsOfBudgetsAreCounted has a pod preempt two that a budget protects, of which it
// allows one to go.
func TestViolationsOfBudgetsAreCounted(t *testing.T) {
	l := newLive(t)
	budget := testkit.Budget("budget", 1, "app", "db")
	l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.ObjectSet{Object: budget})
	for _, name := range []string{"a", "b"} {
		l.step(step.PodSet{Pod: testkit.Pod(name).Label("app", "db").Req("cpu", "2").On("n1").Obj()})
	}
	l.step(step.PodSet{Pod: testkit.Pod("high").Req("cpu", "4").Priority(10).Obj()})
	l.wants(`scheduler_preemption_pdb_violations_total{preemptor="pod"} 1`)
	l.step()
	l.wants(`scheduler_preemption_pdb_violations_total{preemptor="pod"} 1`, `scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 0`)
}

// TestViolationsByPodGroupsAreCounted has a gang do what the pod of TestViolationsOfBudgetsAreCounted does, on two nodes.
func TestViolationsByPodGroupsAreCounted(t *testing.T) {
	l := newLive(t)
	gang := testkit.PodGroup("gang", 2, "")
	gang.Spec.Priority = new(int32(10))
	l.step(step.ObjectSet{Object: testkit.Budget("budget", 1, "app", "db")}, step.ObjectSet{Object: gang})
	for _, n := range []string{"n1", "n2"} {
		l.step(step.NodeSet{Node: testkit.Node(n).Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.PodSet{Pod: testkit.Pod("on-"+n).Label("app", "db").Req("cpu", "4").On(n).Obj()})
	}
	ready := l.step(step.PodSet{Pod: testkit.Pod("g0").PodGroup("gang").Req("cpu", "4").Priority(10).Obj()}, step.PodSet{Pod: testkit.Pod("g1").PodGroup("gang").Req("cpu", "4").Priority(10).Obj()})
	var done []step.Input
	for _, p := range ready.Preemptions {
		done = append(done, step.PreemptionDone{UID: p.UID, By: p.By})
	}
	l.step(done...)
	l.wants(`scheduler_preemption_pdb_violations_total{preemptor="pod"} 0`, `scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 1`,
		`scheduler_preemption_evaluation_duration_seconds_count{preemptor="podgroup",result="Success"} 1`,
		`scheduler_preemption_execution_duration_seconds_count{preemptor="podgroup",result="success"} 1`)
}

// TestMetricsOfPreemptions carries out a preemption of two victims, one that fails for one of two,
// and one whose victim goes before its call is answered.
func TestMetricsOfPreemptions(t *testing.T) {
	m := NewMetrics()
	at := time.Unix(1000, 0)
	after := func(seconds int, preemptions []step.Preemption, in ...step.Input) {
		m.Step(at.Add(time.Duration(seconds)*time.Second), time.Millisecond, in, &step.Ready{Preemptions: preemptions})
	}
	l := &live{t: t, m: m}
	l.wants(`scheduler_preemption_goroutines_execution_total{result="error"} 0`, `scheduler_goroutines_execution_total{operation="preemption",result="error"} 0`)
	after(0, []step.Preemption{{UID: "a", By: "p"}, {UID: "b", By: "p"}, {UID: "c", By: "q"}, {UID: "d", By: "q"}})
	after(1, nil, step.PreemptionDone{UID: "b", By: "p"}, step.PreemptionDone{UID: "c", By: "q", Err: errors.New("refused")})
	l.wants(`scheduler_goroutines{operation="preemption"} 2`, `scheduler_preemption_goroutines_execution_total{result="success"} 0`, `scheduler_preemption_goroutines_execution_total{result="error"} 0`)
	after(3, []step.Preemption{{UID: "e", By: "r"}}, step.PreemptionDone{UID: "a", By: "p"}, step.PreemptionDone{UID: "d", By: "q"})
	after(7, nil, step.PodGone{UID: "e"})
	after(9, nil, step.PreemptionDone{UID: "e", By: "r"}, step.PreemptionDone{UID: "f", By: "s"}) // nobody asked for f
	l.wants(`scheduler_goroutines{operation="preemption"} 0`,
		`scheduler_preemption_goroutines_execution_total{result="success"} 2`, `scheduler_preemption_goroutines_execution_total{result="error"} 1`,
		`scheduler_preemption_goroutines_duration_seconds_sum{result="success"} 9`, `scheduler_preemption_goroutines_duration_seconds_count{result="success"} 2`,
		`scheduler_preemption_goroutines_duration_seconds_sum{result="error"} 3`,
		`scheduler_preemption_execution_duration_seconds_sum{preemptor="pod",result="success"} 9`, `scheduler_preemption_execution_duration_seconds_count{preemptor="pod",result="success"} 2`,
		`scheduler_preemption_execution_duration_seconds_sum{preemptor="pod",result="error"} 3`,
		`scheduler_goroutines_execution_total{operation="preemption",result="success"} 2`, `scheduler_goroutines_execution_total{operation="preemption",result="error"} 1`,
		`scheduler_goroutines_duration_seconds_sum{operation="preemption"} 12`, `scheduler_goroutines_duration_seconds_count{operation="preemption"} 3`)
	if len(m.preemptions.executing) != 0 {
		t.Errorf("preemptions without an end: %v", m.preemptions.executing)
	}
}

// TestMetricsOfScaleDown follows the nodes of a group through plans, and the pods of one that is
// drained.
func TestMetricsOfScaleDown(t *testing.T) {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	a.UnneededTime, a.DelayAfterAdd, a.ScanInterval = 2*time.Second, 0, time.Second
	cfg.Autoscale = &a
	l := newLiveOf(t, cfg)
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 9, Target: 4, Price: 0.5, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4").Obj(), Group: "g"})
	}
	ready := l.step(in...)
	l.wants(`cluster_autoscaler_unneeded_nodes_count 0`, `berth_scale_down_status{status="Unknown"} 1`, `berth_nodes_price_hourly{reason="",state="Unknown"} 2`)
	plan := func(change func(*autoscaler.Plan)) {
		for request := ready.Plan; ; request = l.step().Plan {
			if request == nil {
				continue
			}
			p := autoscaler.NewPlan(request, 0)
			change(p)
			ready = l.step(step.PlanMade{Plan: p})
			return
		}
	}
	says := func(p *autoscaler.Plan) {
		p.Removals = []*autoscaler.Removal{{Node: "n1"}}
		p.Kept = []autoscaler.Kept{{Node: "n2", Reason: autoscaler.KeptUtilized}, {Node: "n3", Reason: autoscaler.KeptUtilized}, {Node: "n4", Reason: autoscaler.KeptNotSimulated}}
	}
	plan(says)
	l.wants(`cluster_autoscaler_unneeded_nodes_count 1`, `cluster_autoscaler_unremovable_nodes_count{reason="NotUnderutilized"} 2`, `cluster_autoscaler_unremovable_nodes_count{reason="NotUnneededLongEnough"} 1`,
		`cluster_autoscaler_pending_node_deletions 0`, `cluster_autoscaler_scale_down_in_cooldown 0`,
		`berth_scale_down_status{status="CandidatesPresent"} 1`, `berth_scale_down_status{status="Unknown"} 0`, `berth_nodes_price_hourly{reason="NotUnderutilized",state="Stays"} 1`)
	plan(says)
	plan(says)
	l.wants(`cluster_autoscaler_unneeded_nodes_count 0`, `cluster_autoscaler_pending_node_deletions 1`, `cluster_autoscaler_max_node_skip_eval_duration_seconds 3`,
		`berth_scale_down_status{status="NoCandidates"} 1`, `berth_nodes_price_hourly{reason="",state="Leaving"} 0.5`)
	l.step(step.EvictionDone{UID: "pod-a", Node: "n1"}, step.EvictionDone{UID: "pod-b", Node: "n1", Err: errors.New("a budget"), Refused: true}, step.EvictionDone{UID: "pod-c", Node: "n1", Err: errors.New("lost")})
	l.wants(`cluster_autoscaler_evicted_pods_total{eviction_result="succeeded"} 1`, `cluster_autoscaler_evicted_pods_total{eviction_result="failed"} 1`)
	l.step(step.TaintDone{Node: "n1", Key: autoscaler.ToBeDeletedTaint})
	for range 10 { // the delay after the taint passes
		l.step()
	}
	l.wants(`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="empty"} 0`)
	l.step(step.NodeDeletionDone{Node: "n1", Instance: "n1"})
	l.wants(`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="empty"} 1`)
	m := &l.m.scaleDown
	m.step(nil, &step.Ready{NodeDeletions: []step.NodeDeletion{{Node: "a", Reason: step.RemovedUnready, GPU: "nvidia.com/gpu"}, {Node: "b", Reason: step.RemovedUnderutilized}, {Node: "c"}}})
	m.step([]step.Input{step.NodeDeletionDone{Node: "a"}, step.NodeDeletionDone{Node: "b", Err: errors.New("lost")}, step.NodeDeletionDone{Node: "c"}}, &step.Ready{})
	l.wants(`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="generic",gpu_resource_name="nvidia.com/gpu",reason="unready"} 1`, `cluster_autoscaler_scaled_down_gpu_nodes_total{gpu_name="generic",gpu_resource_name="nvidia.com/gpu",reason="unready"} 1`,
		`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="underutilized"} 0`)
	if len(m.removals) != 0 {
		t.Errorf("removals without an end: %v", m.removals)
	}
}

// wants checks that metrics have values, each written as a scrape has it.
func (l *live) wants(lines ...string) {
	l.t.Helper()
	got := l.scrape()
	for _, line := range lines {
		if name, _, _ := strings.Cut(strings.Fields(line)[0], "{"); !slices.Contains(got, line) {
			l.t.Errorf("want %s, and of that metric there is\n%s", line, strings.Join(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, name) }), "\n"))
		}
	}
}

// scrape returns the lines of a scrape.
func (l *live) scrape() []string {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(l.m.Registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return strings.Split(answer.Body.String(), "\n")
}

func histogram(t *testing.T, r *prometheus.Registry, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.Metric {
				count += m.GetHistogram().GetSampleCount()
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return count, sum
}

// A pod that goes while its bind is under way leaves nothing behind.
func TestBindOfAPodThatGoes(t *testing.T) {
	l := newLive(t)
	l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.PodSet{Pod: testkit.Pod("p").Obj()})
	l.step(step.PodGone{UID: types.UID("pod-p")})
	if len(l.m.binds) != 0 {
		t.Errorf("binds: %v", l.m.binds)
	}
}

// TestPodResources shows that every pod that is not over has its series, whoever
// places it and whether its node is known or not.
func TestPodResources(t *testing.T) {
	l := newLive(t)
	other := func() *testkit.PodBuilder {
		p := testkit.Pod("other").Req("cpu", "2")
		p.Spec.SchedulerName = "another"
		return p
	}
	over := testkit.Pod("over").Req("cpu", "1").On("n1")
	over.Status.Phase = v1.PodSucceeded
	l.step(
		step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.PodSet{Pod: testkit.Pod("bound").Req("cpu", "1", "memory", "1Gi").Priority(7).On("n1").Obj()},
		step.PodSet{Pod: testkit.Pod("early").Req("cpu", "1").On("unknown").Obj()},
		step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "500m").Gate("g").Obj()},
		step.PodSet{Pod: other().Obj()},
		step.PodSet{Pod: over.Obj()},
	)
	got := func() string {
		c := newPodResources(t.Context(), func(_ context.Context, question func(*core.Core)) bool { question(l.core); return true })
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(c)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range families {
			for _, m := range f.Metric {
				labels := map[string]string{}
				for _, p := range m.Label {
					labels[p.GetName()] = p.GetValue()
				}
				out = append(out, fmt.Sprintf("%s/%s on %q by %s at %q: %v %s of %s", labels["namespace"], labels["pod"], labels["node"],
					labels["scheduler"], labels["priority"], m.GetGauge().GetValue(), labels["unit"], labels["resource"]))
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}
	want := []string{
		`default/bound on "n1" by default-scheduler at "7": 1 cores of cpu`,
		`default/bound on "n1" by default-scheduler at "7": 1.073741824e+09 bytes of memory`,
		`default/early on "unknown" by default-scheduler at "": 1 cores of cpu`,
		`default/other on "" by another at "": 2 cores of cpu`,
		`default/waits on "" by default-scheduler at "": 0.5 cores of cpu`,
	}
	if got := got(); got != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", got)
	}
	l.step(step.PodSet{Pod: other().On("n1").Obj()}, step.PodGone{UID: "pod-waits"})
	want[3] = `default/other on "n1" by another at "": 2 cores of cpu`
	if got := got(); got != strings.Join(want[:4], "\n") {
		t.Errorf("once the other is bound and the waiting one gone:\n%s", got)
	}
	l.step(step.PodGone{UID: "pod-other"})
	if got := got(); got != strings.Join(want[:3], "\n") {
		t.Errorf("once the other is gone:\n%s", got)
	}
}

// TestMetricsReference keeps docs/reference/metrics.md what the code says.
func TestMetricsReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\nGenerated from the code: `go test ./edge/observe -rewrite`. Metrics of the Go runtime and of the process are omitted. ")
	b.WriteString("`scheduler_*` metrics have kube-scheduler's names, labels and buckets, and `cluster_autoscaler_*` metrics Cluster Autoscaler's; the differences are in [compatibility](../compatibility.md). ")
	b.WriteString("Metrics marked with * need `--emit-per-nodegroup-metrics`. A dashboard and alerting rules are in [deploy/chart/files](../../deploy/chart/files), and the chart installs them with `prometheusRule.enabled` and `grafanaDashboard.enabled`. The column stability has kube-scheduler's level.\n\n| metric | type | labels | stability | meaning |\n|---|---|---|---|---|\n")
	list, stability := slices.Clone(NewMetrics().List()), stabilityOf(t)
	slices.SortFunc(list, func(x, y Metric) int { return strings.Compare(x.Name, y.Name) })
	for _, m := range list {
		mark := ""
		if m.PerNodeGroup {
			mark = " *"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s |\n", m.Name, mark, m.Type, strings.Join(slices.Sorted(slices.Values(m.Labels)), ", "), stability[m.Name], m.Help)
	}
	b.WriteString("\nMetrics of kube-scheduler 1.36 and 1.37 that Berth doesn't have, and why:\n\n| metric | why |\n|---|---|\n" + leftOut("scheduler_", ofKubeScheduler(t)))
	b.WriteString("\nMetrics of Cluster Autoscaler that Berth doesn't have, and why:\n\n| metric | why |\n|---|---|\n" + leftOut("cluster_autoscaler_", ofClusterAutoscaler))
	b.WriteString("\nValues of the label `function` of `cluster_autoscaler_function_duration_seconds` that Cluster Autoscaler has and Berth doesn't, and why:\n\n| function | why |\n|---|---|\n" + functionsLeftOut())
	path := filepath.Join("..", "..", "docs", "reference", "metrics.md")
	testkit.Generated(t, path, b.String(), "go test ./edge/observe -rewrite", *rewrite)
}

// TestMetricsOfDevices has claims be created and devices awaited.
func TestMetricsOfDevices(t *testing.T) {
	l, server := newLive(t), NewServer(slog.New(slog.DiscardHandler))
	server.Metrics = l.m
	server.ClaimCreated(nil)
	server.ClaimCreated(errors.New("refused"))
	server.DevicesAwaited("p", []string{"a", "a", "b"}, []string{"b"}, "timeout", 3*time.Second)
	l.wants(`scheduler_resourceclaim_creates_total{status="success"} 1`, `scheduler_resourceclaim_creates_total{status="failure"} 1`,
		`dynamic_resource_allocation_resourceclaim_creates_total{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="failure"} 1`,
		`scheduler_dra_bindingconditions_wait_duration_seconds_sum{driver="a",profile="p",status="timeout"} 6`,
		`scheduler_dra_bindingconditions_allocations_total{driver="b",profile="p",status="timeout"} 1`)
	for _, line := range l.scrape() {
		if strings.HasPrefix(line, `scheduler_dra_bindingconditions_allocations_total{driver="a"`) {
			t.Errorf("there is %s, of a driver whose device has no conditions", line)
		}
	}
}
