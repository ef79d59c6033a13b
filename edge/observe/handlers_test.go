package observe

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// get asks a server for a path, and answers a question that it puts to the core.
func get(ctx context.Context, s *Server, c *core.Core, path string) (code int, body string) {
	done, stop := context.WithCancel(ctx)
	if c != nil {
		go func() {
			select {
			case ask := <-s.Questions:
				ask(c)
			case <-done.Done():
			}
		}()
	}
	answer := httptest.NewRecorder()
	s.handler(false).ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	stop()
	return answer.Code, answer.Body.String()
}

// TestALeaderIsReadyWhenItKnowsTheCluster follows an instance from its start.
func TestALeaderIsReadyWhenItKnowsTheCluster(t *testing.T) {
	l := newLive(t)
	s := NewServer(nil, slog.New(slog.DiscardHandler))
	for _, x := range []struct {
		name   string
		happen func()
		code   int
	}{
		{"standing by", func() {}, http.StatusOK},
		{"leader, before it has listed the cluster", s.BecomeLeader, http.StatusInternalServerError},
		{"leader that knows the cluster", func() { s.State(l.core) }, http.StatusOK},
		{"stopping", s.StopLeading, http.StatusOK},
	} {
		x.happen()
		if code, body := get(t.Context(), s, nil, "/readyz"); code != x.code {
			t.Errorf("%s: /readyz answers %d, want %d:\n%s", x.name, code, x.code, body)
		}
		if code, _ := get(t.Context(), s, nil, "/livez"); code != http.StatusOK {
			t.Errorf("%s: /livez answers %d", x.name, code)
		}
	}
}

// TestExplainAnswers asks about pods that Berth knows, has known, and never knew.
func TestExplainAnswers(t *testing.T) {
	l := newLive(t)
	s := NewServer(nil, slog.New(slog.DiscardHandler))
	step1 := l.step(step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "1").Obj()}, step.PodSet{Pod: testkit.Pod("gone").Req("cpu", "1").Obj()})
	s.Step(l.now, 0, nil, &step1)
	l.step(step.PodGone{UID: "pod-gone"})
	if code, body := get(t.Context(), s, nil, "/debug/explain?pod=default/waits"); code != http.StatusServiceUnavailable || !strings.Contains(body, "stands by") {
		t.Errorf("standing by: got %d %s", code, body)
	}
	s.BecomeLeader()
	for _, x := range []struct {
		pod  string
		code int
		want string
	}{
		{"default/waits", http.StatusOK, "no nodes available to schedule pods"},
		{"default/gone", http.StatusOK, `"kind": "Waits"`},
		{"default/nobody", http.StatusNotFound, "Berth knows no pod default/nobody"},
		{"waits", http.StatusBadRequest, "?pod=NAMESPACE/NAME"},
	} {
		if code, body := get(t.Context(), s, l.core, "/debug/explain?pod="+x.pod); code != x.code || !strings.Contains(body, x.want) {
			t.Errorf("%s: got %d, want %d with …%s…:\n%s", x.pod, code, x.code, x.want, body)
		}
	}
	impatient, stop := context.WithCancel(t.Context())
	stop()
	if code, body := get(impatient, s, nil, "/debug/explain?pod=default/waits"); code != http.StatusServiceUnavailable || !strings.Contains(body, "busy") {
		t.Errorf("while the core is busy: got %d %s", code, body)
	}
}

// TestConfigzShowsNoSecrets has some in every field that may hold one.
func TestConfigzShowsNoSecrets(t *testing.T) {
	cfg, err := config.Parse([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://user:hunter2@extender.example
  filterVerb: filter
  tlsConfig: {keyData: aHVudGVyMg==, certData: aHVudGVyMg==, caData: aHVudGVyMg==}
`))
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	NewServer(cfg, slog.New(slog.DiscardHandler)).handler(false).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/configz", nil))
	text := answer.Body.String()
	if !strings.Contains(text, "extender.example") || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
		t.Errorf("/configz answers with a secret, or without the extender:\n%s", text)
	}
}
