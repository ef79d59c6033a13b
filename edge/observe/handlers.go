package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"

	"github.com/berthproject/berth/edge/api"
)

// Where a Berth explains a pod, a node group or nodes, and where it has its status.
const (
	ExplainPath = "/debug/explain"
	StatusPath  = "/debug/status"
	// PagePath is where the web page is.
	PagePath = "/ui/"
)

// This file is what HTTP requests are answered. Handlers run in goroutines of their own:
// they read the core only through ask.

// handler serves the paths that kube-scheduler has, the API, the web page, and of former versions
// /debug/explain, /debug/status and /debug/shadow. /readyz has its
// checks, too, under their names: shutdown and sched-handler-sync. A Berth that stands by is ready: it
// needs nobody to wait for it. Whether somebody may get a path is decided before
// (protect); here all are served alike.
func (s *Server) handler(profiling bool) http.Handler {
	m := mux.NewPathRecorderMux("berth")
	alive := append([]healthz.HealthChecker{healthz.PingHealthz}, named(s.Alive)...)
	ready := append([]healthz.HealthChecker{healthz.PingHealthz, healthz.NamedCheck("leading-or-standing-by", func(*http.Request) error {
		if s.leader.Load() && !s.ready.Load() {
			return fmt.Errorf("leading, but caches are not synced yet")
		}
		return nil
	}), healthz.NewShutdownHealthz(s.Stopping), healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
		if !s.delivered.Load() {
			return errors.New("handlers are not fully synchronized")
		}
		return nil
	})}, named(s.Ready)...)
	healthz.InstallHandler(m, alive...)
	healthz.InstallLivezHandler(m, alive...)
	healthz.InstallReadyzHandler(m, ready...)
	m.Handle("/metrics", s.metrics())
	m.HandleFunc("/metrics/resources", s.resources)
	m.Handle("/health-check", s.HealthCheck())
	m.HandleFunc("/configz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, s.configz())
	})
	m.HandleFunc(ExplainPath, s.ofAllNamespaces(s.explain))
	m.HandleFunc(ShadowPath, s.ofAllNamespaces(s.shadow))
	m.HandleFunc(StatusPath, s.ofAllNamespaces(s.status))
	m.HandlePrefix(api.Prefix, s.api(s.rights))
	if s.page != nil {
		m.Handle(strings.TrimSuffix(PagePath, "/"), http.RedirectHandler(PagePath, http.StatusMovedPermanently))
		m.HandlePrefix(PagePath, s.page)
	}
	if profiling {
		routes.Profiling{}.Install(m)
	}
	s.installZpages(m)
	return m
}

// ofAllNamespaces serves a path of former versions to those who may list the pods of all namespaces: its answers name any of
// them, and nothing in them is cut to what a viewer may read, as it is in the API's.
func (s *Server) ofAllNamespaces(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.rights.AllNamespaces(r) {
			fail(w, http.StatusForbidden, "this path names pods of all namespaces, which you may not list; query "+api.Prefix+" instead")
			return
		}
		h(w, r)
	}
}

// metrics serves the metrics that aren't disabled.
func (s *Server) metrics() http.Handler {
	return promhttp.HandlerFor(s.Metrics.enabled(), promhttp.HandlerOpts{})
}

// named returns checks as handlers take them.
func named(checks []Check) (out []healthz.HealthChecker) {
	for _, c := range checks {
		out = append(out, healthz.NamedCheck(c.Name, func(*http.Request) error { return c.Err() }))
	}
	return out
}

// fail answers with an error, as JSON with the key error. Clients show it as it is.
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
