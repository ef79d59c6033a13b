package plugins_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/core/plugins/schedulinggates"
	"github.com/berthproject/berth/core/plugins/topologyplacement"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// weighted lists the plugins of a profile with the weights of those that score.
func weighted(p *framework.Profile) string {
	var out []string
	for _, w := range p.Plugins {
		text := w.Name()
		if w.Weight != 0 {
			text += fmt.Sprint("=", w.Weight)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// The default profile is kube-scheduler's.
func TestDefaultProfile(t *testing.T) {
	const between = " TaintToleration=3 NodeAffinity=2 NodePorts NodeResourcesFit=1 VolumeRestrictions NodeVolumeLimits "
	const rest = " VolumeZone PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=1 NodeDeclaredFeatures TopologyPlacementGenerator"
	for v, want := range map[compat.Version]string{
		compat.V36: "NodeUnschedulable NodeName" + between + "VolumeBinding" + rest,
		compat.V37: "NodeName NodeUnschedulable" + between + "VolumeBinding=1" + rest,
	} {
		if got := weighted(plugins.Default(cluster.SchemaFor(v), plugins.Options{})); got != want {
			t.Errorf("plugins of %s:\n got  %s\n want %s", v, got, want)
		}
	}
	p := plugins.Default(cluster.NewSchema(), plugins.Options{})
	if p.SchedulerName != v1.DefaultSchedulerName || p.BindTimeout != 10*time.Minute {
		t.Errorf("scheduler name %q, bind timeout %v, want %q and 10m", p.SchedulerName, p.BindTimeout, v1.DefaultSchedulerName)
	}
	if len(p.Gates) != 2 || p.Preempter == nil || p.Less == nil || p.Extenders != nil {
		t.Errorf("gates %d, preempter %v, extenders %d, want two, one and none; and an order", len(p.Gates), p.Preempter, len(p.Extenders))
	}
}

func TestOptions(t *testing.T) {
	build := func(o plugins.Options) *framework.Profile { return plugins.Default(cluster.NewSchema(), o) }
	if p := build(plugins.Options{SchedulerName: "batch", BindTimeout: time.Second}); p.SchedulerName != "batch" || p.BindTimeout != time.Second {
		t.Errorf("scheduler name %q, bind timeout %v, want batch and 1s", p.SchedulerName, p.BindTimeout)
	}
	if p := build(plugins.Options{NoGates: true, NoClaimGate: true}); len(p.Gates) != 0 || p.Preempter == nil {
		t.Errorf("NoGates and NoClaimGate: gates %d, preempter %v", len(p.Gates), p.Preempter)
	}
	if p := build(plugins.Options{NoClaimGate: true}); len(p.Gates) != 1 || p.Gates[0] != (schedulinggates.Plugin{}) {
		t.Errorf("NoClaimGate: gates %v, want that for scheduling gates", p.Gates)
	}
	if p := build(plugins.Options{NoPreemption: true}); len(p.Gates) != 2 || p.Preempter != nil {
		t.Errorf("NoPreemption: gates %d, preempter %v", len(p.Gates), p.Preempter)
	}
	p := build(plugins.Options{Rules: []plugins.Rule{{Name: "NodeName", Filters: true}, {Name: "Unknown", Filters: true}, {Name: "ImageLocality", Weight: 7}}})
	if got := weighted(p); got != "NodeName ImageLocality=7 TopologyPlacementGenerator" {
		t.Errorf("rules: %s, want NodeName, ImageLocality=7 and what every profile has", got)
	}
	p = build(plugins.Options{Rules: []plugins.Rule{}, Extenders: []framework.Extender{{Filters: true}}})
	if got := weighted(p); got != "TopologyPlacementGenerator Extender" || len(p.Extenders) != 1 {
		t.Errorf("with an extender: %s, %d extenders, want what every profile has, Extender, and one", got, len(p.Extenders))
	}
}

// only is the one plugin of a profile with these options.
func only(name string, o plugins.Options) rt.Make {
	return func(schema *cluster.Schema) framework.Plugin {
		o.Rules = []plugins.Rule{{Name: name, Filters: true, Weight: 1}}
		return plugins.Default(schema, o).Plugins[0].Plugin
	}
}

// Each argument reaches its plugin: with it the node scores, or is rejected, as it
// wouldn't be without.
func TestArgumentsReachTheirPlugins(t *testing.T) {
	ssd := &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd"}}}}}}}
	cpu := []noderesources.ResourceWeight{{Name: "cpu", Weight: 1}}
	nodes := rt.Nodes{testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi"), testkit.Node("m").Alloc("cpu", "4", "memory", "8Gi")}
	needs := testkit.Pod("x").Together(v1.LabelHostname, "app", "web").On("n")
	web := testkit.Pod("p").Label("app", "web")
	all := func(answer string) rt.Want { return rt.Want{rt.All: answer} }
	rt.Table{Nodes: nodes, Cases: []rt.Case{
		{Name: "Fit: default", Plugin: only("NodeResourcesFit", plugins.Options{}), Pod: testkit.Pod("p").Req("cpu", "1", "memory", "4Gi"), Want: all("62")},
		{Name: "Fit", Plugin: only("NodeResourcesFit", plugins.Options{Fit: noderesources.FitArgs{Strategy: noderesources.MostAllocated, Resources: cpu}}), Pod: testkit.Pod("p").Req("cpu", "1", "memory", "4Gi"), Want: all("25")},
		{Name: "Balanced: default", Plugin: only("NodeResourcesBalancedAllocation", plugins.Options{}), Pod: testkit.Pod("p").Req("cpu", "4"), Want: all("50")},
		{Name: "Balanced", Plugin: only("NodeResourcesBalancedAllocation", plugins.Options{Balanced: cpu}), Pod: testkit.Pod("p").Req("cpu", "4"), Want: all("75")},
		{Name: "Affinity: default", Plugin: only("InterPodAffinity", plugins.Options{}), Pod: web, Pods: rt.Pods{needs}, Want: rt.Want{"n": "100 raw 1", "m": "0 raw 0"}},
		{Name: "Affinity", Plugin: only("InterPodAffinity", plugins.Options{Affinity: &interpodaffinity.Args{HardPodAffinityWeight: 9}}), Pod: web, Pods: rt.Pods{needs}, Want: rt.Want{"n": "100 raw 9", "m": "0 raw 0"}},
	}}.Score(t)
	spread := podtopologyspread.Args{List: true, Constraints: []v1.TopologySpreadConstraint{{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule}}}
	rt.Table{Nodes: nodes, Cases: []rt.Case{
		{Name: "Spread", Plugin: only("PodTopologySpread", plugins.Options{Spread: spread}), Pod: web, Objects: rt.Objects{testkit.Service("s", "app", "web")},
			Want: all("Final: node(s) didn't match pod topology spread constraints (missing required label)")},
		{Name: "AddedAffinity", Plugin: only("NodeAffinity", plugins.Options{AddedAffinity: ssd}), Pod: web, Want: all("Final: node(s) didn't match scheduler-enforced node affinity")},
	}}.Filter(t)
}

// A plugin that is enabled for scores only rejects nothing.
func TestRulesThatOnlyScore(t *testing.T) {
	scores := func(schema *cluster.Schema) framework.Plugin {
		return plugins.Default(schema, plugins.Options{Rules: []plugins.Rule{{Name: "TaintToleration", Weight: 1}}}).Plugins[0].Plugin
	}
	rt.Table{Nodes: rt.Nodes{testkit.Node("n").Taint("k", "", v1.TaintEffectNoSchedule)}, Cases: []rt.Case{
		{Name: "enabled for filters", Plugin: only("TaintToleration", plugins.Options{}), Pod: testkit.Pod("p"), Want: rt.Want{"n": "Final: node(s) had untolerated taint(s)"}},
		{Name: "enabled for scores", Plugin: scores, Pod: testkit.Pod("p"), Want: rt.Want{"n": rt.OK}},
	}}.Filter(t)
}

// Every plugin of the default profile that filters says what wakes a pod that it
// rejected, and no other does.
func TestPluginsThatFilterSayWhatWakes(t *testing.T) {
	filters := map[string]bool{}
	for _, r := range plugins.DefaultRules(compat.Newest) {
		filters[r.Name] = r.Filters
	}
	filters[topologyplacement.Name] = true // part of every profile
	for _, p := range plugins.Default(cluster.NewSchema(), plugins.Options{}).Plugins {
		w, says := p.Plugin.(framework.Waker)
		if says != filters[p.Name()] || says && w.WakesWhen() == "" {
			t.Errorf("%s: says what wakes %v, filters %v", p.Name(), says, filters[p.Name()])
		}
	}
}
