package observe

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/ui"
)

// TestTheAPIIsServed by the leader. One that stands by says who leads.
func TestTheAPIIsServed(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.About = About{Provider: "simulated", Identity: "berth-a_1", Leader: func() string { return "berth-b_1" }}
	ready := l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.PodSet{Pod: testkit.Pod("big").Req("cpu", "64").Obj()})
	s.Step(l.now, 0, nil, &ready)
	if code, body := get(t.Context(), s, nil, "/api/v1alpha1/overview"); code != http.StatusServiceUnavailable || !strings.Contains(body, "standing by; query the leader, berth-b_1") {
		t.Errorf("standing by: got %d %s", code, body)
	}
	w := httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1alpha1/meta", nil))
	if w.Code != http.StatusOK || w.Header().Get(api.StandbyHeader) == "" || !strings.Contains(w.Body.String(), `"leading":false`) {
		t.Errorf("standing by, who answers: got %d %v %s; want a header by which forwarders look for the leader", w.Code, w.Header(), w.Body)
	}
	s.BecomeLeader()
	s.State(l.core)
	overview := v1alpha1.Overview{}
	code, body := get(t.Context(), s, l.core, "/api/v1alpha1/overview")
	if err := json.Unmarshal([]byte(body), &overview); err != nil || code != http.StatusOK || overview.Pods.Pending != 1 || overview.Nodes.Ready != 1 || len(overview.Activity) != 1 {
		t.Errorf("overview: got %d %s", code, body)
	}
	meta := v1alpha1.Meta{}
	code, body = get(t.Context(), s, l.core, "/api/v1alpha1/meta")
	if err := json.Unmarshal([]byte(body), &meta); err != nil || code != http.StatusOK || meta.Mode != v1alpha1.ModeLive || meta.Leader != "berth-a_1" || meta.Provider != "simulated" || meta.Epoch == "" {
		t.Errorf("meta: got %d %s", code, body)
	}
	series := v1alpha1.Series{}
	if code, body = get(t.Context(), s, nil, "/api/v1alpha1/series"); json.Unmarshal([]byte(body), &series) != nil || code != http.StatusOK || series.Points != 1 {
		t.Errorf("series: got %d %.300s; want the point of State", code, body)
	}
}

// TestThePageIsServed where the flag says so, with its own policy for browsers.
func TestThePageIsServed(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	if code, _ := get(t.Context(), s, nil, PagePath); code != http.StatusNotFound {
		t.Errorf("switched off: got %d", code)
	}
	s.page = http.StripPrefix("/ui", ui.Handler())
	w := httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, PagePath, nil))
	if csp := w.Header().Get("Content-Security-Policy"); w.Code != http.StatusOK || !strings.HasPrefix(csp, "default-src 'none'") || !strings.Contains(w.Body.String(), "<html") {
		t.Errorf("got %d, policy %q", w.Code, csp)
	}
	w = httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui", nil))
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != PagePath {
		t.Errorf("/ui: got %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestMetaShowsFlagsThatAreSet, without secrets.
func TestMetaShowsFlagsThatAreSet(t *testing.T) {
	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("misc")
	fs.String("expander", "least-waste", "")
	fs.String("token", "", "")
	fs.String("untouched", "x", "")
	fs.Lookup("token").Annotations = map[string][]string{"classified": {"true"}}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	all.AddFlagSet(fs)
	if err := all.Parse([]string{"--expander=cost", "--token=hunter2"}); err != nil {
		t.Fatal(err)
	}
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Flags = Flags(sets)
	if got := s.meta().Flags; len(got) != 2 || got["expander"] != "cost" || got["token"] != "CLASSIFIED" {
		t.Errorf("the flags are %v", got)
	}
}

// TestModeOf the flags.
func TestModeOf(t *testing.T) {
	for _, x := range []struct {
		mode   string
		shadow bool
		want   v1alpha1.Mode
	}{{"", false, v1alpha1.ModeLive}, {"scheduler", false, v1alpha1.ModeLive}, {"autoscaler", false, v1alpha1.ModeAutoscaler}, {"", true, v1alpha1.ModeShadow}} {
		if got := ModeOf(x.mode, x.shadow); got != x.want {
			t.Errorf("--mode=%s --shadow=%t: got %s, want %s", x.mode, x.shadow, got, x.want)
		}
	}
}
