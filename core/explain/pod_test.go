package explain_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestExplainsPodsOfOthers shows that a pod is accounted for also when its place is
// not Berth's business, or its node isn't known.
func TestExplainsPodsOfOthers(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	other := func(name string) *testkit.PodBuilder {
		p := testkit.Pod(name)
		p.Spec.SchedulerName = "anothr"
		return p
	}
	c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()},
		step.PodSet{Pod: other("waits").Obj()},
		step.PodSet{Pod: other("placed").On("n1").Obj()},
		step.PodSet{Pod: testkit.Pod("early").On("unknown").Obj()})...)
	for _, x := range []struct{ pod, outcome, node, message string }{
		{"waits", "Waits", "", `its schedulerName is "anothr"; the profiles here are default-scheduler`},
		{"placed", "Placed", "n1", ""},
		{"early", "Placed", "unknown", ""},
	} {
		got, ok := c.View().Explain("default", x.pod)
		if !ok || got.Outcome != x.outcome || got.Node != x.node || got.Message != x.message {
			t.Errorf("%s: explained as %+v (%v)", x.pod, got, ok)
		}
	}
	c.Step(time.Unix(2, 0), door.Must(step.PodGone{UID: "pod-waits"})...)
	if got, ok := c.View().Explain("default", "waits"); ok {
		t.Errorf("a pod that is gone is explained as %+v", got)
	}
}

// TestExplainsWhatRejectsAllNodesAtOnce asks about a pod whose claim doesn't exist.
func TestExplainsWhatRejectsAllNodesAtOnce(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "2").Obj()}, step.NodeSet{Node: testkit.Node("n2").Alloc("cpu", "2").Obj()},
		step.PodSet{Pod: testkit.Pod("p").Uses("none").Obj()})...)
	x, ok := c.View().Explain("default", "p")
	if want := `VolumeRestrictions: 2 persistentvolumeclaim "none" not found; `; !ok || whyText(x.Reasons) != want {
		t.Errorf("rejected by %s, want %s", whyText(x.Reasons), want)
	}
}

// TestLedgerSaysHowAndWhyNot follows one pod that gets a node, and one that
// doesn't, into the ledger and the explanation.
func TestLedgerSaysHowAndWhyNot(t *testing.T) {
	schema := cluster.NewSchema()
	profile := plugins.Default(schema, plugins.Options{})
	c, err := core.New(schema, core.DefaultConfig(profile))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("small").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()},
		step.NodeSet{Node: testkit.Node("large").Alloc("cpu", "8", "memory", "32Gi", "pods", "10").Obj()},
		step.NodeSet{Node: testkit.Node("closed").Alloc("cpu", "64", "memory", "99Gi", "pods", "10").Taint("only", "gpus", "NoSchedule").Obj()},
		step.PodSet{Pod: testkit.Pod("fits").Req("cpu", "1").Obj()},
		step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "9").Obj()})...)
	placed := r.Decisions[0]
	sum := int64(0)
	for _, s := range placed.Scores {
		sum += s.Score
	}
	if placed.Kind != step.Placed || placed.Node != "large" || sum != placed.Score || sum == 0 {
		t.Errorf("the scores %v make up %d of %+v", placed.Scores, sum, placed)
	}
	if placed.RunnerUp == nil || placed.RunnerUp.Node != "small" || placed.RunnerUp.Score >= placed.Score {
		t.Errorf("the runner-up is %+v, of a choice with %d", placed.RunnerUp, placed.Score)
	}
	if placed.Position != 3 { // the three nodes
		t.Errorf("decided at position %d", placed.Position)
	}
	waits := r.Decisions[1]
	want := []step.Why{
		{Plugin: "TaintToleration", Message: "node(s) had untolerated taint(s)", Nodes: 1},
		{Plugin: "NodeResourcesFit", Message: "Insufficient cpu", Nodes: 2, Short: &step.Shortfall{Resource: "cpu", Needed: 9000, Available: 7000, Node: "large"}},
	}
	if waits.Kind != step.Waits || whyText(waits.Rejected) != whyText(want) {
		t.Errorf("rejected by %s, want %s", whyText(waits.Rejected), whyText(want))
	}
	x, ok := c.View().Explain("default", "waits")
	if !ok || x.Outcome != "Waits" || fmt.Sprint(x.Relax) != "[{NodeResourcesFit 2} {TaintToleration 1}]" {
		t.Errorf("explained as %+v", x)
	}
	var plugins []string
	for _, w := range x.WaitsFor {
		plugins = append(plugins, w.Plugin)
	}
	if got := strings.Join(plugins, " "); got != "TaintToleration NodeResourcesFit" {
		t.Errorf("waits for changes that concern %s", got)
	}
}

func whyText(list []step.Why) string {
	var b strings.Builder
	for _, w := range list {
		fmt.Fprintf(&b, "%s: %d %s", w.Plugin, w.Nodes, w.Message)
		if w.Short != nil {
			fmt.Fprintf(&b, " (%+v)", *w.Short)
		}
		b.WriteString("; ")
	}
	return b.String()
}

// TestRejectingPluginsSayWhatWakes looks at all plugins of the default profile.
func TestRejectingPluginsSayWhatWakes(t *testing.T) {
	onlyScore := map[string]bool{"NodeResourcesBalancedAllocation": true, "ImageLocality": true}
	for _, p := range plugins.Default(cluster.NewSchema(), plugins.Options{}).Plugins {
		k, ok := p.Plugin.(framework.Waker)
		if ok == onlyScore[p.Name()] || ok && k.WakesWhen() == "" {
			t.Errorf("%s says what wakes a pod: %v", p.Name(), ok)
		}
	}
}

// TestExplainSaysWhyAGroupHasNoTemplate has a provider that can't say what the nodes of a group
// look like: that is what there is to say about the group, not what such nodes would lack.
func TestExplainSaysWhyAGroupHasNoTemplate(t *testing.T) {
	c := newCore(t, autoscaling(func(*core.Autoscale) {}))
	c.Step(time.Unix(1, 0), door.Must(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1").Obj()},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 3, TemplateError: "no such machine type"}}})...)
	x, _ := c.View().Explain("default", "p")
	want := []explain.GroupAnswer{{Group: "g", Answer: explain.Limited, Reasons: []string{"template error"}, Detail: "no such machine type"}}
	if x.Scaling == nil || !reflect.DeepEqual(x.Scaling.Groups, want) {
		t.Errorf("groups are explained as %+v, want %+v", x.Scaling, want)
	}
}

// TestAPlacedPodIsComparedWithOtherNodes, though its own object names the node that it is on.
func TestAPlacedPodIsComparedWithOtherNodes(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()},
		step.NodeSet{Node: testkit.Node("n2").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()},
		step.NodeSet{Node: testkit.Node("n3").Alloc("cpu", "100m", "memory", "8Gi", "pods", "10").Obj()},
		step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1").On("n1").Obj()})...)
	x, ok := c.View().Explain("default", "p")
	if !ok || x.Node != "n1" || len(x.Candidates) != 2 || x.Candidates[0].Node != "n2" || x.Candidates[1].Node != "n1" || len(x.Reasons) != 1 || x.Reasons[0].Message != "Insufficient cpu" || x.Reasons[0].Nodes != 1 {
		t.Errorf("explained as %+v (%v); want n2 before n1, and n3 too small", x, ok)
	}
}
