package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berthproject/berth/core"
)

// Serving are the flags of kube-scheduler's secure serving: TLS always, with a
// certificate made at the start when none is given; who asks is authenticated
// and authorised by the API server.
type Serving struct {
	secure         *apiserveroptions.SecureServingOptionsWithLoopback
	authentication *apiserveroptions.DelegatingAuthenticationOptions
	authorization  *apiserveroptions.DelegatingAuthorizationOptions
	// Profiling serves /debug/pprof.
	Profiling bool
}

// Port is where Berth serves unless told otherwise; that of kube-scheduler.
const Port = 10259

// NewServing returns kube-scheduler's defaults.
func NewServing() *Serving {
	s := &Serving{
		secure:         apiserveroptions.NewSecureServingOptions().WithLoopback(),
		authentication: apiserveroptions.NewDelegatingAuthenticationOptions(),
		authorization:  apiserveroptions.NewDelegatingAuthorizationOptions(),
		Profiling:      true,
	}
	s.authentication.TolerateInClusterLookupFailure = true
	s.authentication.RemoteKubeConfigFileOptional = true
	s.authorization.RemoteKubeConfigFileOptional = true
	s.authorization.AlwaysAllowPaths = []string{"/healthz", "/readyz", "/livez"}
	s.secure.ServerCert.CertDirectory, s.secure.ServerCert.PairName = "", "berth"
	s.secure.BindPort = Port
	return s
}

// Flags adds the flags.
func (s *Serving) Flags(fs *pflag.FlagSet) {
	s.secure.AddFlags(fs)
	s.authentication.AddFlags(fs)
	s.authorization.AddFlags(fs)
	fs.BoolVar(&s.Profiling, "profiling", s.Profiling, "serve profiles at /debug/pprof/")
}

// UseKubeconfig has the API server of a kubeconfig decide who may ask, unless
// flags say otherwise.
func (s *Serving) UseKubeconfig(path string) {
	if s.authentication.RemoteKubeConfigFile == "" {
		s.authentication.RemoteKubeConfigFile = path
	}
	if s.authorization.RemoteKubeConfigFile == "" {
		s.authorization.RemoteKubeConfigFile = path
	}
}

// Server serves what there is to see. It is made before Berth leads, and told
// when it does.
type Server struct {
	Metrics   *Metrics
	History   *History
	Questions chan func(*core.Core)
	config    any // for /configz
	log       *slog.Logger
	leading   atomic.Bool
	ready     atomic.Bool
}

// NewServer returns a server that shows a configuration at /configz.
func NewServer(config any, log *slog.Logger) *Server {
	return &Server{Metrics: NewMetrics(), History: NewHistory(keptDecisions), Questions: make(chan func(*core.Core)), config: config, log: log}
}

// Step implements live.Observer.
func (s *Server) Step(now time.Time, took time.Duration, in []step.Input, r *step.Ready) {
	s.Metrics.Step(now, took, in, r)
	s.History.Step(now, took, in, r)
	logDecisions(s.log, r)
}

// State implements live.Observer.
func (s *Server) State(c *core.Core) {
	s.ready.Store(true)
	s.Metrics.State(c)
}

// Leading says whether this Berth decides, or stands by.
func (s *Server) Leading(yes bool) { s.leading.Store(yes) }

// Run serves until the context ends; the address is returned once it listens.
func (s *Server) Run(ctx context.Context, o *Serving) (net.Addr, error) {
	if errs := append(append(o.secure.Validate(), o.authentication.Validate()...), o.authorization.Validate()...); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	if o.secure.BindPort == 0 && o.secure.Listener == nil {
		return nil, nil // switched off
	}
	if err := o.secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	var serving *genericapiserver.SecureServingInfo
	var loopback = new(genericapiserver.Config).LoopbackClientConfig
	if err := o.secure.ApplyTo(&serving, &loopback); err != nil {
		return nil, fmt.Errorf("serving on port %d: %w; choose another with --secure-port, or 0 for none", o.secure.BindPort, err)
	}
	var authn genericapiserver.AuthenticationInfo
	var authz genericapiserver.AuthorizationInfo
	if err := o.authentication.ApplyTo(&authn, serving, nil); err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	if err := o.authorization.ApplyTo(&authz); err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	addr := serving.Listener.Addr()
	stopped, _, err := serving.Serve(protect(s.handler(o.Profiling), authn.Authenticator, authz.Authorizer), 0, ctx.Done())
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	go func() { <-stopped }()
	s.log.Info("serving", "address", addr.String())
	return addr, nil
}

// protect lets only those in whom the API server allows to.
func protect(h http.Handler, authn authenticator.Request, authz authorizer.Authorizer) http.Handler {
	info := &apirequest.RequestInfoFactory{}
	failed := genericapifilters.Unauthorized(scheme.Codecs)
	h = genericapifilters.WithAuthorization(h, authz, scheme.Codecs)
	h = genericapifilters.WithAuthentication(h, authn, failed, nil, nil)
	h = genericapifilters.WithRequestInfo(h, info)
	h = genericapifilters.WithCacheControl(h)
	h = genericfilters.WithHTTPLogging(h)
	return genericfilters.WithPanicRecovery(h, info)
}

// handler has the endpoints of kube-scheduler, and /debug/explain.
func (s *Server) handler(profiling bool) http.Handler {
	m := mux.NewPathRecorderMux("berth")
	alive := healthz.PingHealthz
	ready := healthz.NamedCheck("leading-or-standing-by", func(*http.Request) error {
		if s.leading.Load() && !s.ready.Load() {
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

// Explained is what /debug/explain answers.
type Explained struct {
	At time.Time `json:"at"`
	core.Explanation
	// Decisions are the last of the pod, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// patience is how long a question waits for the core.
const patience = 10 * time.Second

func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	pod := r.URL.Query().Get("pod")
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok {
		fail(w, http.StatusBadRequest, fmt.Sprintf("pod is %q; give it as ?pod=NAMESPACE/NAME", pod))
		return
	}
	if !s.leading.Load() {
		fail(w, http.StatusServiceUnavailable, "this Berth stands by; ask the one that leads")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
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

func fail(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]string{"error": why})
}

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
