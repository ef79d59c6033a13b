package ui_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/chromedp/chromedp"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	state "github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim"
)

// shadow is the page in front of a shadow. The test plays the cluster and its scheduler.
type shadow struct {
	*site
	clock atomic.Int64 // seconds since sim.Epoch
}

// newShadow serves a shadow that has seen some nodes, one of them with a taint, and a node group.
func newShadow(t *testing.T) *shadow {
	t.Helper()
	schema := state.NewSchema()
	cfg, how, scale := core.DefaultConfig(plugins.Default(schema, plugins.Options{})), core.DefaultShadow(), core.DefaultAutoscale()
	cfg.Shadow, cfg.Autoscale = &how, &scale
	s := &shadow{site: &site{core: testkit.Must(core.New(schema, cfg)), history: observe.NewHistory(1 << 12)}}
	node := func(name, cpu string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", cpu, "memory", "64Gi", "pods", "10").Label(v1.LabelHostname, name)
	}
	s.step(step.NodeSet{Node: node("small", "4").Obj(), Group: "general"}, step.NodeSet{Node: node("big", "16").Obj()}, step.NodeSet{Node: node("tainted", "64").Taint("only", "others", v1.TaintEffectNoSchedule).Obj()},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "general", Max: 3, Target: 1, Price: 0.4}}})
	s.serve(t, api.NewSeries(), s.now)
	return s
}

func (s *shadow) now() time.Time { return sim.Epoch.Add(time.Duration(s.clock.Load()) * time.Second) }

// step gives inputs to the shadow, and has 5 seconds pass.
func (s *shadow) step(in ...step.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	ready := s.core.Step(now, door.Must(in...)...)
	s.history.Step(now, 0, in, &ready)
	s.clock.Add(5)
}

// bind has a pod come, and the other scheduler bind it to a node a while later.
func (s *shadow) bind(pod, node string) {
	build := func() *testkit.PodBuilder { return testkit.Pod(pod).Req("cpu", "2", "memory", "1Gi") }
	s.step(step.PodSet{Pod: build().Obj()})
	s.step(step.PodSet{Pod: build().On(node).Obj()})
	for range 6 { // one that isn't allowed is judged five times more
		s.step()
	}
}

// TestALiveShadow: the page of a shadow that runs says what was compared, and goes on with what is compared while it is open.
func TestALiveShadow(t *testing.T) {
	s := newShadow(t)
	s.bind("web-1", "big")
	s.bind("web-2", "small")
	s.bind("web-3", "tainted")
	ctx, cancel := context.WithTimeout(browser(t, s.URL), 2*time.Minute)
	defer cancel()
	lookAt(t, ctx, s.URL+"/ui/", []look{{"shadow", "#/shadow", "main ol.items"}})
	var first, tabs, facts, more string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s.site, "#/shadow", "main ol.items"), chromedp.Text("main", &first, chromedp.ByQuery), chromedp.Text(".tabs", &tabs, chromedp.ByQuery), chromedp.Text(".facts", &facts, chromedp.ByQuery),
		chromedp.ActionFunc(func(context.Context) error { s.bind("web-4", "tainted"); return nil }),
		chromedp.WaitVisible(`//main//li[contains(.,"default/web-4")]`), chromedp.Text("main", &more, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of 3 pods", "1 not allowed", "default/web-3 was placed on tainted, which is not allowed", "TaintToleration", "default/web-2 was placed on small", "Nodes added since"} {
		if !strings.Contains(first, want) {
			t.Errorf("the shadow's page has no %q:\n%s", want, first)
		}
	}
	if !strings.Contains(more, "of 4 pods") || !strings.Contains(more, "2 not allowed") {
		t.Errorf("after another binding it says:\n%s", more)
	}
	if !strings.Contains(facts, "shadow") || !strings.Contains(tabs, "Pending") {
		t.Errorf("it is called %q, with the pages %q", facts, tabs)
	}
}

// TestNotAShadow: a Berth that decides has no such page, and its address says so.
func TestNotAShadow(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	var tabs, text string
	if err := chromedp.Run(ctx, show(s, "#/shadow", "main a"), chromedp.Text(".tabs", &tabs, chromedp.ByQuery), chromedp.Text("main", &text, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(tabs, "Shadow") || !strings.Contains(text, "There is no such page") {
		t.Errorf("with the pages %q it says %q", tabs, text)
	}
}
