package drainability_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies the rules, one test each, by the verdict of all of them together:
// "evict", "ignore RULE", "wait for RULE" or "RULE: WHY".

// now is the API server's time.
var now = time.Unix(100_000, 0)

// at returns the time so long before now.
func at(before time.Duration) metav1.Time { return metav1.NewTime(now.Add(-before)) }

// pod is an ordinary pod of a ReplicaSet that exists.
func pod() *testkit.PodBuilder { return testkit.Pod("p").Owner("apps/v1", "ReplicaSet", "web") }

// inKubeSystem is the same as a system pod of some age.
func inKubeSystem(age time.Duration) *testkit.PodBuilder {
	return pod().Namespaced("kube-system").With(func(p *v1.Pod) { p.CreationTimestamp = at(age) })
}

// state has the controllers that the pods name, each in both namespaces.
func state() *cluster.State {
	s := cluster.New(cluster.NewSchema())
	for _, ns := range []string{"default", "kube-system"} {
		for _, kind := range []cluster.WorkloadKind{cluster.ReplicaSet, cluster.ReplicationController, cluster.StatefulSet, cluster.DaemonSet, cluster.Job} {
			s.SetWorkload(&cluster.Workload{Kind: kind, Namespace: ns, Name: "web", Replicas: cluster.Replicas{Wanted: 2}})
		}
	}
	return s
}

// ruleCase is a pod, how flags differ from their defaults, what else there is, and the
// verdict.
type ruleCase struct {
	name  string
	pod   *testkit.PodBuilder
	flags func(*autoscaler.RemovalRules)
	with  cluster.Object
	want  string
}

func check(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, x := range cases {
		s, flags := state(), core.DefaultAutoscale().Removal
		if x.flags != nil {
			x.flags(&flags)
		}
		if x.with != nil {
			s.SetObject(x.with)
		}
		c := drainability.Context{Rules: &flags, State: s, Now: now}
		if got := text(c.Judge(s.Schema.ParsePod(cluster.Trim(x.pod.Obj())))); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func text(v drainability.Verdict) string {
	switch v.Outcome {
	case drainability.Evict:
		return "evict"
	case drainability.Ignore:
		return "ignore " + v.Rule + v.Why
	case drainability.WaitFor:
		return fmt.Sprintf("wait for %s: it %s", v.Rule, v.Why)
	}
	return fmt.Sprintf("%s: it %s", v.Rule, v.Why)
}

func customControllers(r *autoscaler.RemovalRules) { r.SkipCustomControllerPods = false }

func minReplicas(n int) func(*autoscaler.RemovalRules) {
	return func(r *autoscaler.RemovalRules) { r.MinReplicas = n }
}

func TestMirror(t *testing.T) {
	mirror := func(b *testkit.PodBuilder) *testkit.PodBuilder { return b.Annotate(v1.MirrorPodAnnotationKey, "") }
	check(t, []ruleCase{
		{name: "a mirror pod", pod: mirror(testkit.Pod("p")), want: "ignore Mirror"},
		{name: "one that says it stays", pod: mirror(testkit.Pod("p")).Annotate(cluster.SafeToEvictAnnotation, "false"), want: "ignore Mirror"},
		{name: "an ordinary pod", pod: pod(), want: "evict"},
	})
}

func TestLongTerminating(t *testing.T) {
	deleted := func(before time.Duration, grace int64) *testkit.PodBuilder {
		return testkit.Pod("p").With(func(p *v1.Pod) {
			p.DeletionTimestamp = new(at(before))
			if p.Spec.TerminationGracePeriodSeconds = &grace; grace < 0 {
				p.Spec.TerminationGracePeriodSeconds = nil
			}
		})
	}
	const kept = "Replicated: it has no controller, so nothing would recreate it"
	check(t, []ruleCase{
		{name: "within twice its grace and 30s", pod: deleted(90*time.Second, 60), want: kept},
		{name: "later", pod: deleted(91*time.Second, 60), want: "ignore LongTerminating"},
		{name: "within the default grace", pod: deleted(60*time.Second, -1), want: kept},
		{name: "after it", pod: deleted(61*time.Second, -1), want: "ignore LongTerminating"},
		{name: "a grace without end", pod: deleted(time.Hour, 1<<62), want: kept},
	})
}

func TestReplicaCount(t *testing.T) {
	owned := func(api, kind, name string) *testkit.PodBuilder { return testkit.Pod("p").Owner(api, kind, name) }
	check(t, []ruleCase{
		{name: "a ReplicaSet that wants enough", pod: pod(), flags: minReplicas(2), want: "evict"},
		{name: "one that wants too few", pod: pod(), flags: minReplicas(3), want: "ReplicaCount: it is controlled by ReplicaSet web, which has 2 desired replicas (--min-replica-count=3)"},
		{name: "a ReplicationController that wants too few", pod: owned("v1", "ReplicationController", "web"), flags: minReplicas(3), want: "ReplicaCount: it is controlled by ReplicationController web, which has 2 desired replicas (--min-replica-count=3)"},
		{name: "a StatefulSet isn't counted", pod: owned("apps/v1", "StatefulSet", "web"), flags: minReplicas(3), want: "evict"},
		{name: "nor is a Job", pod: owned("batch/v1", "Job", "web"), flags: minReplicas(3), want: "evict"},
		{name: "a ReplicaSet that vanished", pod: owned("apps/v1", "ReplicaSet", "gone"), want: "ReplicaCount: it is controlled by ReplicaSet gone, which doesn't exist"},
		{name: "a Job that vanished", pod: owned("batch/v1", "Job", "gone"), want: "ReplicaCount: it is controlled by Job gone, which doesn't exist"},
		{name: "a StatefulSet that vanished", pod: owned("apps/v1", "StatefulSet", "gone"), want: "ReplicaCount: it is controlled by StatefulSet gone, which doesn't exist"},
		{name: "a ReplicationController that vanished", pod: owned("v1", "ReplicationController", "gone"), want: "ReplicaCount: it is controlled by ReplicationController gone, which doesn't exist"},
		{name: "a DaemonSet that vanished", pod: owned("apps/v1", "DaemonSet", "gone"), want: "ReplicaCount: it is controlled by DaemonSet gone, which doesn't exist"},
		{name: "in another namespace it doesn't exist", pod: pod().Namespaced("other"), want: "ReplicaCount: it is controlled by ReplicaSet web, which doesn't exist"},
		{name: "a StatefulSet of another API group", pod: owned("apps.kruise.io/v1", "StatefulSet", "gone"), want: "evict"},
		{name: "a DaemonSet of another API group", pod: owned("apps.kruise.io/v1", "DaemonSet", "gone"), want: "ignore DaemonSet"},
		{name: "an API version that can't be read", pod: owned("a/b/c", "ReplicaSet", "gone"), want: "evict"},
		{name: "a pod that is treated as a DaemonSet's", pod: owned("apps/v1", "ReplicaSet", "gone").Annotate(cluster.DaemonPodAnnotation, "true"), want: "ignore DaemonSet"},
		{name: "a safe pod of a vanished controller", pod: owned("apps/v1", "ReplicaSet", "gone").Annotate(cluster.SafeToEvictAnnotation, "true"), want: "ReplicaCount: it is controlled by ReplicaSet gone, which doesn't exist"},
		{name: "a vanished controller where any will do", pod: owned("apps/v1", "ReplicaSet", "gone"), flags: customControllers, want: "evict"},
		{name: "an owner that isn't the controller", pod: pod().With(func(p *v1.Pod) { p.OwnerReferences[0].Controller = nil }), want: "Replicated: it has no controller, so nothing would recreate it"},
	})
}

func TestDoNotDisrupt(t *testing.T) {
	const key = cluster.DoNotDisruptAnnotation
	check(t, []ruleCase{
		{name: "an annotated pod", pod: pod().Annotate(key, "true"), want: "DoNotDisrupt: it has the annotation karpenter.sh/do-not-disrupt: true"},
		{name: "a daemon pod", pod: testkit.Pod("p").Owner("apps/v1", "DaemonSet", "web").Annotate(key, "true"), want: "DoNotDisrupt: it has the annotation karpenter.sh/do-not-disrupt: true"},
		{name: "another annotation says the opposite", pod: pod().Annotate(key, "true").Annotate(cluster.SafeToEvictAnnotation, "true"), want: "DoNotDisrupt: it has the annotation karpenter.sh/do-not-disrupt: true"},
		{name: "a pod that terminates", pod: pod().Annotate(key, "true").With(func(p *v1.Pod) { p.DeletionTimestamp = new(at(0)) }), want: "evict"},
		{name: "a pod that has ended", pod: pod().Annotate(key, "true").With(func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }), want: "ignore Terminal"},
		{name: "no boolean", pod: pod().Annotate(key, "True"), want: "evict"},
	})
}

func TestDaemonSet(t *testing.T) {
	daemon := func() *testkit.PodBuilder { return testkit.Pod("p").Owner("apps/v1", "DaemonSet", "web") }
	check(t, []ruleCase{
		{name: "a daemon pod", pod: daemon(), want: "ignore DaemonSet"},
		{name: "one that says it stays", pod: daemon().Annotate(cluster.SafeToEvictAnnotation, "false"), want: "ignore DaemonSet"},
		{name: "treated so", pod: pod().Annotate(cluster.DaemonPodAnnotation, "true"), want: "ignore DaemonSet"},
		{name: "no boolean", pod: pod().Annotate(cluster.DaemonPodAnnotation, "yes"), want: "evict"},
	})
}

func TestSafeToEvict(t *testing.T) {
	const key = cluster.SafeToEvictAnnotation
	check(t, []ruleCase{
		{name: "a safe pod that nobody replaces", pod: testkit.Pod("p").Annotate(key, "true"), want: "evict"},
		{name: "a safe system pod with local storage", pod: inKubeSystem(0).Annotate(key, "true").Volume("v", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}), want: "evict"},
		{name: "no boolean says nothing", pod: testkit.Pod("p").Annotate(key, "TRUE"), want: "Replicated: it has no controller, so nothing would recreate it"},
	})
}

func TestTerminal(t *testing.T) {
	in := func(phase v1.PodPhase) *testkit.PodBuilder {
		return testkit.Pod("p").With(func(p *v1.Pod) { p.Status.Phase = phase })
	}
	const kept = "Replicated: it has no controller, so nothing would recreate it"
	check(t, []ruleCase{
		{name: "failed", pod: in(v1.PodFailed), want: "ignore Terminal"},
		{name: "succeeded", pod: in(v1.PodSucceeded), want: "ignore Terminal"},
		{name: "failed, whose end somebody wanted to see", pod: in(v1.PodFailed).Annotate(cluster.SafeToEvictAnnotation, "on-completion"), want: "ignore Terminal"},
		{name: "running", pod: in(v1.PodRunning), want: kept},
		{name: "pending", pod: in(v1.PodPending), want: kept},
	})
}

func TestOnCompletion(t *testing.T) {
	const wait = "wait for OnCompletion: it has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion"
	check(t, []ruleCase{
		{name: "a pod that is to run to its end", pod: pod().Annotate(cluster.SafeToEvictAnnotation, "on-completion"), want: wait},
		{name: "one that nobody replaces", pod: testkit.Pod("p").Annotate(cluster.SafeToEvictAnnotation, "on-completion"), want: wait},
	})
}

func TestReplicated(t *testing.T) {
	const unknown = "Replicated: it is controlled by a Widget, which may not recreate it (--skip-nodes-with-custom-controller-pods)"
	widget := func() *testkit.PodBuilder { return testkit.Pod("p").Owner("example.com/v1", "Widget", "w") }
	check(t, []ruleCase{
		{name: "no controller", pod: testkit.Pod("p"), want: "Replicated: it has no controller, so nothing would recreate it"},
		{name: "no controller, where any will do", pod: testkit.Pod("p"), flags: customControllers, want: "Replicated: it has no controller, so nothing would recreate it"},
		{name: "a controller of an unknown kind", pod: widget(), want: unknown},
		{name: "where any will do", pod: widget(), flags: customControllers, want: "evict"},
	})
}

func TestSystem(t *testing.T) {
	const blocked = "System: it is in namespace kube-system, is covered by no disruption budget, and was created less than 1h0m0s ago"
	budget := func(ns string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	}
	all := &metav1.LabelSelector{}
	dns := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "dns"}}
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	gone := budget("kube-system", all)
	gone.Status.DisruptedPods = map[string]metav1.Time{"p": {}}
	check(t, []ruleCase{
		{name: "a young system pod", pod: inKubeSystem(time.Hour), want: blocked},
		{name: "an older one", pod: inKubeSystem(time.Hour + time.Second), want: "evict"},
		{name: "an older one that says it stays", pod: inKubeSystem(2*time.Hour).Annotate(cluster.SafeToEvictAnnotation, "false"), want: "evict"},
		{name: "nobody knows its age", pod: pod().Namespaced("kube-system"), want: blocked},
		{name: "a budget for all of the namespace", pod: inKubeSystem(0), with: budget("kube-system", all), want: "evict"},
		{name: "one that has let the pod go", pod: inKubeSystem(0), with: gone, want: "evict"},
		{name: "a budget for its label", pod: inKubeSystem(0).Label("app", "dns"), with: budget("kube-system", dns), want: "evict"},
		{name: "a budget for others", pod: inKubeSystem(0), with: budget("kube-system", dns), want: blocked},
		{name: "a budget that selects nothing", pod: inKubeSystem(0), with: budget("kube-system", nil), want: blocked},
		{name: "a budget that can't be read", pod: inKubeSystem(0), with: budget("kube-system", unreadable), want: blocked},
		{name: "a budget of another namespace", pod: inKubeSystem(0), with: budget("default", all), want: blocked},
		{name: "with the rule off", pod: inKubeSystem(0), flags: func(r *autoscaler.RemovalRules) { r.SkipSystemPods = false }, want: "evict"},
	})
}

func TestPodGroup(t *testing.T) {
	part := testkit.PodGroup("part", 2, "")
	part.Spec.ParentCompositePodGroupName = new("whole")
	const (
		gone      = "PodGroup: it is a member of PodGroup training, which doesn't exist, so its replacement would not be placed"
		composite = "PodGroup: it is a member of PodGroup part, which is part of a CompositePodGroup, so its replacement would not be placed"
	)
	check(t, []ruleCase{
		{name: "a member", pod: pod().PodGroup("training"), with: testkit.PodGroup("training", 2, ""), want: "evict"},
		{name: "a member without a controller", pod: testkit.Pod("p").PodGroup("training"), with: testkit.PodGroup("training", 2, ""), want: "Replicated: it has no controller, so nothing would recreate it"},
		{name: "a member of a group that isn't there", pod: pod().PodGroup("training"), want: gone},
		{name: "one that may be evicted", pod: pod().PodGroup("training").Annotate(cluster.SafeToEvictAnnotation, "true"), want: "evict"},
		{name: "a member of a group of groups", pod: pod().PodGroup("part"), with: part, want: composite},
		{name: "a group without a name", pod: pod().PodGroup(""), want: "evict"},
	})
}

func TestNotSafeToEvict(t *testing.T) {
	const kept = "NotSafeToEvict: it has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: false"
	check(t, []ruleCase{
		{name: "a pod that says it stays", pod: pod().Annotate(cluster.SafeToEvictAnnotation, "false"), want: kept},
		{name: "no boolean says nothing", pod: pod().Annotate(cluster.SafeToEvictAnnotation, "no"), want: "evict"},
	})
}

func TestLocalStorage(t *testing.T) {
	empty := func(m v1.StorageMedium) v1.VolumeSource {
		return v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: m}}
	}
	disk := empty(v1.StorageMediumDefault)
	const key = cluster.LocalVolumesAnnotation
	check(t, []ruleCase{
		{name: "emptyDir", pod: pod().Volume("a", disk), want: "LocalStorage: it would lose its local volume a"},
		{name: "hostPath", pod: pod().Volume("a", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}), want: "LocalStorage: it would lose its local volume a"},
		{name: "in memory", pod: pod().Volume("a", empty(v1.StorageMediumMemory)), want: "evict"},
		{name: "in huge pages", pod: pod().Volume("a", empty(v1.StorageMediumHugePages)), want: "LocalStorage: it would lose its local volume a"},
		{name: "a claim", pod: pod().Uses("c"), want: "evict"},
		{name: "named", pod: pod().Volume("a", disk).Volume("b", disk).Annotate(key, "b,a"), want: "evict"},
		{name: "one isn't named", pod: pod().Volume("a", disk).Volume("b", disk).Annotate(key, "a"), want: "LocalStorage: it would lose its local volume b"},
		{name: "named with a space", pod: pod().Volume("a", disk).Volume("b", disk).Annotate(key, "a, b"), want: "LocalStorage: it would lose its local volume b"},
		{name: "others are named", pod: pod().Volume("a", disk).Annotate(key, ",,c"), want: "LocalStorage: it would lose its local volume a"},
		{name: "with the rule off", pod: pod().Volume("a", disk), flags: func(r *autoscaler.RemovalRules) { r.SkipLocalStorage = false }, want: "evict"},
	})
}
