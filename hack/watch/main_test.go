package main

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in deploy/chart/files")

// TestDeployHasWhatTheListGives keeps the dashboard and the alerts current, with every metric of
// the list in the dashboard.
func TestDeployHasWhatTheListGives(t *testing.T) {
	list := observe.NewMetrics().List()
	files, err := generate(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		testkit.Generated(t, filepath.Join("..", "..", "deploy", "chart", "files", name), string(text), "go run ./hack/watch", *rewrite)
	}
	for _, m := range list {
		if !strings.Contains(string(files["grafana-dashboard.json"]), m.Name) {
			t.Errorf("%s isn't on the dashboard", m.Name)
		}
	}
}

// TestExpressionsOverUnknownMetricsAreRefused takes one metric out of the list.
func TestExpressionsOverUnknownMetricsAreRefused(t *testing.T) {
	list := observe.NewMetrics().List()
	for i := range list {
		if list[i].Name != "cluster_autoscaler_nodes_count" {
			continue
		}
		_, err := generate(append(append([]observe.Metric(nil), list[:i]...), list[i+1:]...))
		if err == nil || !strings.Contains(err.Error(), "is over cluster_autoscaler_nodes_count, which isn't in the list") {
			t.Errorf("got %v", err)
		}
	}
	if m := find(list, "scheduler_pending_pods_bucket"); m != nil {
		t.Errorf("a gauge is taken for a histogram: %v", m)
	}
}
