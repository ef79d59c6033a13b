package explain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestOverviewSaysWhatPodsWaitFor has a pod for each state that one without a node can be in, and
// one on a node, which isn't pending.
func TestOverviewSaysWhatPodsWaitFor(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	if got := pendingOf(p.Core); got != "" {
		t.Errorf("before there are pods, pending are\n%s", got)
	}
	other := testkit.Pod("theirs").Obj()
	other.Spec.SchedulerName = "another"
	in := []step.Input{step.PodSet{Pod: testkit.Pod("runs").Req("cpu", "1").On("n1").Obj()}, step.PodSet{Pod: other}}
	for i := range 5 { // no room is left but for pods that take another's place
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("full", i)).Req("cpu", "3").On(fmt.Sprint("n", i)).Obj()})
	}
	in = append(in, step.PodSet{Pod: testkit.Pod("gated").Gate("example.com/quota").Obj()}, step.PodSet{Pod: testkit.Pod("binds").Req("cpu", "1m").Obj()})
	p.step(0, in...)
	p.step(time.Second, step.PodSet{Pod: testkit.Pod("big-1").Req("cpu", "64").Obj()})
	p.step(time.Second, step.PodSet{Pod: testkit.Pod("big-0").Req("cpu", "64").Obj()}, step.PodSet{Pod: testkit.Pod("urgent").Req("cpu", "3").Priority(9).Obj()})
	want := `2 Rejected default/big-1 1001 NodeResourcesFit: Insufficient cpu
1 Binding default/binds 1000 : 
1 Gated default/gated 1000 : Scheduling is blocked due to non-empty scheduling gates: waiting for scheduling gates: [example.com/quota]
1 Preempting default/urgent 1002 : 
1 Unmanaged default/theirs 0 : another
`
	if got := pendingOf(p.Core); got != want {
		t.Errorf("pending are\n%s\nwant\n%s", got, want)
	}
	o := p.View().Overview()
	if len(o.Preempting) != 1 || o.Preempting[0].Pod != "default/urgent" || len(o.Preempting[0].Victims) != 1 || !strings.HasPrefix(o.Preempting[0].Victims[0], "default/full") || o.Preempting[0].Node == "" {
		t.Errorf("preempting are %+v, want urgent in the place of one that fills a node", o.Preempting)
	}
	if o.Placed != 7 || o.Nodes.Nodes != 5 || o.Nodes.Ready != 5 {
		t.Errorf("on nodes are %d pods, want 7; the nodes are %+v", o.Placed, o.Nodes)
	}
}

// TestOrdersSayThatNoOptionHadAPrice where an expander goes by prices and another one chose.
func TestOrdersSayThatNoOptionHadAPrice(t *testing.T) {
	for _, x := range []struct {
		choice autoscaler.Choice
		want   string
	}{
		{autoscaler.Choice{By: "cost"}, ", chosen by cost"},
		{autoscaler.Choice{By: "least-waste", Unpriced: true}, ", chosen by least-waste, no option has a price"},
		{autoscaler.Choice{Unpriced: true}, ", the only option"},
	} {
		if got := (explain.Order{Choice: &x.choice}).String(); !strings.HasSuffix(got, x.want) {
			t.Errorf("the order is %q, want it to end with %q", got, x.want)
		}
	}
}

// TestOverviewNamesGroupsWithoutAPrice when a flag needs prices, 50 of them at most.
func TestOverviewNamesGroupsWithoutAPrice(t *testing.T) {
	for _, x := range []struct {
		expander      string
		consolidation bool
		priced        int // of 61 groups, beside g
		want          string
	}{
		{"least-waste", false, 0, "null"},
		{"cost", false, 60, "null"},
		{"priority,price", false, 59, `{"neededBy":["--expander=priority,price"],"groups":["h59"],"without":1,"of":61}`},
		{"cost,least-waste", true, 59, `{"neededBy":["--expander=cost,least-waste","--consolidation"],"groups":["h59"],"without":1,"of":61}`},
		{"least-waste", true, 59, `{"neededBy":["--consolidation"],"groups":["h59"],"without":1,"of":61}`},
	} {
		p := newHandPlanned(t, func(a *core.Autoscale) { a.Expander, a.Consolidation = x.expander, x.consolidation })
		in := step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Min: 1, Max: 9, Target: 4, Price: 0.4, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}
		for i := range 60 {
			g := nodegroup.Group{ID: fmt.Sprintf("h%02d", i), Max: 9, Template: testkit.Node("h").Alloc("cpu", "4").Obj()}
			if i < x.priced {
				g.Price = 1
			}
			in.Groups = append(in.Groups, g)
		}
		p.step(0, in)
		if got := testkit.Must(json.Marshal(p.View().Overview().Unpriced)); string(got) != x.want {
			t.Errorf("%s, consolidation %t: got %s, want %s", x.expander, x.consolidation, got, x.want)
		}
		for i := range in.Groups {
			in.Groups[i].Price = 0
		}
		p.step(0, in)
		if u := p.View().Overview().Unpriced; x.want != "null" && (len(u.Groups) != 50 || u.Without != 61) {
			t.Errorf("%s: of 61 groups without a price %d are listed and %d counted, want 50 and 61", x.expander, len(u.Groups), u.Without)
		}
	}
}

// TestOverviewSaysWhatIsTooLargeForAllNodeGroups has no nodes, and pods of which one fits an
// empty node of the only group.
func TestOverviewSaysWhatIsTooLargeForAllNodeGroups(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	var gone []step.Input
	for i := range 5 {
		gone = append(gone, step.NodeGone{Name: fmt.Sprint("n", i)})
	}
	p.step(0, gone...)
	p.step(0, step.PodSet{Pod: testkit.Pod("huge").Req("cpu", "500").Obj()}, step.PodSet{Pod: testkit.Pod("wide").Req("cpu", "1", "memory", "20Gi").Obj()}, step.PodSet{Pod: testkit.Pod("small").Req("cpu", "1").Obj()})
	want := `1 Rejected default/wide 1000 : fits no node group: needs 20Gi memory, largest 0
1 Rejected default/huge 1000 : fits no node group: needs 500 cpu, largest 4
1 Rejected default/small 1000 : no nodes available to schedule pods
`
	if got := pendingOf(p.Core); got != want {
		t.Errorf("pending are\n%s\nwant\n%s", got, want)
	}
}

// pendingOf writes the pods that an overview has without a node, a line for each group of them.
func pendingOf(c *core.Core) string {
	var b strings.Builder
	for _, x := range c.View().Overview().Pending {
		since := int64(0)
		if !x.Since.IsZero() {
			since = x.Since.Unix()
		}
		fmt.Fprintf(&b, "%d %s %s %d %s: %s\n", x.Pods, x.State, x.Pod, since, x.Plugin, x.Reason)
	}
	return b.String()
}

// TestOverviewFollowsAPurchase has pods for which nodes are ordered: they wait for these, and the
// overview has what they cost.
func TestOverviewFollowsAPurchase(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	p.step(0, step.PodSet{Pod: testkit.Pod("big-0").Req("cpu", "64").Obj()}, step.PodSet{Pod: testkit.Pod("big-1").Req("cpu", "64").Obj()})
	if p.request == nil {
		t.Fatal("no plan is asked for")
	}
	plan := autoscaler.NewPlan(p.request, 0)
	pods := []types.UID{"pod-big-0", "pod-big-1"}
	plan.ScaleUps = []autoscaler.ScaleUp{{Group: "g", Nodes: 2, Pods: pods, Bins: [][]types.UID{pods[:1], pods[1:]}}}
	p.step(0, step.PlanMade{Plan: plan})
	o := p.View().Overview()
	if len(o.Buying) != 1 || o.Buying[0].Group != "g" || o.Buying[0].Nodes != 2 || o.Buying[0].Pods != 2 || o.Buying[0].Price != 0.8 {
		t.Errorf("being bought is %+v, want 2 nodes of g for 0.8 an hour", o.Buying)
	}
	if got := pendingOf(p.Core); got != "2 NodeComing default/big-0 1000 : g\n" {
		t.Errorf("pending are\n%s", got)
	}
}

// TestOverviewSaysWhichGroupsCoolDown has a node that could go, of a group that has just grown: the
// group is listed until the delay is over.
func TestOverviewSaysWhichGroupsCoolDown(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 0, 5*time.Minute })
	p.step(0, step.PodSet{Pod: testkit.Pod("big").Req("cpu", "64").Obj()})
	p.plan(func(plan *autoscaler.Plan) {
		plan.ScaleUps = []autoscaler.ScaleUp{{Group: "g", Nodes: 1, Pods: []types.UID{"pod-big"}, Bins: [][]types.UID{{"pod-big"}}}}
	})
	candidate := func(plan *autoscaler.Plan) { plan.Removals = []*autoscaler.Removal{{Node: "n4"}} }
	ordered := p.now
	p.step(time.Second)
	p.plan(candidate)
	want := explain.CoolingDown{Group: "g", Nodes: 1, Until: ordered.Add(5 * time.Minute).UTC(),
		Why: "node group g grew at " + ordered.UTC().Format(time.TimeOnly) + " (--scale-down-delay-after-add=5m0s)"}
	if got := p.View().Overview().CoolingDown; len(got) != 1 || got[0] != want {
		t.Errorf("cooling down are %+v, want %+v", got, want)
	}
	p.step(5 * time.Minute)
	if got := p.View().Overview().CoolingDown; len(got) != 0 {
		t.Errorf("when the delay is over, %+v still cool down", got)
	}
}

// TestNodeLinesHaveTheEmptiestFirst compares the lines of nodes that are leaving, could go, stay
// and aren't ready, in this order, and leaves out those beyond a limit.
func TestNodeLinesHaveTheEmptiestFirst(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.UnneededTime = time.Minute })
	p.step(0, step.PodSet{Pod: testkit.Pod("db").Req("cpu", "1", "memory", "4Gi").On("n2").Obj()}, step.PodSet{Pod: testkit.Pod("web").Req("cpu", "1").On("n3").Obj()})
	p.plan(func(plan *autoscaler.Plan) {
		plan.Removals = []*autoscaler.Removal{{Node: "n3"}, {Node: "n4"}}
		plan.Kept = []autoscaler.Kept{{Node: "n0", Reason: autoscaler.KeptNotAutoscaled}, {Node: "n1", Reason: autoscaler.KeptMinSize}, {Node: "n2", Reason: autoscaler.KeptBlockedByPod, Pod: "default/db"}}
	})
	lines, nodes := p.View().NodeLines(100)
	var got strings.Builder
	for _, x := range lines {
		fmt.Fprintf(&got, "%s %s %s %s %.2f %.2f %d %.1f\n", x.Node, x.State, x.Reason, x.Pod, x.CPU.Share(), x.Memory.Share(), x.Pods, x.Price)
	}
	want := `n4 Candidate NotUnneededLongEnough  0.00 0.00 0 0.4
n3 Candidate NotUnneededLongEnough  0.25 0.00 1 0.4
n0 Stays NotAutoscaled  0.00 0.00 0 0.0
n1 Stays NodeGroupMinSizeReached  0.00 0.00 0 0.4
n2 Stays BlockedByPod default/db 0.25 0.50 1 0.4
`
	if got.String() != want || nodes != 5 {
		t.Errorf("%d nodes:\n%s\nwant\n%s", nodes, got.String(), want)
	}
	if lines, nodes := p.View().NodeLines(2); len(lines) != 2 || nodes != 5 || lines[0].Node != "n4" {
		t.Errorf("two lines are %+v of %d", lines, nodes)
	}
	// After its time the empty one is on its way out, and one that isn't ready comes before the rest.
	sick := testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()
	sick.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
	p.step(time.Minute, step.NodeSet{Node: sick, Group: "g"})
	p.plan(func(plan *autoscaler.Plan) { plan.Removals = []*autoscaler.Removal{{Node: "n4"}} })
	if lines, _ := p.View().NodeLines(2); lines[0].Node != "n4" || lines[0].State != explain.NodeLeaving || lines[0].Step != "tainting" || lines[1].Node != "n1" || lines[1].Ready {
		t.Errorf("the first lines are %+v", lines)
	}
	if o := p.View().Overview(); len(o.Leaving) != 1 || o.Leaving[0].Node != "n4" || o.Leaving[0].Step != "tainting" || o.Nodes.NotReady != 1 {
		t.Errorf("leaving are %+v, nodes %+v", o.Leaving, o.Nodes)
	}
}

// TestOverviewWithoutAutoscaling has no states, no money and no purchases.
func TestOverviewWithoutAutoscaling(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	raw, err := json.Marshal(c.View().Overview())
	if err != nil || string(raw) != `{"rules":"1.37","placed":0,"pending":[],"nodes":{"nodes":0,"ready":0}}` {
		t.Errorf("of nothing: %s %v", raw, err)
	}
}
