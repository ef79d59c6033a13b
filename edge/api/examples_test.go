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
