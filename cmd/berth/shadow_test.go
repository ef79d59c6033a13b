package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/observe"
)

// shadowReport returns the output of berth shadow report.
func shadowReport(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := shadowCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"report"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// exampleReport is a report with differences of each kind.
func exampleReport() *observe.ShadowReport {
	at := time.Unix(1e9, 0).UTC()
	return &observe.ShadowReport{At: at.Add(time.Hour), ShadowReport: core.ShadowReport{Nodes: exampleNodes(at), ShadowPods: core.ShadowPods{
		Since: at, Until: at.Add(time.Minute), Compared: 1000, Doubted: 1, Overtaken: 4, Short: 1200, Waiting: 2, JudgedAgain: 3,
		Verdicts: map[step.Verdict]int{step.SameNode: 600, step.EquallyGood: 380, step.Worse: 19, step.NotAllowed: 1, step.OnlyBerth: 5},
		Other:    core.ShadowQuantiles{Pods: 900, P50: 20 * time.Millisecond, P90: 30 * time.Millisecond, P99: time.Second, Max: 2 * time.Second},
		Berth:    core.ShadowQuantiles{Pods: 900, P50: time.Microsecond, P90: time.Microsecond, P99: 5 * time.Millisecond, Max: 10 * time.Millisecond},
		Differences: []step.Comparison{
			{Time: at, Pod: "shop/a", Verdict: step.NotAllowed, Node: "n1", BerthNode: "n2", BerthScore: 300, Plugin: "TaintToleration", Reason: "node(s) had untolerated taint(s)",
				Earlier: &step.Earlier{Why: "0/3 nodes are available", Took: 2 * time.Millisecond}},
			{Time: at, Pod: "shop/<b>", Verdict: step.Worse, Node: "n1", Score: 100, BerthNode: "n2", BerthScore: 300, Took: 40 * time.Millisecond,
				Scores: []engine.PluginScore{{Plugin: "NodeAffinity", Score: 0}, {Plugin: "ImageLocality", Score: 100}}, BerthScores: []engine.PluginScore{{Plugin: "NodeAffinity", Score: 200}, {Plugin: "ImageLocality", Score: 100}},
				Earlier: &step.Earlier{Node: "n2", Fits: true}},
			{Time: at, Pod: "shop/c", Verdict: step.OnlyBerth, BerthNode: "n3", Reason: "the pod was deleted", Earlier: &step.Earlier{Node: "n3"}},
		}}}}
}

// exampleNodes is what the example says about nodes.
func exampleNodes(at time.Time) *core.ShadowNodes {
	return &core.ShadowNodes{Since: at, Buying: 1, Removing: 2, Early: 1, Again: 3, BoughtAhead: 9 * time.Second, RemovedAhead: time.Minute,
		Verdicts: map[step.NodeVerdict]int{step.BoughtByBoth: 7, step.BoughtOnlyByBerth: 2, step.RemovedByBoth: 4, step.RemovedOnlyByOther: 1},
		Cluster:  core.ShadowHours{Hours: 100, Cost: 50}, Berth: core.ShadowHours{Hours: 90.5, Cost: 40}, Unpriced: []string{"free"},
		Differences: []step.NodeComparison{
			{Time: at, Verdict: step.BoughtOnlyByBerth, Group: "big", Nodes: 2, Price: 1.5, Wished: at.Add(-15 * time.Minute), Pods: []string{"shop/a", "shop/<b>"}, Reason: "the group didn't grow"},
			{Time: at, Verdict: step.RemovedOnlyByOther, Group: "free", Nodes: 1, Node: "n7", Reason: "it is gone"},
		}}
}

// TestShadowReport asks a shadow, and reads a file, in each format.
func TestShadowReport(t *testing.T) {
	example := api.ShadowOf(&exampleReport().ShadowReport, func(pod string) string { return pod })
	example.At = exampleReport().At
	raw, err := json.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != api.Prefix+"shadow" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(raw)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "shadow.json")
	asked, err := shadowReport(t, "--server", server.URL, "--insecure-skip-tls-verify", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(asked), 0o600); err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string][]string{
		"text": {
			"the node that Berth chooses, or had chosen                                       600   60.0 %",
			"agreement: same or equally good node                        98.0 %", "placements allowed by Berth's rules                         99.9 %",
			"other scheduler (bound)  900   20ms  30ms  1s   2s", "Berth (decided)          900   <1ms  <1ms  5ms  10ms",
			"1. 01:46:40.000  shop/a was placed on n1, which is not allowed; Berth chooses n2 (300)\n    TaintToleration: node(s) had untolerated taint(s)\n    Berth had found no node after 2ms: 0/3 nodes are available\n",
			"2. 01:46:40.000  shop/<b> was placed on n1 (100); Berth chooses n2 (300)\n    NodeAffinity gives n1 0 and n2 200\n    Berth had chosen n2 after <1ms; the other scheduler's binding was observed after 40ms\n",
			"3. 01:46:40.000  shop/c was placed only by Berth, on n3\n    the pod was deleted\n",
			"note: the provider has no price for free", "  actual cluster     100.00      50.00\n  Berth (estimated)  90.50       40.00\n",
			" 1. 01:46:40.000  Berth would have added 2 of big, $1.50/h\n    at 01:31:40, for shop/a, shop/<b> and possibly others\n    the group didn't grow\n 2. 01:46:40.000  the other autoscaler removed n7 of free\n    it is gone\n", "note: 4 of the worse nodes may have been good choices", "note: 1 placement being judged again"},
		"html":                  {"agreement: same or equally good node                        98.0 %", "shop/&lt;b&gt; was placed on n1 (100)", "for shop/a, shop/&lt;b&gt; and possibly others", "default-src &#39;none&#39;", `"shadow":{"at":`},
		"json":                  {`"kind": "Shadow"`, `"compared": 1000`, `"verdict": "notAllowed"`, `"verdict": "boughtOnlyByBerth"`},
		"jsonpath={.agreement}": {"0.98"},
	} {
		got, err := shadowReport(t, "--file", file, "--output", output)
		if err != nil {
			t.Errorf("%s: %v", output, err)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got\n%s\nwant …%s…", output, got, w)
			}
		}
	}
}

// TestEarlierReportsAreRead: those that versions before the API have saved.
func TestEarlierReportsAreRead(t *testing.T) {
	raw, err := json.Marshal(exampleReport())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shadow.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := shadowReport(t, "--file", file); err != nil || !strings.Contains(got, "98.0 %") {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestShadowReportRefuses what it can't read, and says what would do.
func TestShadowReportRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error": "this Berth is no shadow"}`))
	}))
	defer server.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--output=table"}, `--output is "table"; it must be text, html, json, yaml,`},
		{[]string{"--file", filepath.Join(dir, "gone")}, "it must be the path of a report saved with berth shadow report -o json"},
		{[]string{"--file", write("text", "What another scheduler did")}, "it must be one saved with berth shadow report -o json"},
		{[]string{"--file", write("other", `{"at": "2026-01-01T00:00:00Z"}`)}, "it has no time or no verdicts"},
		{[]string{"--server", server.URL, "--insecure-skip-tls-verify"}, "this Berth is no shadow"},
	} {
		if _, err := shadowReport(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want …%s…", c.args, err, c.want)
		}
	}
}
