package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/demo"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/checker"
)

// This file tests that Berth replaces kube-scheduler: under the same configuration it
// places what kube-scheduler places and tells people the same of the rest; and each of
// the two works beside a Berth that only scales.

// dropInConfig is the configuration of both schedulers.
const dropInConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 5
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources: [{name: cpu, weight: 2}, {name: memory, weight: 1}]
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 5}
- schedulerName: packing
  plugins:
    score:
      disabled: [{name: ImageLocality}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}]
`

// TestDropIn runs the same workload with kube-scheduler and then with Berth: the same pods
// are placed, no placement of either breaks a rule, and conditions and events are equal.
func TestDropIn(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	d := &dropIn{t: t, client: client}
	d.createCluster()
	config := schedulerConfig(t, c, dropInConfig)
	theirs := func() map[string]outcome {
		defer startScheduler(t, c, config).Stop(10 * time.Second)
		return d.play("kube-scheduler")
	}()
	d.clear()
	startBerth(t, c, "--config", config)
	ours := d.play("berth")
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if theirs[name] != ours[name] {
			t.Errorf("%s:\nkube-scheduler %+v\nberth          %+v", name, theirs[name], ours[name])
		}
	}
	if len(ours) != len(theirs) || len(ours) < 100 {
		t.Errorf("%d pods with Berth, %d with kube-scheduler", len(ours), len(theirs))
	}
}

// TestModes runs the night batch with two programs: kube-scheduler, then Berth with
// --mode=scheduler, each beside a Berth with --mode=autoscaler.
func TestModes(t *testing.T) {
	for name, start := range map[string]func(*controlplane.Cluster) (*controlplane.Process, error){
		"kube-scheduler": func(c *controlplane.Cluster) (*controlplane.Process, error) {
			return startScheduler(t, c, schedulerConfig(t, c, dropInConfig)), nil
		},
		"berth": func(c *controlplane.Cluster) (*controlplane.Process, error) {
			p, _ := startBerth(t, c, "--mode", "scheduler")
			return p, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := demo.Night{AuditLog: auditLog(t), Scheduler: start, Berth: berth, Groups: filepath.Join("..", "..", "examples", "demo", "groups.yaml"), Scale: 10, Out: &lines{t: t}}
			if err := n.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// outcome is what has become of a pod: what must be equal with both schedulers. Which of
// several good nodes a pod is on may differ.
type outcome struct {
	Placed                  bool
	Status, Reason, Message string // of the condition PodScheduled
	Generation              int64  // that the condition observed
	Events                  string // their reasons, and whom they are from
}

// dropIn plays the workload on a cluster.
type dropIn struct {
	t      *testing.T
	client kubernetes.Interface
}

func (d *dropIn) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// createCluster creates twelve nodes in three zones, one of them tainted and one of a
// pool of its own, and the classes and Services that pods refer to.
func (d *dropIn) createCluster() {
	ctx := d.t.Context()
	for i := range 12 {
		n := testkit.Node(fmt.Sprintf("n%02d", i)).Alloc("cpu", "8", "memory", "16Gi", "pods", "30").Zone(string(rune('a' + i%3)))
		switch i {
		case 10:
			n.Taint("only", "gpus", v1.TaintEffectNoSchedule)
		case 11:
			n.Alloc("cpu", "2").Label("pool", "small").Taint("pool", "small", v1.TaintEffectNoSchedule)
		}
		_, err := d.client.CoreV1().Nodes().Create(ctx, n.Obj(), metav1.CreateOptions{})
		d.must(err)
	}
	nodesReady(d.t, d.client)
	for name, value := range map[string]int32{"low": -5, "high": 100} {
		_, err := d.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		d.must(err)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := d.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode}, metav1.CreateOptions{})
	d.must(err)
	for _, app := range []string{"web", "api"} {
		_, err := d.client.CoreV1().Services(v1.NamespaceDefault).Create(ctx, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: app},
			Spec: v1.ServiceSpec{ClusterIP: v1.ClusterIPNone, Selector: map[string]string{"app": app}}}, metav1.CreateOptions{})
		d.must(err)
	}
}

// storage creates two local volumes, two claims that fit them, and one that fits none.
func (d *dropIn) storage() {
	ctx, class := d.t.Context(), "local"
	for i, node := range []string{"n03", "n04"} {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv", i)}}
		pv.Spec = v1.PersistentVolumeSpec{
			Capacity: list("storage", "5Gi"), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}},
		}
		_, err := d.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
		d.must(err)
	}
	for _, c := range []struct{ name, size string }{{"claim-0", "1Gi"}, {"claim-1", "1Gi"}, {"claim-big", "50Gi"}} {
		pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: c.name}}
		pvc.Spec = v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: list("storage", c.size)}}
		_, err := d.client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Create(ctx, pvc, metav1.CreateOptions{})
		d.must(err)
	}
}

// workload returns all pods, and the names of those that can't be placed.
func workload() (pods []*testkit.PodBuilder, unplaceable []string) {
	many := func(n int, name string, shape func(p *testkit.PodBuilder) *testkit.PodBuilder) {
		for i := range n {
			pods = append(pods, shape(testkit.Pod(fmt.Sprintf("%s-%02d", name, i)).Req("cpu", "100m", "memory", "64Mi")))
		}
	}
	never := func(name string, shape func(p *testkit.PodBuilder) *testkit.PodBuilder) {
		many(1, name, shape)
		unplaceable = append(unplaceable, name+"-00")
	}
	type b = *testkit.PodBuilder
	many(20, "web", func(p b) b { return p.Label("app", "web") })
	many(15, "api", func(p b) b { return p.Label("app", "api").PreferTogether(10, v1.LabelTopologyZone, "app", "web") })
	many(18, "spread", func(p b) b { return p.Label("app", "spread").SpreadHard(v1.LabelTopologyZone, 1, "app", "spread") })
	many(8, "apart", func(p b) b { return p.Label("app", "apart").Apart(v1.LabelHostname, "app", "apart") })
	many(6, "beside", func(p b) b { return p.Together(v1.LabelTopologyZone, "app", "apart") })
	many(6, "zoned", func(p b) b { return p.RequireIn(v1.LabelTopologyZone, "a", "b") })
	many(3, "gpu", func(p b) b { return p.Tolerate("only").RequireIn(v1.LabelHostname, "n10") })
	many(4, "port", func(p b) b { return p.HostPort(8080) })
	many(15, "packed", func(p b) b { p.Spec.SchedulerName = "packing"; return p })
	many(2, "important", func(p b) b { p.Spec.PriorityClassName = "high"; return p })
	for i, claim := range []string{"claim-0", "claim-1"} {
		many(1, fmt.Sprint("disk", i), func(p b) b { return withClaim(p, claim) })
	}
	many(3, "gated", func(p b) b { return p.Gate("example.com/wait") })
	never("held", func(p b) b { return p.Gate("example.com/forever") })
	never("huge", func(p b) b { return p.Req("cpu", "64") })
	never("nowhere", func(p b) b { return p.RequireIn(v1.LabelTopologyZone, "z") })
	never("alone", func(p b) b { return p.Together(v1.LabelTopologyZone, "app", "nobody") })
	never("bigdisk", func(p b) b { return withClaim(p, "claim-big") })
	never("noclaim", func(p b) b { return withClaim(p, "missing") })
	never("noport", func(p b) b { return p.HostPort(8080).RequireIn(v1.LabelHostname, "n10") })
	never("stranger", func(p b) b { p.Spec.SchedulerName = "somebody-else"; return p })
	return pods, unplaceable
}

func withClaim(p *testkit.PodBuilder, claim string) *testkit.PodBuilder {
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

func (d *dropIn) create(p *v1.Pod) {
	d.t.Helper()
	p.UID, p.CreationTimestamp = "", metav1.Time{}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Image = "none"
	}
	_, err := d.client.CoreV1().Pods(p.Namespace).Create(d.t.Context(), p, metav1.CreateOptions{})
	d.must(err)
}

// play creates the workload and returns what the scheduler that runs, who, has made of it.
func (d *dropIn) play(who string) map[string]outcome {
	d.storage()
	ctx := d.t.Context()
	small := func(name, class string) *v1.Pod {
		p := testkit.Pod(name).Req("cpu", "2").Select("pool", "small").Tolerate("pool").Obj()
		p.Spec.PriorityClassName = class
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		return p
	}
	d.create(small("victim", "low"))
	d.until(who, "the pod of low priority", func(pods map[string]*v1.Pod) bool { return placed(pods["victim"]) })
	d.create(small("preemptor", "high"))
	// This pod has the port on the tainted node before noport needs it.
	d.create(testkit.Pod("first-port").Req("cpu", "100m").HostPort(8080).Tolerate("only").RequireIn(v1.LabelHostname, "n10").Obj())
	pods, unplaceable := workload()
	for _, p := range pods {
		if p.Name == "noport-00" {
			p.Tolerate("only")
		}
		d.create(p.Obj())
	}
	lifted := false
	d.until(who, "all pods that can be placed, with a condition on all others", func(now map[string]*v1.Pod) bool {
		if !lifted && now["gated-00"] != nil {
			lifted = true
			for i := range 3 {
				p := now[fmt.Sprintf("gated-%02d", i)].DeepCopy()
				p.Spec.SchedulingGates = nil
				_, err := d.client.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
				d.must(err)
			}
			return false
		}
		for name, p := range now {
			if !placed(p) && (!slices.Contains(unplaceable, name) || name != "stranger-00" && scheduledCondition(p).Reason == "") {
				return false
			}
		}
		return now["victim"] == nil && len(now) == len(pods)+2
	})
	d.check(who)
	return d.outcomes(who)
}

func placed(p *v1.Pod) bool { return p != nil && p.Spec.NodeName != "" }

func scheduledCondition(p *v1.Pod) v1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled {
			return c
		}
	}
	return v1.PodCondition{}
}

func (d *dropIn) pods(ctx context.Context) map[string]*v1.Pod {
	all, err := d.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	out := map[string]*v1.Pod{}
	for i := range all.Items {
		out[all.Items[i].Name] = &all.Items[i]
	}
	return out
}

func (d *dropIn) until(who, what string, ok func(map[string]*v1.Pod) bool) {
	d.t.Helper()
	var last map[string]*v1.Pod
	defer func() {
		if d.t.Failed() {
			for name, p := range last {
				if !placed(p) {
					d.t.Logf("%s: %s waits: %s", who, name, scheduledCondition(p).Message)
				}
			}
		}
	}()
	eventually(d.t, who+" to place "+what, func(ctx context.Context) bool {
		last = d.pods(ctx)
		return ok(last)
	})
}

// check fails the test for each placement that breaks a rule.
func (d *dropIn) check(who string) {
	nodes, err := api.Nodes(d.t.Context(), d.client)
	d.must(err)
	pods := slices.Collect(maps.Values(d.pods(d.t.Context())))
	for _, v := range slices.Concat(checker.Check(nodes, pods, nil), checker.CheckStanding(nodes, pods)) {
		d.t.Errorf("%s: %s", who, v)
	}
}

// outcomes waits for the last events, and returns the outcomes by pod. Whether a pod that
// was placed had to wait before depends on time: its event FailedScheduling is left out.
func (d *dropIn) outcomes(who string) map[string]outcome {
	var out map[string]outcome
	var missing []string
	defer func() {
		if d.t.Failed() {
			d.t.Logf("%s: no event about %v", who, missing)
		}
	}()
	eventually(d.t, who+" to write all events", func(ctx context.Context) bool {
		events, err := d.client.EventsV1().Events(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		reasons := map[string]map[string]string{} // of each pod, with whom they are from
		for i := range events.Items {
			e := &events.Items[i]
			if e.Regarding.Kind != "Pod" || !strings.Contains(e.ReportingController, "-scheduler") && e.ReportingController != "packing" {
				continue
			}
			if reasons[e.Regarding.Name] == nil {
				reasons[e.Regarding.Name] = map[string]string{}
			}
			reasons[e.Regarding.Name][e.Reason] = e.ReportingController + " " + e.ReportingInstance
		}
		out = map[string]outcome{"victim": {Events: fmt.Sprint(reasons["victim"])}}
		missing = nil
		expect := func(name, reason string) {
			if reasons[name][reason] == "" {
				missing = append(missing, name+" "+reason)
			}
		}
		expect("victim", "Preempted")
		for name, p := range d.pods(ctx) {
			c := scheduledCondition(p)
			o := outcome{Placed: placed(p), Status: string(c.Status), Reason: c.Reason, Message: filterMessage(c.Message), Generation: c.ObservedGeneration}
			if o.Placed {
				delete(reasons[name], "FailedScheduling")
				expect(name, "Scheduled")
			} else if name != "stranger-00" && name != "held-00" {
				expect(name, "FailedScheduling")
			}
			o.Events = fmt.Sprint(reasons[name])
			out[name] = o
		}
		return missing == nil
	})
	return out
}

// filterMessage returns the part of a condition's message that filters wrote, without
// that of PostFilter plugins. The oracle compares what DefaultPreemption writes; here
// DynamicResources writes before it, about claims that the pod doesn't have
// (docs/compatibility.md).
func filterMessage(message string) string {
	message, _, _ = strings.Cut(message, " no new claims to deallocate")
	message, _, _ = strings.Cut(message, " preemption: ")
	return strings.TrimSuffix(message, " not found")
}

// clear deletes all that play has created.
func (d *dropIn) clear() {
	ctx, now := d.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	d.must(d.client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{}))
	d.must(d.client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{}))
	d.must(d.client.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, metav1.ListOptions{}))
	d.must(d.client.EventsV1().Events(v1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{}))
	eventually(d.t, "everything to be cleared", func(ctx context.Context) bool {
		claims, err := d.client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		volumes, err2 := d.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		return err == nil && err2 == nil && len(d.pods(ctx))+len(claims.Items)+len(volumes.Items) == 0
	})
}
