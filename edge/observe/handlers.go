package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
)

// This file is what HTTP requests are answered. Handlers run in goroutines of their own:
// they read the core only through ask.

// handler serves the paths that kube-scheduler has, and /debug/explain. A Berth that
// stands by is ready: it needs nobody to wait for it.
func (s *Server) handler(profiling bool) http.Handler {
	m := mux.NewPathRecorderMux("berth")
	alive := healthz.PingHealthz
	ready := healthz.NamedCheck("leading-or-standing-by", func(*http.Request) error {
		if s.leader.Load() && !s.ready.Load() {
			return fmt.Errorf("leading, and the cluster isn't known yet")
		}
		return nil
	})
	healthz.InstallHandler(m, alive)
	healthz.InstallLivezHandler(m, alive)
	healthz.InstallReadyzHandler(m, alive, ready)
	m.Handle("/metrics", promhttp.HandlerFor(s.Metrics.Registry, promhttp.HandlerOpts{}))
	m.HandleFunc("/metrics/resources", s.resources)
	m.HandleFunc("/configz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"kubescheduler.config.k8s.io": s.config})
	})
	m.HandleFunc("/debug/explain", s.explain)
	if profiling {
		routes.Profiling{}.Install(m)
	}
	return m
}

// Explained is what /debug/explain answers: where a pod stands, which nodes would do
// and which not, and what was decided about it.
type Explained struct {
	At time.Time `json:"at"`
	core.Explanation
	// Decisions are the last about the pod, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// questionTimeout is how long a question waits for the core. A Step takes far less,
// unless the loop waits for an API server that can't keep up.
const questionTimeout = 10 * time.Second

// explain serves /debug/explain?pod=NAMESPACE/NAME.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	pod := r.URL.Query().Get("pod")
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok {
		fail(w, http.StatusBadRequest, fmt.Sprintf("pod is %q; give it as ?pod=NAMESPACE/NAME", pod))
		return
	}
	if !s.leader.Load() {
		fail(w, http.StatusServiceUnavailable, "this Berth stands by; ask the one that leads")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	got := make(chan core.Explanation, 1)
	if !s.ask(ctx, func(c *core.Core) {
		x, _ := c.Explain(namespace, name) // without an outcome when it isn't known
		got <- x
	}) {
		fail(w, http.StatusServiceUnavailable, "the core is busy; try again")
		return
	}
	x := Explained{At: time.Now(), Explanation: <-got, Decisions: s.History.Of(pod)}
	if x.Outcome == "" && len(x.Decisions) == 0 {
		fail(w, http.StatusNotFound, fmt.Sprintf("Berth knows no pod %s; it may be over", pod))
		return
	}
	answer(w, http.StatusOK, x)
}

// fail answers with an error.
func fail(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]string{"error": why})
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, v any) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(raw, '\n'))
}
