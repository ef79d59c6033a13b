package explain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestExplainNodeSaysWhyItStays has a node for each state, and compares what the explanation
// says about it: state, reason, pod, since when, and what would change it.
func TestExplainNodeSaysWhyItStays(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = time.Minute, 0 })
	if x, ok := p.View().ExplainNode("n1"); !ok || x.State != explain.NodeUnknown || x.Detail != "no plan has been made since this instance became the leader" {
		t.Errorf("before a plan: %+v %v", x, ok)
	}
	p.step(0, step.PodSet{Pod: testkit.Pod("db").Req("cpu", "1").On("n2").Obj()}, step.PodSet{Pod: testkit.Pod("web").Req("cpu", "1").On("n3").Obj()},
		step.PodSet{Pod: testkit.Pod("gone").Req("cpu", "1").On("n3").Obj()})
	says := func(plan *autoscaler.Plan) {
		plan.Removals = []*autoscaler.Removal{
			{Node: "n3", Utilization: 0.5, Homes: []autoscaler.Home{{Pod: "pod-web", Node: "n2"}, {Pod: "pod-gone", Node: "n4"}}},
			{Node: "n4"},
		}
		plan.Kept = []autoscaler.Kept{
			{Node: "n0", Reason: autoscaler.KeptNotAutoscaled},
			{Node: "n1", Reason: autoscaler.KeptMinSize, Detail: "group g has 4 nodes, and a minimum of 1"},
			{Node: "n2", Reason: autoscaler.KeptBlockedByPod, Pod: "default/db", Detail: "it has local storage", Since: time.Unix(990, 0), Utilization: 0.25},
		}
	}
	ready := p.plan(says)
	if got := ledger(&ready, step.NodeStays); got != "NodeStays node n1 group g: NodeGroupMinSizeReached: group g has 4 nodes, and a minimum of 1\nNodeStays pod default/db node n2 group g: BlockedByPod: it has local storage\n" {
		t.Errorf("the ledger has\n%s", got)
	}
	p.step(0, step.PodGone{UID: "pod-gone"}, step.NodeSet{Node: testkit.Node("n5").Alloc("cpu", "4").Obj(), Group: "g"})
	if ready = p.plan(says); ledger(&ready, step.NodeStays) != "" {
		t.Errorf("the same plan again, and the ledger has\n%s", ledger(&ready, step.NodeStays))
	}
	for _, x := range []struct{ name, want string }{
		{"n0", `{"node":"n0","ready":true,"state":"Stays","reason":"NotAutoscaled","since":"1970-01-01T00:16:40Z","looked":"1970-01-01T00:16:50Z",
			"changes":["only nodes of a node group are removed: the provider must list its instance in one"],"planned":"1970-01-01T00:16:50Z"}`},
		{"n1", `{"node":"n1","group":"g","ready":true,"price":0.4,"state":"Stays","reason":"NodeGroupMinSizeReached","detail":"group g has 4 nodes, and a minimum of 1","since":"1970-01-01T00:16:40Z","looked":"1970-01-01T00:16:50Z",
			"changes":["lower the minimum size of node group g below 1, or grow it beyond its 4 nodes: others of them are removed first"],"planned":"1970-01-01T00:16:50Z"}`},
		{"n2", `{"node":"n2","group":"g","ready":true,"price":0.4,"state":"Stays","reason":"BlockedByPod","pod":"default/db","detail":"it has local storage","utilization":0.25,"since":"1970-01-01T00:16:40Z","looked":"1970-01-01T00:16:30Z",
			"changes":["every pod listed below must be evictable or finish"],
			"blocks":[{"pod":"default/db","rule":"Replicated","why":"has no controller, so nothing would recreate it","change":"wait for it to finish; or, if it may be lost, run: kubectl -n default annotate pod db --overwrite cluster-autoscaler.kubernetes.io/safe-to-evict=true"}],"pods":[{"pod":"default/db","home":"n3"}],"planned":"1970-01-01T00:16:50Z"}`},
		{"n3", `{"node":"n3","group":"g","ready":true,"price":0.4,"state":"Candidate","reason":"NotUnneededLongEnough","detail":"unneeded for 20s of 1m0s (--scale-down-unneeded-time)","utilization":0.5,"since":"1970-01-01T00:16:40Z","due":"1970-01-01T00:17:40Z",
			"pods":[{"pod":"default/web","home":"n2"}],"planned":"1970-01-01T00:16:50Z"}`},
		{"n5", `{"node":"n5","group":"g","ready":true,"price":0.4,"state":"Unknown","detail":"the last plan, made at 1970-01-01 00:16:50, does not mention it","planned":"1970-01-01T00:16:50Z"}`},
	} {
		got, ok := p.View().ExplainNode(x.name)
		text, err := json.Marshal(got)
		if want := strings.NewReplacer("\n", "", "\t", "").Replace(x.want); err != nil || !ok || string(text) != want {
			t.Errorf("node %s is explained as %v %v\n%s\nwant\n%s", x.name, ok, err, text, want)
		}
	}
	if x, ok := p.View().ExplainNode("n9"); ok {
		t.Errorf("a node that isn't there is explained as %+v", x)
	}
}

// TestExplainNodeHasAllPodsThatKeepIt has one for each rule, and for a disruption budget; an
// ordinary pod, and one that goes with the node, keep nothing.
func TestExplainNodeHasAllPodsThatKeepIt(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.Removal.MinReplicas = 3 })
	on := func(name string) *testkit.PodBuilder {
		return testkit.Pod(name).Req("cpu", "1m").Owner("apps/v1", "StatefulSet", "db").On("n1")
	}
	budget := testkit.Budget("calm", 0, "app", "calm")
	in := []step.Input{step.ObjectSet{Object: budget}, step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.StatefulSet, Namespace: "default", Name: "db"}}, step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: "agent"}},
		step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: "rs", Replicas: cluster.Replicas{Wanted: 2}}}}
	for _, b := range []*testkit.PodBuilder{
		on("ordinary"), testkit.Pod("alone").On("n1"), on("asks").Annotate(cluster.SafeToEvictAnnotation, "false"), on("ends").Annotate(cluster.SafeToEvictAnnotation, "on-completion"),
		on("stored").Volume("cache", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), on("karpenter").Annotate(cluster.DoNotDisruptAnnotation, "true"),
		on("covered").Label("app", "calm"), testkit.Pod("custom").Owner("example.com/v1", "Queue", "q").On("n1"), testkit.Pod("few").Owner("apps/v1", "ReplicaSet", "rs").On("n1"),
		testkit.Pod("agent").Owner("apps/v1", "DaemonSet", "agent").On("n1"),
	} {
		in = append(in, step.PodSet{Pod: b.Obj()})
	}
	p.step(0, in...)
	p.plan(func(plan *autoscaler.Plan) {
		plan.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptBlockedByPod, Pod: "default/alone"}}
	})
	x, _ := p.View().ExplainNode("n1")
	var got []string
	for _, b := range x.Blocks {
		got = append(got, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(b.Pod, "default/"), b.Rule, strings.ReplaceAll(b.Change, "cluster-autoscaler.kubernetes.io/", "…/")))
	}
	want := []string{
		"alone Replicated: wait for it to finish; or, if it may be lost, run: kubectl -n default annotate pod alone --overwrite …/safe-to-evict=true",
		"asks NotSafeToEvict: kubectl -n default annotate pod asks --overwrite …/safe-to-evict-",
		"covered DisruptionBudget: get more pods of the budget ready, or relax the budget",
		"custom Replicated: kubectl -n default annotate pod custom --overwrite …/safe-to-evict=true; or set --skip-nodes-with-custom-controller-pods=false",
		"ends OnCompletion: wait for it to finish, or run: kubectl -n default annotate pod ends --overwrite …/safe-to-evict=true",
		"few ReplicaCount: restore its controller or raise its replicas, or lower --min-replica-count",
		"karpenter DoNotDisrupt: kubectl -n default annotate pod karpenter --overwrite karpenter.sh/do-not-disrupt-",
		"stored LocalStorage: kubectl -n default annotate pod stored --overwrite …/safe-to-evict-local-volumes=cache; or set --skip-nodes-with-local-storage=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("pods that keep the node:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExplainNodeOfMembersWithoutSuccessors has members on a node of whom another can't have a successor, and
// then too many members.
func TestExplainNodeOfMembersWithoutSuccessors(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.Removal.Surge = true })
	g := testkit.PodGroup("g", 1, "")
	g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	member := func(name, node string) *testkit.PodBuilder {
		return testkit.Pod(name).PodGroup("g").Owner("apps/v1", "ReplicaSet", name+"-1").Label("pod-template-hash", "1").On(node)
	}
	in := []step.Input{step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: "m0-1", Replicas: cluster.Replicas{Wanted: 1}}},
		step.ObjectSet{Object: g}, step.PodSet{Pod: member("m0", "n1").Annotate(cluster.SurgeAnnotation, "true").Obj()},
		step.PodSet{Pod: member("m1", "n2").Obj()}}
	change := func() string {
		p.step(0, in...)
		p.plan(func(plan *autoscaler.Plan) {
			plan.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptBlockedByPod, Pod: "default/m0"}}
		})
		x, _ := p.View().ExplainNode("n1")
		if len(x.Blocks) != 1 {
			t.Fatalf("%d pods keep the node: %v", len(x.Blocks), x.Blocks)
		}
		return x.Blocks[0].Change
	}
	const run = "kubectl -n default annotate pod %s --overwrite cluster-autoscaler.kubernetes.io/safe-to-evict=true"
	if got, want := change(), "make default/m1 the only pod of a Deployment with the annotation berth.dev/surge: \"true\"; or, if it may go without waiting for the others, run: "+fmt.Sprintf(run, "m1"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	in = nil
	for i := range cluster.MaxSurgedMembers {
		in = append(in, step.PodSet{Pod: member(fmt.Sprint("x", i), "n2").Obj()})
	}
	if got, want := change(), "run Berth without --surge; or, if it may go without waiting for the others, run: "+fmt.Sprintf(run, "m0"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestExplainNodeFollowsItOut has an empty node's time come, and follows it until the provider
// is asked to delete it.
func TestExplainNodeFollowsItOut(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) {
		a.UnneededTime, a.DelayAfterAdd, a.DeleteDelayAfterTaint = 25*time.Second, 0, 5*time.Second
		a.MaxScaleDown = 1
	})
	says := func(plan *autoscaler.Plan) {
		plan.Removals = []*autoscaler.Removal{{Node: "n3"}, {Node: "n4", WaitsFor: []string{"default/job"}}, {Node: "n2"}}
	}
	for _, x := range []struct {
		happens string
		do      func()
		want    string // of n3, n4 and n2
		status  explain.ScaleDownStatus
	}{
		{"the first plan", func() { p.plan(says) }, "Candidate NotUnneededLongEnough, Candidate NotUnneededLongEnough, Candidate NotUnneededLongEnough", explain.ScaleDownCandidates},
		{"time", func() { p.plan(says); p.step(6 * time.Second) }, "Candidate , Candidate BlockedByOnCompletionPod, Candidate ", explain.ScaleDownCandidates},
		{"the next plan", func() { p.plan(says) }, "Leaving , Candidate BlockedByOnCompletionPod, Candidate Throttled", explain.ScaleDownThrottled},
		{"the taint is there, and its time is over", func() {
			p.step(0, step.TaintDone{Node: "n3", Key: autoscaler.ToBeDeletedTaint})
			p.step(5 * time.Second)
		}, "Leaving , Candidate BlockedByOnCompletionPod, Candidate Throttled", explain.ScaleDownThrottled},
	} {
		x.do()
		var got []string
		for _, name := range []string{"n3", "n4", "n2"} {
			n, _ := p.View().ExplainNode(name)
			got = append(got, n.State+" "+string(n.Reason))
		}
		if got := strings.Join(got, ", "); got != x.want {
			t.Errorf("%s: nodes are %s, want %s", x.happens, got, x.want)
		}
		if all, _ := p.View().ExplainNodes(); all.Status != x.status {
			t.Errorf("%s: scale-down is %s, want %s", x.happens, all.Status, x.status)
		}
	}
}

// TestCandidatesWaitForTimeAndDelay has a plan find that a node could go which isn't ready, and one
// that is. The former waits for a longer time, and then both wait for what their group was last
// asked for.
func TestCandidatesWaitForTimeAndDelay(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) {
		a.UnneededTime, a.UnreadyTime, a.DelayAfterAdd = 15*time.Second, 35*time.Second, time.Minute
	})
	sick := testkit.Node("n2").Alloc("cpu", "4", "memory", "8Gi").Obj()
	sick.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
	p.step(0, step.NodeSet{Node: sick, Group: "g"})
	could := func(plan *autoscaler.Plan) { plan.Removals = []*autoscaler.Removal{{Node: "n1"}, {Node: "n2"}} }
	for _, x := range []struct {
		happens string
		do      func()
		want    string // of n1 and n2
		status  explain.ScaleDownStatus
	}{
		{"nodes were ordered", func() {
			p.plan(func(plan *autoscaler.Plan) { could(plan); plan.ScaleUps = []autoscaler.ScaleUp{{Group: "g", Nodes: 1}} })
			p.step(0, step.ScaleUpDone{Group: "g", Nodes: 1})
		}, "NotUnneededLongEnough, NotUnreadyLongEnough", explain.ScaleDownCandidates},
		{"the time of the ready one is over", func() { p.plan(could) }, "InCooldown, NotUnreadyLongEnough", explain.ScaleDownInCooldown},
		{"that of the other is over", func() { p.plan(could); p.plan(could) }, "InCooldown, InCooldown", explain.ScaleDownInCooldown},
		{"the delay is over", func() { p.step(time.Minute) }, ", ", explain.ScaleDownCandidates},
	} {
		x.do()
		one, _ := p.View().ExplainNode("n1")
		other, _ := p.View().ExplainNode("n2")
		if all, _ := p.View().ExplainNodes(); fmt.Sprintf("%s, %s", one.Reason, other.Reason) != x.want || all.Status != x.status || one.State+other.State != explain.NodeCandidate+explain.NodeCandidate {
			t.Errorf("%s: %s %s and %s %s, scale-down is %s; want %s, %s", x.happens, one.State, one.Reason, other.State, other.Reason, all.Status, x.want, x.status)
		}
	}
}

// TestScaleDownIsThrottledWhenNoDueNodeMayGo has the limit of drains keep a due node: scale-down is
// throttled when all due nodes wait for it, and not while an empty one may go beside it.
func TestScaleDownIsThrottledWhenNoDueNodeMayGo(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) {
		a.UnneededTime, a.DelayAfterAdd, a.MaxDrain, a.MaxScaleDown = 25*time.Second, 0, 1, 5
	})
	for _, node := range []string{"n1", "n2"} {
		p.step(0, step.PodSet{Pod: testkit.Pod("on-"+node).Req("cpu", "1").Owner("apps/v1", "ReplicaSet", "web").On(node).Obj()})
	}
	drain := func(node string) *autoscaler.Removal {
		return &autoscaler.Removal{Node: node, Homes: []autoscaler.Home{{Pod: types.UID("pod-on-" + node), Node: "n4"}}}
	}
	both := func(plan *autoscaler.Plan) { plan.Removals = []*autoscaler.Removal{drain("n1"), drain("n2")} }
	andEmpty := func(plan *autoscaler.Plan) {
		both(plan)
		plan.Removals = append(plan.Removals, &autoscaler.Removal{Node: "n3"})
	}
	for _, x := range []struct {
		happens string
		do      func()
		want    string // of n1, n2 and n3
		status  explain.ScaleDownStatus
	}{
		{"two nodes with pods could go", func() { p.plan(both) }, "Candidate NotUnneededLongEnough, Candidate NotUnneededLongEnough, Unknown ", explain.ScaleDownCandidates},
		{"one of them goes", func() { p.plan(both); p.plan(both) }, "Leaving , Candidate Throttled, Unknown ", explain.ScaleDownThrottled},
		{"an empty node could go", func() { p.plan(andEmpty) }, "Leaving , Candidate Throttled, Candidate NotUnneededLongEnough", explain.ScaleDownThrottled},
		{"it is due", func() { p.plan(andEmpty); p.step(6 * time.Second) }, "Leaving , Candidate Throttled, Candidate ", explain.ScaleDownCandidates},
		{"it goes", func() { p.plan(andEmpty) }, "Leaving , Candidate Throttled, Leaving ", explain.ScaleDownThrottled},
	} {
		x.do()
		var got []string
		for _, name := range []string{"n1", "n2", "n3"} {
			n, _ := p.View().ExplainNode(name)
			got = append(got, n.State+" "+string(n.Reason))
		}
		if all, _ := p.View().ExplainNodes(); strings.Join(got, ", ") != x.want || all.Status != x.status {
			t.Errorf("%s: nodes are %s, scale-down is %s; want %s, %s", x.happens, strings.Join(got, ", "), all.Status, x.want, x.status)
		}
	}
}

// TestExplainNodeSaysWhyADueNodeIsntDrained: the room that plans find for its pod is taken when
// it is to be kept. The ledger has that once, until a plan finds other room, and another time
// when it happens again.
func TestExplainNodeSaysWhyADueNodeIsntDrained(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 0, 0 })
	pod := func(name, node string) step.PodSet {
		return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "web").On(node).Obj()}
	}
	to := func(home string) func(*autoscaler.Plan) {
		return func(plan *autoscaler.Plan) {
			plan.Removals = []*autoscaler.Removal{{Node: "n3", Homes: []autoscaler.Home{{Pod: "pod-web", Node: home}}}}
		}
	}
	p.step(0, pod("web", "n3"), pod("full-1", "n1"), pod("full-2", "n2"))
	for _, x := range []struct{ home, ledger, want string }{
		{"n1", "NodeStays node n3 group g: NoPlaceToMovePods: node n1 no longer has room for pod default/web\n", "Candidate NoPlaceToMovePods node n1 no longer has room for pod default/web"},
		{"n2", "", "Candidate NoPlaceToMovePods node n2 no longer has room for pod default/web"},
		{"", "", "Stays NodeGroupMinSizeReached "},
		{"n1", "NodeStays node n3 group g: NoPlaceToMovePods: node n1 no longer has room for pod default/web\n", "Candidate NoPlaceToMovePods node n1 no longer has room for pod default/web"},
		{"n4", "", "Leaving  "},
	} {
		says := to(x.home)
		if x.home == "" {
			says = func(plan *autoscaler.Plan) {
				plan.Kept = []autoscaler.Kept{{Node: "n3", Reason: autoscaler.KeptMinSize}}
			}
		}
		ready := p.plan(says)
		if got := ledger(&ready, step.NodeStays); got != x.ledger {
			t.Errorf("with a home on %q the ledger has\n%s, want\n%s", x.home, got, x.ledger)
		}
		n, _ := p.View().ExplainNode("n3")
		if got := fmt.Sprintf("%s %s %s", n.State, n.Reason, n.Detail); got != x.want {
			t.Errorf("with a home on %q the node is %q, want %q", x.home, got, x.want)
		}
	}
}

// TestExplainNodesAddsUp sums up by state, reason and group, the most money first.
func TestExplainNodesAddsUp(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.UnneededTime = time.Minute })
	p.plan(func(plan *autoscaler.Plan) {
		plan.Removals = []*autoscaler.Removal{{Node: "n4"}}
		plan.Kept = []autoscaler.Kept{
			{Node: "n0", Reason: autoscaler.KeptNotAutoscaled},
			{Node: "n1", Reason: autoscaler.KeptNoPlace, Pod: "default/a"}, {Node: "n2", Reason: autoscaler.KeptNoPlace, Pod: "default/b"},
			{Node: "n3", Reason: autoscaler.KeptUtilized},
		}
	})
	x, ok := p.View().ExplainNodes()
	got, err := json.Marshal(x)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := `{"status":"CandidatesPresent","planned":"1970-01-01T00:16:40Z","nodes":5,"price":1.6,"reasons":[
		{"state":"Stays","reason":"NoPlaceToMovePods","nodes":2,"price":0.8,"node":"n1","pod":"default/a"},
		{"state":"Candidate","reason":"NotUnneededLongEnough","nodes":1,"price":0.4,"node":"n4"},
		{"state":"Stays","reason":"NotUnderutilized","nodes":1,"price":0.4,"node":"n3"},
		{"state":"Stays","reason":"NotAutoscaled","nodes":1,"node":"n0"}],
		"groups":[{"group":"g","nodes":4,"price":1.6,"candidates":{"nodes":1,"price":0.4}},
		{"group":"","nodes":1}]}`
	if want := strings.NewReplacer("\n", "", "\t", "").Replace(want); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestExplainNodesSaysWhyNoneGoes has plans that look at no node, and none at all.
func TestExplainNodesSaysWhyNoneGoes(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*core.Autoscale)
		plan   func(*autoscaler.Plan) // nil for none
		status explain.ScaleDownStatus
		why    string
	}{
		{"switched off", func(a *core.Autoscale) { a.DisableScaleDown = true }, func(*autoscaler.Plan) {}, explain.ScaleDownDisabled, "scale-down is disabled (--scale-down-enabled=false)"},
		{"no plan yet", func(*core.Autoscale) {}, nil, explain.ScaleDownUnknown, "no plan has been made since this instance became the leader"},
		{"a sick cluster", func(*core.Autoscale) {}, func(p *autoscaler.Plan) { p.Sick = "9 of 9 nodes are not ready" }, explain.ScaleDownHeld,
			"scale-down is on hold: ClusterUnhealthy: 9 of 9 nodes are not ready"},
		{"displaced pods", func(*core.Autoscale) {}, func(p *autoscaler.Plan) {
			p.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptDisplaced, Pod: "default/p", Detail: "default/p has no room"}}
		}, explain.ScaleDownHeld, "scale-down is on hold: DisplacedPods: default/p has no room"},
		{"nothing could go", func(*core.Autoscale) {}, func(*autoscaler.Plan) {}, explain.ScaleDownNoCandidates, ""},
	} {
		p := newHandPlanned(t, x.change)
		if x.plan != nil {
			p.plan(x.plan)
		}
		if got, ok := p.View().ExplainNodes(); !ok || got.Status != x.status || got.Why != x.why {
			t.Errorf("%s: %v %s, %s; want %s, %s", x.name, ok, got.Status, got.Why, x.status, x.why)
		}
	}
}

// TestEveryReasonHasARemedy keeps a node for each reason that a plan may give: something is
// said of what would change it.
func TestEveryReasonHasARemedy(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	candidates := map[autoscaler.KeptReason]bool{ // no plan gives these: they are of candidates
		autoscaler.KeptNotLongEnough: true, autoscaler.KeptNotUnreadyEnough: true, autoscaler.KeptGroupDelayed: true, autoscaler.KeptThrottled: true, autoscaler.KeptNodeBudget: true, autoscaler.KeptOnCompletion: true,
	}
	for _, word := range testkit.Constants(t, "../autoscaler/removal.go", "KeptReason") {
		reason := autoscaler.KeptReason(word)
		var again *v1.Node // n1, when this reason needs another one
		if candidates[reason] {
			continue
		}
		p.plan(func(plan *autoscaler.Plan) {
			plan.Kept = []autoscaler.Kept{{Node: "n1", Reason: reason, Pod: "default/gone"}}
		})
		if reason == autoscaler.KeptLeaving {
			x, _ := p.View().ExplainNode("n1")
			if want := "its removal was cancelled, and no plan has been made since"; x.State != explain.NodeUnknown || x.Detail != want {
				t.Errorf("a node that was leaving when the plan was made is %s, %s; want %s, %s", x.State, x.Detail, explain.NodeUnknown, want)
			}
			n := testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()
			alive := *n
			n.DeletionTimestamp = &metav1.Time{Time: p.now}
			p.step(0, step.NodeSet{Node: n, Group: "g"})
			again = &alive
		}
		x, _ := p.View().ExplainNode("n1")
		if x.Reason != reason || len(x.Changes) == 0 || slices.Contains(x.Changes, "") || strings.Contains(strings.Join(x.Changes, " "), "NODE ") {
			t.Errorf("a node that is kept for %s is explained as %+v", reason, x)
		}
		if again != nil {
			p.step(0, step.NodeSet{Node: again, Group: "g"})
		}
	}
}

// TestExplainNodeWithoutAutoscaler: there is nothing to say about nodes.
func TestExplainNodeWithoutAutoscaler(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	c.Step(time.Unix(1, 0), door.Must(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4").Obj()})...)
	_, one := c.View().ExplainNode("n1")
	_, all := c.View().ExplainNodes()
	if _, autoscales := c.View().NodeNames(); one || all || autoscales {
		t.Errorf("a scheduler explains nodes' removal: %v %v %v", one, all, autoscales)
	}
}

// BenchmarkLooks is what the API asks a core of 5,000 nodes, most of which could go, with 50,000 pods on them and 2,000 that no
// node takes: each is a time for which nothing is placed.
func BenchmarkLooks(b *testing.B) {
	c := newCore(b, autoscaling(func(a *core.Autoscale) { a.UnneededTime = time.Hour }))
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 9000, Target: 5000, Price: 0.4, Template: testkit.Node("g").Alloc("cpu", "16").Obj()}}}}
	var removals []*autoscaler.Removal
	var kept []autoscaler.Kept
	names := testkit.Names("node", 5000)
	for i, name := range names {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "16", "memory", "32Gi", "pods", "110").Obj(), Group: "g"})
		if i%5 < 3 {
			removals = append(removals, &autoscaler.Removal{Node: name})
		} else {
			kept = append(kept, autoscaler.Kept{Node: name, Reason: autoscaler.KeptUtilized})
		}
	}
	for i, name := range testkit.Names("pod", 50_000) {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").On(names[i%len(names)]).Obj()})
	}
	for _, name := range testkit.Names("huge", 2000) {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "99").Obj()})
	}
	slices.SortFunc(kept, func(a, b autoscaler.Kept) int { return strings.Compare(a.Node, b.Node) })
	now := time.Unix(1000, 0)
	r := c.Step(now, door.Must(in...)...)
	for ; r.Plan == nil; now = now.Add(time.Second) { // until all pods were tried
		r = c.Step(now)
	}
	plan := autoscaler.NewPlan(r.Plan, 0)
	plan.Removals, plan.Kept = removals, kept
	c.Step(now, door.Must(step.PlanMade{Plan: plan})...)
	for _, look := range []struct {
		name string
		look func(*explain.View)
	}{
		{"overview", func(v *explain.View) { v.Overview(); v.Utilization(); v.Groups() }},
		{"nodes", func(v *explain.View) { v.NodeRows() }},
		{"groups", func(v *explain.View) { v.ExplainGroups(); v.ExplainNodes() }},
		{"pending", func(v *explain.View) { v.PendingLines() }},
		{"pods", func(v *explain.View) { v.PendingLines(); v.PlacedLines() }},
		{"node", func(v *explain.View) { v.NodeRow(names[1]); v.ExplainNode(names[1]); v.LinesOn(names[1]) }},
		{"pod", func(v *explain.View) { v.PodDetail("default", "pod-00001") }},
	} {
		b.Run(look.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				look.look(c.View())
			}
		})
	}
}

// BenchmarkExplainNodes sums up a large cluster, most of whose nodes could go: metrics ask for
// it every few seconds.
func BenchmarkExplainNodes(b *testing.B) {
	c := newCore(b, autoscaling(func(a *core.Autoscale) { a.UnneededTime = time.Hour }))
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 9000, Target: 5000, Price: 0.4, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}}
	var removals []*autoscaler.Removal
	var kept []autoscaler.Kept
	for i, name := range testkit.Names("node", 5000) {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj(), Group: "g"})
		if i%5 < 3 {
			removals = append(removals, &autoscaler.Removal{Node: name})
		} else {
			kept = append(kept, autoscaler.Kept{Node: name, Reason: autoscaler.KeptUtilized})
		}
	}
	slices.SortFunc(kept, func(a, b autoscaler.Kept) int { return strings.Compare(a.Node, b.Node) })
	now := time.Unix(1000, 0)
	r := c.Step(now, door.Must(in...)...)
	plan := autoscaler.NewPlan(r.Plan, 0)
	plan.Removals, plan.Kept = removals, kept
	c.Step(now, door.Must(step.PlanMade{Plan: plan})...)
	b.ReportAllocs()
	for b.Loop() {
		if x, ok := c.View().ExplainNodes(); !ok || len(x.Reasons) != 2 {
			b.Fatalf("%v %+v", ok, x)
		}
	}
}
