package page

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/replay"
	"github.com/berthproject/berth/sim/scenario"
)

// get asks an API for a path, whose answer must be good.
func get[T any](t *testing.T, h http.Handler, path string) (out T) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: got %d %.300s (%v)", path, w.Code, w.Body, err)
	}
	return out
}

// TestAScenarioIsShownAtItsEnd, with its decisions and its gauges from the beginning on.
func TestAScenarioIsShownAtItsEnd(t *testing.T) {
	h, err := Offline(t.Context(), filepath.Join("..", "..", "examples", "explain", "staying.yaml"), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := get[v1alpha1.Meta](t, h, "meta")
	if m.Mode != v1alpha1.ModeOffline || m.FileKind != "scenario" || m.File != "staying.yaml" || !m.Capabilities.Replay || !m.Capabilities.Autoscaling || m.Now.Sub(m.From).Minutes() < 7 {
		t.Errorf("meta: %+v", m)
	}
	if o := get[v1alpha1.Overview](t, h, "overview"); o.Nodes.Total != 12 || o.Money == nil || len(o.Activity) == 0 {
		t.Errorf("overview: %+v", o)
	}
	if s := get[v1alpha1.Series](t, h, "series"); s.Points < 40 || !s.From.Equal(m.From) {
		t.Errorf("series: %d points from %s, want those since %s", s.Points, s.From, m.From)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"stream", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("the stream: got %d", w.Code)
	}
}

// TestARecordingIsShownAtItsEnd.
func TestARecordingIsShownAtItsEnd(t *testing.T) {
	runs, err := scenario.Load([]string{filepath.Join("..", "..", "examples", "explain", "staying.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	recorder, err := replay.Create(path, 1<<24, replay.Header{Seed: runs[0].Spec.Seed, Kubernetes: runs[0].Scheduler.Version.String(), Autoscale: &runs[0].Autoscale})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{Hooks: []drive.Hook{recorder}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Offline(t.Context(), path, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s := get[v1alpha1.Series](t, h, "series"); s.Points < 40 {
		t.Errorf("series: %d points", s.Points)
	}
	if n := get[v1alpha1.NodeList](t, h, "nodes"); n.Total != 12 {
		t.Errorf("%d nodes", n.Total)
	}
	if m := get[v1alpha1.Meta](t, h, "meta"); m.FileKind != "recording" || m.Now.Before(m.From) {
		t.Errorf("meta: %+v", m)
	}
	if d := get[v1alpha1.DecisionList](t, h, "decisions"); len(d.Items) == 0 {
		t.Error("there are no decisions")
	}
}

// TestAReportIsShown, and nothing else of the cluster.
func TestAReportIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, []byte(`{"at":"2026-01-02T03:04:05Z","since":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","compared":4,"verdicts":{"same":3,"worse":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Offline(t.Context(), path, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if m := get[v1alpha1.Meta](t, h, "meta"); m.FileKind != "report" || !m.Capabilities.Shadow || !m.Viewer.AllNamespaces {
		t.Errorf("meta: %+v", m)
	}
	if s := get[v1alpha1.Shadow](t, h, "shadow"); s.Compared != 4 || s.Agreement != 0.75 || s.Verdicts[0].Count != 3 {
		t.Errorf("shadow: %+v", s)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"nodes", nil))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "a shadow report has nothing but meta and shadow") {
		t.Errorf("nodes: got %d %s", w.Code, w.Body)
	}
}

// TestFilesThatCantBeShown are named in the error.
func TestFilesThatCantBeShown(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, x := range []struct{ path, want string }{
		{filepath.Join(folder, "none"), "--file: open "},
		{write("empty", ""), "is empty"},
		{folder, "--file: "},
		{write("broken.json", `{"verdicts": {}}`), "it has no time or no verdicts"},
		{write("broken.yaml", "kind: Scenario\nspec: {nodes: many}\n"), "broken.yaml"},
		{write("broken.jsonl", `{"berthRecording": 99}`+"\n"), "broken.jsonl"},
	} {
		if _, err := Offline(t.Context(), x.path, nil, io.Discard); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want …%s…", x.path, err, x.want)
		}
	}
}

// TestAnswersOfAFileBearItsTime: how long a pod has waited is counted from the time of the answer, which is the run's.
func TestAnswersOfAFileBearItsTime(t *testing.T) {
	h, err := Offline(t.Context(), "../../examples/explain/waiting.yaml", nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"overview", "pods", "pods/default/huge-0", "pending", "nodes", "nodes/small-0001", "groups", "groups/small", "money"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+path, nil))
		answer := struct{ At time.Time }{}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.At.Year() != 2026 || answer.At.Month() != 1 || answer.At.Day() != 1 {
			t.Errorf("%s is of %s (%v), want the first of January 2026, when the run ends", path, answer.At, err)
		}
	}
}

// TestADumpIsShown: objects without a scenario, as berth dump writes them, are asked about as any other file, and page by page.
func TestADumpIsShown(t *testing.T) {
	h, err := Offline(t.Context(), filepath.Join("..", "..", "examples", "explain", "dump.yaml"), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if m := get[v1alpha1.Meta](t, h, "meta"); m.FileKind != "dump" || m.File != "dump.yaml" || !m.Capabilities.Seek || m.Now.Before(m.From) {
		t.Errorf("meta: %+v", m)
	}
	if n := get[v1alpha1.NodeList](t, h, "nodes?limit=2"); n.Total != 3 || len(n.Items) != 2 || n.Items[0].Name != "n1" || n.Continue == "" {
		t.Errorf("nodes: %+v", n)
	}
	if p := get[v1alpha1.PodDetail](t, h, "pods/team/big"); p.Outcome != "Waits" || len(p.Rejections) == 0 || len(p.Decisions) == 0 {
		t.Errorf("a pod that no node takes: %+v", p)
	}
	if o := get[v1alpha1.Overview](t, h, "overview"); o.Nodes.Total != 3 || o.Pods.Placed != 2 || o.Pods.Pending != 3 {
		t.Errorf("overview: %+v", o)
	}
}
