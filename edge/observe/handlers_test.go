package observe

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
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
	s := NewServer(slog.New(slog.DiscardHandler))
	stopping := make(chan struct{})
	s.Stopping = stopping
	for _, x := range []struct {
		name   string
		happen func()
		code   int
	}{
		{"before all that exists is delivered", func() {}, http.StatusInternalServerError},
		{"standing by", s.HandlersSynced, http.StatusOK},
		{"leader, before it has listed the cluster", s.BecomeLeader, http.StatusInternalServerError},
		{"leader that knows the cluster", func() { s.State(l.core) }, http.StatusOK},
		{"not leading any more", s.StopLeading, http.StatusOK},
		{"interrupted", func() { close(stopping) }, http.StatusInternalServerError},
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

// TestProbesAreToldWhatFails has one check of readiness and one of liveness fail and succeed
// again. Everybody learns which one fails; why, only who may get its own path.
func TestProbesAreToldWhatFails(t *testing.T) {
	why := errors.New("pods are forbidden")
	for _, x := range []struct {
		name string
		set  func(s *Server, c Check)
		fail map[string]bool // paths
	}{
		{"readiness", func(s *Server, c Check) { s.Ready = append(s.Ready, c) }, map[string]bool{"/readyz": true}},
		{"liveness", func(s *Server, c Check) { s.Alive = append(s.Alive, c) }, map[string]bool{"/livez": true, "/healthz": true}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := NewServer(slog.New(slog.DiscardHandler))
			s.HandlersSynced()
			var now error
			x.set(s, Check{Name: "cache-pods", Err: func() error { return now }})
			for _, now = range []error{nil, why, nil} {
				for _, path := range []string{"/readyz", "/livez", "/healthz"} {
					fails := now != nil && x.fail[path]
					code, body := get(t.Context(), s, nil, path)
					if (code != http.StatusOK) != fails || strings.Contains(body, "[-]cache-pods failed") != fails || strings.Contains(body, why.Error()) {
						t.Errorf("with %v, %s answers %d:\n%s", now, path, code, body)
					}
					if fails {
						if code, body := get(t.Context(), s, nil, path+"/cache-pods"); code == http.StatusOK || !strings.Contains(body, why.Error()) {
							t.Errorf("%s/cache-pods answers %d %s, want why", path, code, body)
						}
					}
				}
			}
		})
	}
}

// TestExplainAnswers asks about pods that Berth knows, has known, and never knew.
func TestExplainAnswers(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	step1 := l.step(step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "1").Obj()}, step.PodSet{Pod: testkit.Pod("gone").Req("cpu", "1").Obj()})
	s.Step(l.now, 0, nil, &step1)
	l.step(step.PodGone{UID: "pod-gone"})
	if code, body := get(t.Context(), s, nil, "/debug/explain?pod=default/waits"); code != http.StatusServiceUnavailable || !strings.Contains(body, "standing by") {
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
		{"default/nobody", http.StatusNotFound, "pod default/nobody not found"},
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

// TestExplainAnswersAboutNodeGroups asks about groups that there are and aren't, of a Berth
// that scales and of one that only schedules.
func TestExplainAnswersAboutNodeGroups(t *testing.T) {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	cfg.Autoscale = &a
	scales, schedules := newLiveOf(t, cfg), newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.BecomeLeader()
	if code, body := get(t.Context(), s, scales.core, "/debug/explain?groups"); code != http.StatusNotFound || !strings.Contains(body, "its provider has not listed its groups yet") {
		t.Errorf("before the provider has told of groups: got %d %s", code, body)
	}
	var groups []nodegroup.Group
	for _, id := range []string{"batch", "web-large", "web-small"} {
		groups = append(groups, nodegroup.Group{ID: id, Max: 3, Template: testkit.Node(id).Alloc("cpu", "4", "memory", "8Gi").Obj()})
	}
	ready := scales.step(step.GroupsSet{Groups: groups}, step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1").Obj()})
	plan := autoscaler.NewPlan(ready.Plan, 0)
	plan.ScaleUps = []autoscaler.ScaleUp{{Group: "batch", Nodes: 1, Pods: []types.UID{"pod-p"}, Bins: [][]types.UID{{"pod-p"}}, Choice: &autoscaler.Choice{Plan: 1, By: "price"}}}
	ready = scales.step(step.PlanMade{Plan: plan})
	s.Step(scales.now, 0, nil, &ready)
	for _, x := range []struct {
		name  string
		core  *core.Core
		query string
		code  int
		want  []string
	}{
		{"one group", scales.core, "group=batch", http.StatusOK, []string{`"launching": 1`, `"by": "price"`, `"kind": "ScaledUp"`}},
		{"all groups", scales.core, "groups", http.StatusOK, []string{`"group": "batch"`, `"group": "web-large"`, `"group": "web-small"`}},
		{"a wrong name", scales.core, "group=web-smal", http.StatusNotFound, []string{"node group web-smal not found; similar names are web-small, web-large, batch"}},
		{"no name", scales.core, "group=", http.StatusNotFound, []string{"similar names are batch"}},
		{"a Berth that only schedules", schedules.core, "group=batch", http.StatusNotFound, []string{"Berth only schedules"}},
		{"a pod", scales.core, "pod=default/p", http.StatusOK, []string{`"answer": "Bought"`}},
		{"nothing", scales.core, "", http.StatusBadRequest, []string{"?group=NAME, ?groups, ?node=NAME or ?nodes"}},
	} {
		code, body := get(t.Context(), s, x.core, "/debug/explain?"+x.query)
		for _, want := range x.want {
			if code != x.code || !strings.Contains(body, want) {
				t.Errorf("%s: got %d, want %d with …%s…:\n%s", x.name, code, x.code, want, body)
			}
		}
	}
}

// TestExplainAnswersAboutPodGroups asks about groups that there are, were and never were.
func TestExplainAnswersAboutPodGroups(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.BecomeLeader()
	ready := l.step(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.ObjectSet{Object: testkit.PodGroup("gang", 2, "")}, step.ObjectSet{Object: testkit.PodGroup("gone", 1, "")},
		step.PodSet{Pod: testkit.Pod("a").Req("cpu", "1").PodGroup("gang").Obj()}, step.PodSet{Pod: testkit.Pod("b").Req("cpu", "1").PodGroup("gang").Obj()},
		step.PodSet{Pod: testkit.Pod("c").Req("cpu", "1").PodGroup("gone").Obj()})
	s.Step(l.now, 0, nil, &ready)
	l.step(step.PodGone{UID: "pod-c"}, step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gone"})
	for _, x := range []struct {
		query string
		code  int
		want  []string
	}{
		{"podgroup=default/gang", http.StatusOK, []string{`"outcome": "Placed"`, `"minCount": 2`, `"kind": "GroupPlaced"`, "2 of 2 members"}},
		{"podgroup=default/gone", http.StatusOK, []string{`"outcome": ""`, `"kind": "GroupPlaced"`}},
		{"podgroup=default/gank", http.StatusNotFound, []string{"pod group default/gank not found; similar names are default/gang"}},
		{"podgroup=gang", http.StatusBadRequest, []string{"?podgroup=NAMESPACE/NAME"}},
		{"names=podgroups&prefix=default/", http.StatusOK, []string{`"default/gang"`}},
	} {
		code, body := get(t.Context(), s, l.core, "/debug/explain?"+x.query)
		for _, want := range x.want {
			if code != x.code || !strings.Contains(body, want) {
				t.Errorf("%s: got %d, want %d with …%s…:\n%s", x.query, code, x.code, want, body)
			}
		}
	}
}

// TestExplainAnswersAboutNodes asks about nodes that there are and aren't, of a Berth that scales
// and of one that only schedules.
func TestExplainAnswersAboutNodes(t *testing.T) {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	cfg.Autoscale = &a
	scales, schedules := newLiveOf(t, cfg), newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	if code, body := get(t.Context(), s, scales.core, "/debug/explain?nodes"); code != http.StatusServiceUnavailable || !strings.Contains(body, "standing by") {
		t.Errorf("standing by: got %d %s", code, body)
	}
	s.BecomeLeader()
	if code, body := get(t.Context(), s, scales.core, "/debug/explain?node=web-1"); code != http.StatusNotFound || !strings.Contains(body, "node web-1 not found; there are no nodes") {
		t.Errorf("in an empty cluster: got %d %s", code, body)
	}
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 3, Target: 2, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}}
	for _, name := range []string{"batch-1", "web-1"} {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4").Obj(), Group: "g"})
	}
	ready := scales.step(in...)
	plan := autoscaler.NewPlan(ready.Plan, 0)
	plan.Removals = []*autoscaler.Removal{{Node: "batch-1"}}
	plan.Kept = []autoscaler.Kept{{Node: "web-1", Reason: autoscaler.KeptBlockedByPod, Pod: "default/db", Detail: "it has local storage"}}
	ready = scales.step(step.PlanMade{Plan: plan})
	s.Step(scales.now, 0, nil, &ready)
	for _, x := range []struct {
		name  string
		core  *core.Core
		query string
		code  int
		want  []string
	}{
		{"one that stays", scales.core, "node=web-1", http.StatusOK, []string{`"state": "Stays"`, `"pod": "default/db"`, `"kind": "NodeStays"`}},
		{"one that could go", scales.core, "node=batch-1", http.StatusOK, []string{`"state": "Candidate"`, `"reason": "NotUnneededLongEnough"`}},
		{"all", scales.core, "nodes", http.StatusOK, []string{`"status": "CandidatesPresent"`, `"reason": "BlockedByPod"`}},
		{"a wrong name", scales.core, "node=web1", http.StatusNotFound, []string{"node web1 not found; similar names are web-1, batch-1"}},
		{"no name", scales.core, "node=", http.StatusNotFound, []string{"similar names are web-1"}},
		{"one of a Berth that only schedules", schedules.core, "node=web-1", http.StatusNotFound, []string{"Berth only schedules here"}},
		{"all of a Berth that only schedules", schedules.core, "nodes", http.StatusNotFound, []string{"Berth only schedules here"}},
	} {
		code, body := get(t.Context(), s, x.core, "/debug/explain?"+x.query)
		for _, want := range x.want {
			if code != x.code || !strings.Contains(body, want) {
				t.Errorf("%s: got %d, want %d with …%s…:\n%s", x.name, code, x.code, want, body)
			}
		}
	}
}

// TestQuestionsAreBounded asks for names that no object can have: they are refused before anybody
// asks the core.
func TestQuestionsAreBounded(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	s.BecomeLeader()
	name := func(n int) string { return strings.Repeat("x", n) }
	for _, query := range []string{"node=" + name(254), "group=" + name(2049), "pod=a/" + name(254), "pod=" + name(254) + "/a", "podgroup=a/" + name(254), "names=pods&prefix=" + name(2049), "names=" + name(254)} {
		if code, body := get(t.Context(), s, nil, "/debug/explain?"+query); code != http.StatusBadRequest || !strings.Contains(body, "no more than") {
			t.Errorf("?%s…: got %d, want 400:\n%s", query[:10], code, body)
		}
	}
	l := newLive(t)
	for _, query := range []string{"group=" + name(2048), "pod=" + name(63) + "/" + name(253)} {
		if code, body := get(t.Context(), s, l.core, "/debug/explain?"+query); code != http.StatusNotFound {
			t.Errorf("?%s…: got %d, want 404:\n%s", query[:10], code, body)
		}
	}
}

// TestQuestionsAreAnsweredOneAtATime has a question take the core for as long as another waits.
func TestQuestionsAreAnsweredOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(slog.New(slog.DiscardHandler))
		s.BecomeLeader()
		codes := make(chan int, 2)
		for range 2 {
			go func() {
				code, _ := get(t.Context(), s, nil, "/debug/explain?nodes")
				codes <- code
			}()
		}
		ask := <-s.Questions
		synctest.Wait()
		select {
		case <-s.Questions:
			t.Error("two questions wait for the core at a time")
		default:
		}
		ask(newLive(t).core)
		synctest.Wait()
		if code := <-codes; code != http.StatusNotFound {
			t.Errorf("the first is answered with %d, want 404", code)
		}
		if code := <-codes; code != http.StatusServiceUnavailable { // nobody takes it
			t.Errorf("the second is answered with %d, want 503", code)
		}
	})
}

// TestNamesAreComparedOutsideOfTheCore has what the core is asked for return the names as they are.
func TestNamesAreComparedOutsideOfTheCore(t *testing.T) {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	cfg.Autoscale = &a
	l, template := newLiveOf(t, cfg), testkit.Node("g").Alloc("cpu", "4")
	l.step(step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 3, Target: 1, Template: template.Obj()}}}, step.NodeSet{Node: testkit.Node("web-1").Alloc("cpu", "4").Obj(), Group: "g"})
	s := NewServer(slog.New(slog.DiscardHandler))
	for _, query := range []url.Values{{"node": {"web1"}}, {"group": {"web1"}}} {
		question, err := s.question(query)
		if err != nil {
			t.Fatal(err)
		}
		if x := question(l.core); strings.Contains(x.missing, "similar") || x.name != "web1" || len(x.names) == 0 {
			t.Errorf("%v: the core answers %+v, want names that aren't compared yet", query, x)
		}
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
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Show(Configuration{Own: cfg})
	_, text := get(t.Context(), s, nil, "/configz")
	if !strings.Contains(text, "extender.example") || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
		t.Errorf("/configz answers with a secret, or without the extender:\n%s", text)
	}
}
