package observe

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestTheReportOfAShadow is there as soon as the cluster is known, and not of another Berth.
func TestTheReportOfAShadow(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	if code, body := get(t.Context(), s, nil, ShadowPath); code != http.StatusServiceUnavailable {
		t.Errorf("before the cluster is known: %d %s", code, body)
	}
	leader := newLive(t).core
	s.State(leader)
	if code, body := get(t.Context(), s, leader, ShadowPath); code != http.StatusNotFound || !strings.Contains(body, "berth run --shadow") {
		t.Errorf("of a Berth that decides: %d %s", code, body)
	}

	schema := cluster.NewSchema()
	cfg, how := core.DefaultConfig(plugins.Default(schema, plugins.Options{})), core.DefaultShadow()
	scale := core.DefaultAutoscale()
	cfg.Shadow, cfg.Autoscale = &how, &scale
	c := testkit.Must(core.New(schema, cfg))
	now := time.Unix(1000, 0)
	for _, in := range [][]step.Input{
		{step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}, step.PodSet{Pod: testkit.Pod("a").Obj()}, step.PodSet{Pod: testkit.Pod("b").Obj()}},
		{step.PodSet{Pod: testkit.Pod("a").On("n").Obj()}},
		{step.NodeSet{Node: testkit.Node("m").Alloc("cpu", "4").Obj(), Group: "g"}, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 1, Target: 1, Price: 3600}}}},
		{step.NodeGone{Name: "m"}},
	} {
		r := c.Step(now, door.Must(in...)...)
		s.Step(now, time.Millisecond, in, &r)
		now = now.Add(time.Second)
	}
	s.State(c)
	code, body := get(t.Context(), s, c, ShadowPath)
	var r ShadowReport
	if err := json.Unmarshal([]byte(body), &r); err != nil || code != http.StatusOK || r.Compared != 1 || r.Verdicts[step.SameNode] != 1 || r.Waiting != 1 || r.Other.Max != time.Second || r.At.IsZero() ||
		r.Nodes == nil || r.Nodes.Verdicts[step.RemovedOnlyByOther] != 1 || r.Nodes.Cluster.Cost < 0.9 {
		t.Errorf("%d, %v: %s", code, err, body)
	}
	_, metrics := get(t.Context(), s, nil, "/metrics")
	for _, want := range []string{`berth_shadow_pods_total{verdict="same"} 1`, "berth_shadow_waiting_pods 1", `berth_shadow_time_to_place_seconds_sum{by="other"} 1`, `berth_shadow_time_to_place_seconds_count{by="berth"} 1`,
		`berth_shadow_nodes_total{verdict="removedOnlyByOther"} 1`, `berth_shadow_nodes_total{verdict="boughtByBoth"} 0`, `berth_shadow_node_cost{of="berth"} 1`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
}
