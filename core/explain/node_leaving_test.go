package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"

	v1 "k8s.io/api/core/v1"
)

// TestExplainNodeOnItsWayOut follows a node with a pod until the provider is asked to delete it;
// another waits for it, since only one may be drained at a time, and a third has the taint and
// no note of Berth's.
func TestExplainNodeOnItsWayOut(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) {
		a.UnneededTime, a.DelayAfterAdd, a.DeleteDelayAfterTaint, a.MaxDrain, a.NoHomes = 0, 0, 5*time.Second, 1, true
	})
	pod := func(name, node string) step.PodSet {
		return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").Owner("apps/v1", "ReplicaSet", "rs").On(node).Obj()}
	}
	p.step(0, pod("web", "n1"), pod("other", "n3"), step.NodeSet{Group: "g",
		Node: testkit.Node("n4").Alloc("cpu", "4").Taint(autoscaler.ToBeDeletedTaint, "1", v1.TaintEffectNoSchedule).Obj()})
	p.plan(func(plan *autoscaler.Plan) {
		plan.Removals = []*autoscaler.Removal{
			{Node: "n1", Homes: []autoscaler.Home{{Pod: "pod-web", Node: "n2"}}}, {Node: "n3", Homes: []autoscaler.Home{{Pod: "pod-other", Node: "n2"}}},
		}
	})
	for _, x := range []struct {
		happens string
		do      func()
		want    string // of n1
	}{
		{"the plan", func() {}, `{"step":"tainting","why":"it has been unneeded"}`},
		{"the taint is written", func() { p.step(0, step.TaintDone{Node: "n1", Key: autoscaler.ToBeDeletedTaint}) }, `{"step":"tainted","why":"it has been unneeded","next":"1970-01-01T00:16:55Z"}`},
		{"its time is over", func() { p.step(5 * time.Second) }, `{"step":"draining, 1 asked","why":"it has been unneeded"}`},
		{"the pod is gone", func() {
			p.step(0, step.EvictionDone{UID: "pod-web", Node: "n1"}, step.PodGone{UID: "pod-web"})
		}, `{"step":"deleting","why":"it has been unneeded"}`},
	} {
		x.do()
		n, _ := p.View().ExplainNode("n1")
		got, err := json.Marshal(n.Leaving)
		if err != nil || n.State != explain.NodeLeaving || string(got) != x.want {
			t.Errorf("%s: %s, %v %s, want %s", x.happens, n.State, err, got, x.want)
		}
		if strings.HasPrefix(n.Leaving.Step, "t") && (len(n.Pods) != 1 || n.Pods[0].Pod != "default/web") {
			t.Errorf("%s: pods on it are %v", x.happens, n.Pods)
		}
		if n, _ := p.View().ExplainNode("n3"); n.Reason != autoscaler.KeptThrottled || !strings.Contains(n.Detail, "--max-drain-parallelism") {
			t.Errorf("%s: the second is explained as %+v", x.happens, n)
		}
	}
	if n, _ := p.View().ExplainNode("n4"); n.State != explain.NodeStays || n.Reason != autoscaler.KeptSomebodyElsesTask {
		t.Errorf("a node with somebody else's taint is explained as %+v", n)
	}
	if got := p.View().NodesLeaving(); got != 1 {
		t.Errorf("%d nodes are on their way out, want 1", got)
	}
}
