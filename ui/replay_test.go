package ui_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/ui"
)

// newReplay serves what berth ui --file shows of the cluster, with a run laid over it in which a Job comes earlier.
func newReplay(t *testing.T) *httptest.Server {
	t.Helper()
	return newReplayOf(t, cluster)
}

// newReplayOf is newReplay with the scenario of another file.
func newReplayOf(t *testing.T, cluster string) *httptest.Server {
	t.Helper()
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "earlier.yaml")
	if err := os.WriteFile(other, []byte(strings.NewReplacer("name: example\n", "name: earlier\n", "after: 7m30s", "after: 3m").Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	answers, err := page.Offline(t.Context(), cluster, []string{other}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(api.Prefix, answers)
	mux.Handle("/ui/", http.StripPrefix("/ui", ui.Handler()))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// pending waits until the page Now says that so many pods are pending.
func pending(n string) chromedp.Action {
	return chromedp.WaitVisible(`//a[contains(@class, "stat")][.//span[text()="Pending pods"]][.//span[contains(@class, "value")][text()="` + n + `"]]`)
}

// TestReplay goes through the time of a run by the address and by keys: the page shows the cluster as it was, and
// the address has the time.
func TestReplay(t *testing.T) {
	s := newReplay(t)
	ctx := browser(t, s.URL)
	var begin, end, before, pages string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900),
		open(s.URL+"/ui/#/now?t=6m0s", ".scrubber"), pending("1"), // of team-b/huge-0, which came after 5 minutes
		chromedp.Focus(".scrubber input", chromedp.ByQuery), press(kb.Home), pending("0"), chromedp.Location(&begin),
		press(kb.End), pending("5"), chromedp.Location(&end),
		press(","), chromedp.Sleep(300*time.Millisecond), chromedp.Location(&before),
		chromedp.Navigate(s.URL+"/ui/#/now?t=6m0s"), pending("1"),
		chromedp.AttributeValue(`//nav//a[text()="Decisions"]`, "href", &pages, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(begin, "?t=0s") || strings.Contains(end, "t=") || !strings.Contains(before, "?t=") {
		t.Errorf("Home, End and , go to %s, %s and %s", begin, end, before)
	}
	if pages != "#/decisions?t=6m0s" {
		t.Errorf("the time is lost on the way to %s", pages)
	}
}

// TestADecisionsKindIsAskedForAgain: a run stands still, and what was asked for before is shown again after all decisions
// were.
func TestADecisionsKindIsAskedForAgain(t *testing.T) {
	s := newReplay(t)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	chosen := func(kind string) chromedp.Action {
		return chromedp.Evaluate(`location.hash = "#/decisions`+kind+`"; 0`, nil)
	}
	const rows = `document.querySelectorAll("[role=table] .body-row").length`
	var first, again int
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900), open(s.URL+"/ui/#/decisions?kind=Placed", ".body-row"), chromedp.Evaluate(rows, &first),
		chosen(""), chromedp.Sleep(500*time.Millisecond), chosen("?kind=Placed"), chromedp.Sleep(500*time.Millisecond), chromedp.Evaluate(rows, &again))
	if err != nil {
		t.Fatal(err)
	}
	if first == 0 || again != first {
		t.Errorf("there are %d decisions of a kind, and %d after all were shown", first, again)
	}
}

// TestPlaying: p plays the run from its beginning to its end, and every change on the way is one of the run's.
func TestPlaying(t *testing.T) {
	s := newReplay(t)
	ctx := browser(t, s.URL)
	var hash string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900), open(s.URL+"/ui/#/now", ".scrubber"), pending("5"),
		chromedp.SetValue(".scrubber select", "15", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector(".scrubber select").dispatchEvent(new Event("change", { bubbles: true })); document.activeElement.blur(); 0`, nil),
		press("p"), chromedp.WaitVisible(`//button[text()="Stop"]`), pending("0"), pending("5"),
		chromedp.WaitVisible(`//button[text()="Play"]`), chromedp.Location(&hash))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(hash, "t=") {
		t.Errorf("it stopped at %s, before the end", hash)
	}
}

// TestReplayPages looks at the pages of a run.
func TestReplayPages(t *testing.T) {
	s := newReplay(t)
	lookAt(t, browser(t, s.URL), s.URL+"/ui/", []look{
		{"run", "#/", ".lanes"}, {"run-alone", "#/run?with=none&t=5m0s", ".chart canvas"}, {"replay-now", "#/now?t=6m0s", ".chart canvas"}, {"replay-nodes", "#/nodes?t=1m0s", "main .body-row"},
		{"replay-pod", "#/pending?t=6m0s&pod=team-b/huge-0", "[role=dialog] table"},
	})
}

// reports writes the report of a run, and that of a shadow.
func reports(t *testing.T) (run, shadow string) {
	t.Helper()
	runs, err := scenario.Load([]string{cluster})
	if err != nil {
		t.Fatal(err)
	}
	played := page.NewPlayed()
	w, err := sim.New(runs[0], sim.Options{Hooks: []drive.Hook{played}})
	if err != nil {
		t.Fatal(err)
	}
	played.In(w)
	summary, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	summary.Name = "</script><script>alert(1)</script>" // which is nothing but a name
	played.Simulated(runs[0], summary)
	run, shadow = filepath.Join(t.TempDir(), "run.html"), filepath.Join(t.TempDir(), "shadow.html")
	if err := page.WriteReport(run, []*page.Played{played, played}, []*scenario.Summary{summary, summary}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(shadow)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	at := sim.Epoch.Add(time.Hour)
	x := &observe.ShadowReport{At: at, ShadowReport: core.ShadowReport{ShadowPods: core.ShadowPods{Since: sim.Epoch, Until: at, Compared: 1000, Short: 5000, Overtaken: 4,
		Verdicts:    map[step.Verdict]int{step.SameNode: 600, step.EquallyGood: 380, step.Worse: 19, step.NotAllowed: 1, step.OnlyBerth: 2},
		Other:       core.ShadowQuantiles{Pods: 1000, P50: 20 * time.Millisecond, P99: time.Second, Max: 2 * time.Second},
		Differences: []step.Comparison{{Time: at, Pod: "shop/<b>", Verdict: step.NotAllowed, Node: "n1", BerthNode: "n2", BerthScore: 300, Plugin: "TaintToleration", Reason: "node(s) had untolerated taint(s)"}},
	}}}
	report := api.ShadowOf(&x.ShadowReport, func(pod string) string { return pod })
	report.At = x.At
	if err := page.ShadowReport(f, report); err != nil {
		t.Fatal(err)
	}
	return run, shadow
}

// TestReports opens reports from their files: all pages are there, nothing is asked of anywhere, and what a report
// hasn't got it says so.
func TestReports(t *testing.T) {
	run, shadow := reports(t)
	ctx := browser(t, "file://")
	lookAt(t, ctx, "file://"+run, []look{
		{"report-run", "#/", ".lanes"}, {"report-now", "#/now", ".chart canvas"}, {"report-nodes", "#/nodes", "main .body-row"}, {"report-pods", "#/pending?view=pods", "main .body-row"},
		{"report-pod", "#/pending?pod=team-b/huge-0", "[role=dialog] table"}, {"report-group", "#/groups?g=batch", "[role=dialog] dl"}, {"report-money", "#/money", "main table"}, {"report-decisions", "#/decisions?kind=Placed", "main .body-row"},
	})
	lookAt(t, ctx, "file://"+shadow, []look{{"report-shadow", "#/", "main ol.items"}})
	var text, missing, title string
	var rows, blank int
	err := chromedp.Run(ctx, open("file://"+shadow, "main ol.items"), chromedp.Text("main", &text, chromedp.ByQuery),
		chromedp.Evaluate(`[...document.querySelectorAll("main thead")].filter(x => x.textContent === "").length`, &blank),
		open("file://"+run+"#/decisions?kind=Placed", "main .body-row"), chromedp.Evaluate(`document.querySelectorAll(".body-row").length`, &rows),
		open("file://"+run+"#/nodes?node=none", "[role=dialog] .bad"), chromedp.Text("[role=dialog] .bad", &missing, chromedp.ByQuery),
		open("file://"+run+"#/run", ".lanes"), chromedp.Text(".panel h2", &title, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"98.0 %", "shop/<b> was placed on n1, which is not allowed; Berth chooses n2 (300)", "TaintToleration: node(s) had untolerated taint(s)", "4 of the worse nodes may have been good choices", "mean score points below Berth’s choice, per pod", "5.0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the shadow's report has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Berth <1ms") || blank > 0 { // which had decided nothing
		t.Errorf("the shadow's report has times of no decisions, or %d heads without words:\n%s", blank, text)
	}
	if !strings.Contains(missing, "This report doesn’t have that") || rows != 16 || !strings.Contains(title, "</script><script>alert(1)</script>") {
		t.Errorf("a node that isn't there: %q; %d decisions of 16; the title is %q", missing, rows, title)
	}
}

// TestAReportSaysWhatItHasNot: of more nodes, pods that wait and decisions than it has rows it has the first, and says
// how many there are.
func TestAReportSaysWhatItHasNot(t *testing.T) {
	scenarioFile := filepath.Join(t.TempDir(), "many.yaml")
	if err := os.WriteFile(scenarioFile, []byte(`apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: many}
spec:
  end: {at: 2m}
  nodes:
  - {name: n, count: 2101, template: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}}
  workload:
  - {name: web, kind: ReplicaSet, count: 7, template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  - {name: huge, kind: ReplicaSet, count: 2222, template: {spec: {containers: [{name: main, resources: {requests: {cpu: "64"}}}]}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	report, all := reportOf(t, scenarioFile)
	ctx := browser(t, "file://")
	for hash, want := range map[string][2]string{
		"#/nodes":             {"2,000 of 2,101 nodes", "This report has the first 2,000"},
		"#/pending?view=pods": {"2,000 of 2,222", "This report has the first 2,000"},
		"#/decisions":         {fmt.Sprintf("1,000 decisions, the newest of %d,%03d", all/1000, all%1000), "This report has the last 1,000"},
	} {
		var said, cut string
		err := chromedp.Run(ctx, open("file://"+report+hash, "main .body-row"), chromedp.Text(".body.controls span.soft", &said, chromedp.ByQuery), chromedp.Text(".body.controls span.warn", &cut, chromedp.ByQuery))
		if err != nil || said != want[0] || !strings.HasPrefix(cut, want[1]) {
			t.Errorf("%s says %q and %q (%v), want %q and %q", hash, said, cut, err, want[0], want[1])
		}
	}
}

// reportOf plays a scenario and returns the path of its report, and how many decisions there were.
func reportOf(t *testing.T, file string) (path string, decisions int) {
	t.Helper()
	runs, err := scenario.Load([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	played, history := page.NewPlayed(), observe.NewHistory(1)
	w, err := sim.New(runs[0], sim.Options{Hooks: []drive.Hook{played, history}})
	if err != nil {
		t.Fatal(err)
	}
	played.In(w)
	summary, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	played.Simulated(runs[0], summary)
	path = filepath.Join(t.TempDir(), "report.html")
	if err := page.WriteReport(path, []*page.Played{played}, []*scenario.Summary{summary}); err != nil {
		t.Fatal(err)
	}
	_, last := history.Range()
	return path, int(last) //nolint:gosec // few
}

// TestReportsAskForNothing: their policy allows the script and the styles inside, and no name ends an element.
func TestReportsAskForNothing(t *testing.T) {
	run, shadow := reports(t)
	for _, path := range []string{run, shadow} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if !strings.Contains(text, "default-src &#39;none&#39;; script-src &#39;sha256-") || strings.Contains(text, "unsafe-inline") || strings.Count(text, "</script>") != 2 || strings.Contains(text, "<!--") {
			t.Errorf("%s: the policy or the scripts are wrong: %.900s", path, text)
		}
		if len(raw) > 1<<20 || strings.Contains(text, `src="http`) || strings.Contains(text, `href="http`) {
			t.Errorf("%s has %d bytes, or asks for something", path, len(raw))
		}
	}
}
