package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the example answers in testdata")

// example is a simulated cluster at the end of its run, with its ledger and its series.
type example struct {
	world   *sim.World
	history *observe.History
	series  *api.Series
}

// newExample plays testdata/cluster.yaml.
func newExample(t testing.TB) *example {
	t.Helper()
	runs, err := scenario.Load([]string{filepath.Join("testdata", "cluster.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	x := &example{history: observe.NewHistory(1 << 12), series: api.NewSeries()}
	sampling := drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, _ *step.Ready) {
		if x.world != nil {
			x.series.Add(now, x.world.Core())
		}
	})
	if x.world, err = sim.New(runs[0], sim.Options{Hooks: []drive.Hook{x.history, sampling}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

// now is the virtual time of the end.
func (x *example) now() time.Time { return sim.Epoch.Add(8*time.Minute + 20*time.Second) }

// options returns what an API answers from.
func (x *example) options() api.Options {
	return api.Options{
		Ask:    func(_ context.Context, question func(*core.Core)) bool { question(x.world.Core()); return true },
		Ledger: x.history, Series: x.series, WhatIf: true, Now: x.now,
		Meta: func() v1alpha1.Meta {
			return v1alpha1.Meta{Version: "0.2.0", Revision: "0123abcd", Go: "go1.26.0", Mode: v1alpha1.ModeLive, Leading: true, Identity: "berth-7d9c-x2x4z_0b5c", Leader: "berth-7d9c-x2x4z_0b5c",
				Epoch: "1p3k", Since: sim.Epoch, From: sim.Epoch, Now: x.now(), Provider: "externalgrpc", Currency: "USD", Flags: map[string]string{"cloud-provider": "externalgrpc", "expander": "cost"}}
		},
	}
}

// get asks an API for a path below its prefix.
func get(a http.Handler, path string, change ...func(*http.Request)) (code int, body string) {
	r := httptest.NewRequest(http.MethodGet, api.Prefix+path, nil)
	for _, f := range change {
		r = r.WithContext(r.Context())
		f(r)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// examples are the files of testdata with the paths that they answer.
var examples = []struct{ file, path string }{
	{"meta", "meta"}, {"overview", "overview"}, {"money", "money"}, {"series", "series?step=10s"}, {"series-5m", "series?step=5m"},
	{"nodes", "nodes"}, {"node-stays", "nodes/db-0001"}, {"node-candidate", "nodes/web-0001"}, {"pods", "pods?limit=12"}, {"pods-pending", "pods?state=pending"}, {"pending", "pending"},
	{"pod-waits", "pods/team-b/huge-0"}, {"pod-placed", "pods/default/web-00002"}, {"groups", "groups"}, {"group", "groups/spot"},
	{"podgroups", "podgroups"}, {"devices", "devices"}, {"decisions", "decisions?limit=20"}, {"decision", "decisions/1"},
	{"whatif-remove", "whatif?remove=web-0001"}, {"whatif-like", "whatif?pods=100&like=default/web-00002"}, {"error", "nodes/none"},
}

// shadowReport is what a shadow might have compared.
func shadowReport() *core.ShadowReport {
	at := sim.Epoch.Add(time.Hour)
	pods := core.ShadowPods{
		Since: sim.Epoch, Until: at, Compared: 1000, Verdicts: map[step.Verdict]int{step.SameNode: 600, step.EquallyGood: 380, step.Worse: 19, step.NotAllowed: 1, step.OnlyBerth: 2},
		Short: 5000, Overtaken: 4, JudgedAgain: 3, Waiting: 1,
		Other: core.ShadowQuantiles{Pods: 1000, P50: 20 * time.Millisecond, P90: 30 * time.Millisecond, P99: time.Second, Max: 2 * time.Second},
		Berth: core.ShadowQuantiles{Pods: 900, P50: time.Millisecond, P90: 2 * time.Millisecond, P99: 5 * time.Millisecond, Max: 10 * time.Millisecond},
		Differences: []step.Comparison{
			{Time: at, Pod: "team-b/night-0", Verdict: step.NotAllowed, Node: "web-0001", BerthNode: "batch-0001", BerthScore: 300, Took: 20 * time.Millisecond, Plugin: "TaintToleration", Reason: "node(s) had untolerated taint(s)"},
			{Time: at, Pod: "default/web-00002", Verdict: step.Worse, Node: "web-0001", Score: 100, BerthNode: "web-0002", BerthScore: 300, Took: 40 * time.Millisecond,
				Scores: []engine.PluginScore{{Plugin: "NodeAffinity", Score: 0}, {Plugin: "ImageLocality", Score: 100}}, BerthScores: []engine.PluginScore{{Plugin: "NodeAffinity", Score: 200}, {Plugin: "ImageLocality", Score: 100}},
				Earlier: &step.Earlier{Node: "web-0002", Took: time.Millisecond, Fits: true}},
		},
	}
	e := &pods.Earlier
	e.Decided, e.Same, e.Equal, e.Better, e.Worse, e.NoMore, e.NoNode, e.NotYet = 900, 700, 150, 40, 8, 2, 10, 90
	return &core.ShadowReport{ShadowPods: pods,
		Nodes: &core.ShadowNodes{Since: sim.Epoch, Verdicts: map[step.NodeVerdict]int{step.BoughtByBoth: 7, step.BoughtOnlyByBerth: 2, step.RemovedByBoth: 4}, Buying: 1, Again: 3, BoughtAhead: 9 * time.Second,
			Cluster: core.ShadowHours{Hours: 100, Cost: 50}, Berth: core.ShadowHours{Hours: 90.5, Cost: 40},
			Differences: []step.NodeComparison{{Time: at, Verdict: step.BoughtOnlyByBerth, Group: "batch", Nodes: 2, Price: 1.6, Wished: at.Add(-15 * time.Minute), Pods: []string{"team-b/night-0", "default/etl-0"}, Reason: "the group didn't grow"}}},
	}
}

// TestShadowExample is what a shadow's report is as the API has it, for somebody who may read the pods of one
// namespace.
func TestShadowExample(t *testing.T) {
	shadow := api.ShadowOf(shadowReport(), func(pod string) string {
		if strings.HasPrefix(pod, "team-b/") {
			return ""
		}
		return pod
	})
	shadow.At = sim.Epoch.Add(time.Hour)
	pretty := string(testkit.Must(json.MarshalIndent(shadow, "", "  "))) + "\n"
	testkit.Generated(t, filepath.Join("testdata", "shadow.json"), pretty, "go test ./edge/api -rewrite", *rewrite)
	if strings.Contains(pretty, "night-0") || shadow.Hidden != 1 || len(shadow.Differences) != 1 {
		t.Errorf("a pod is named whose namespace may not be read, or isn't counted:\n%s", pretty)
	}
}

// TestStreamExample is what a viewer is sent who comes back to the leader after decision 40, and stays until it
// ends.
func TestStreamExample(t *testing.T) {
	o, ended := newExample(t).options(), make(chan struct{})
	close(ended)
	o.Ended = ended
	r := httptest.NewRequest(http.MethodGet, api.Prefix+"stream", nil)
	r.Header.Set("Last-Event-ID", "1p3k.40")
	w := httptest.NewRecorder()
	api.New(o).ServeHTTP(w, r)
	testkit.Generated(t, filepath.Join("testdata", "stream.txt"), w.Body.String(), "go test ./edge/api -rewrite", *rewrite)
	for _, want := range []string{"id: 1p3k.43\nevent: decisions\n", "id: 1p3k.43\nevent: overview\n", "event: end\n"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("there is no %q in\n%s", want, w.Body)
		}
	}
}

// TestExamples answers each path for the simulated cluster, and compares with testdata: what the web page and
// the documentation are made from.
func TestExamples(t *testing.T) {
	a := api.New(newExample(t).options())
	for _, x := range examples {
		code, body := get(a, x.path)
		if want := http.StatusOK; code != want && x.file != "error" {
			t.Errorf("%s: got %d %s", x.path, code, body)
			continue
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(body), "", "  "); err != nil {
			t.Fatal(err)
		}
		testkit.Generated(t, filepath.Join("testdata", x.file+".json"), strings.TrimSpace(pretty.String())+"\n", "go test ./edge/api -rewrite", *rewrite)
	}
}
