package observe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/ui"
)

// Serving are the flags of kube-scheduler's secure serving, and what comes of them:
// TLS always, with a certificate made at the start when none is given. The API server
// says who asks and whether they may get a path, except for health, which is open.
type Serving struct {
	secure         *apiserveroptions.SecureServingOptions
	authentication *apiserveroptions.DelegatingAuthenticationOptions
	authorization  *apiserveroptions.DelegatingAuthorizationOptions
	// Profiling serves /debug/pprof. With Contention every event that blocks a goroutine is
	// counted for it.
	Profiling, Contention bool
	// Plain is the address of the HTTP server without TLS, "" for none.
	Plain string
	// Disabled are names of metrics that aren't served.
	Disabled []string
	// Page serves the web page, and WhatIf has the API answer what-ifs.
	Page, WhatIf bool
}

// Port is where Berth serves unless told otherwise; that of kube-scheduler.
const Port = 10259

// NewServing returns kube-scheduler's defaults.
func NewServing() *Serving {
	s := &Serving{
		secure:         apiserveroptions.NewSecureServingOptions(),
		authentication: apiserveroptions.NewDelegatingAuthenticationOptions(),
		authorization:  apiserveroptions.NewDelegatingAuthorizationOptions(),
		Profiling:      true,
		Page:           true,
	}
	s.authentication.TolerateInClusterLookupFailure = true
	s.authentication.RemoteKubeConfigFileOptional = true
	s.authentication.CustomRoundTripperFn = boundCalls
	s.authorization.RemoteKubeConfigFileOptional = true
	s.authorization.AlwaysAllowPaths = []string{"/healthz", "/readyz", "/livez", "/health-check"}
	s.secure.ServerCert.CertDirectory, s.secure.ServerCert.PairName = "", "berth"
	s.secure.BindPort = Port
	return s
}

// Flags adds the flags to the sets of their sections, which are called as kube-scheduler's are.
func (s *Serving) Flags(set func(section string) *pflag.FlagSet) {
	s.secure.AddFlags(set("secure serving"))
	s.authentication.AddFlags(set("authentication"))
	s.authorization.AddFlags(set("authorization"))
	fs := set("metrics")
	fs.StringVar(&s.Plain, "address", s.Plain, "address to also serve /metrics and /health-check on, without TLS and authentication, as Cluster Autoscaler does on :8085")
	fs.StringSliceVar(&s.Disabled, "disabled-metrics", s.Disabled, "names of metrics that are not served")
	fs = set("web page")
	fs.BoolVar(&s.Page, "ui", s.Page, "serve the web page at /ui/, to whoever may get it")
	fs.BoolVar(&s.WhatIf, "what-if", s.WhatIf, "answer /api/v1alpha1/whatif, to whoever may get it: an answer costs the core about as much as a plan")
	fs = set("profiling")
	fs.BoolVar(&s.Profiling, "profiling", s.Profiling, "enable profiling at /debug/pprof/")
	fs.BoolVar(&s.Contention, "contention-profiling", s.Contention, "with --profiling: enable block profiling at /debug/pprof/block")
}

// UseKubeconfig makes the API server of a kubeconfig decide who may ask, unless
// flags say otherwise.
func (s *Serving) UseKubeconfig(path string) {
	if s.authentication.RemoteKubeConfigFile == "" {
		s.authentication.RemoteKubeConfigFile = path
	}
	if s.authorization.RemoteKubeConfigFile == "" {
		s.authorization.RemoteKubeConfigFile = path
	}
}

// Validate refuses flags that can't be used, and files of certificates that aren't there.
func (s *Serving) Validate() error {
	errs := append(append(s.secure.Validate(), s.authentication.Validate()...), s.authorization.Validate()...)
	for _, file := range []struct{ flag, path string }{
		{"--tls-cert-file", s.secure.ServerCert.CertKey.CertFile}, {"--tls-private-key-file", s.secure.ServerCert.CertKey.KeyFile},
		{"--client-ca-file", s.authentication.ClientCert.ClientCA}, {"--requestheader-client-ca-file", s.authentication.RequestHeader.ClientCAFile},
	} {
		if file.path == "" {
			continue
		}
		if _, err := os.Stat(file.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; give the path of a PEM file", file.flag, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Run begins to serve, until the context ends, and returns the address: nil when the
// flags switch serving off. An error says which flag can't be used. Berth then ends: what nobody can
// look at isn't to decide.
func (s *Server) Run(ctx context.Context, o *Serving) (net.Addr, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Profiling && o.Contention {
		runtime.SetBlockProfileRate(1)
	}
	s.Metrics.Disable(o.Disabled...)
	if o.Plain != "" {
		if err := s.runPlain(ctx, o.Plain); err != nil {
			return nil, err
		}
	}
	if o.secure.BindPort == 0 && o.secure.Listener == nil {
		return nil, nil
	}
	if err := o.ensureCertificate(); err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	port := o.secure.BindPort // ApplyTo changes it
	var serving *genericapiserver.SecureServingInfo
	if err := o.secure.ApplyTo(&serving); err != nil {
		return nil, fmt.Errorf("serving on port %d: %w; choose another with --secure-port, or 0 to disable serving", port, err)
	}
	var authn genericapiserver.AuthenticationInfo
	var authz genericapiserver.AuthorizationInfo
	if err := o.authentication.ApplyTo(&authn, serving, nil); err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	if err := o.authorization.ApplyTo(&authz); err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	s.rights, s.whatIf = api.NewRights(authz.Authorizer), o.WhatIf
	if o.Page {
		s.page = http.StripPrefix(strings.TrimSuffix(PagePath, "/"), ui.Handler())
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

// PortOf returns the port of an address, 0 for none.
func PortOf(address net.Addr) int {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// runPlain begins to serve what Cluster Autoscaler serves to everybody, until the context ends. Nothing
// there names a pod.
func (s *Server) runPlain(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--address: serving on %s: %w; choose another address, or omit it", address, err)
	}
	m := http.NewServeMux()
	m.Handle("/metrics", s.metrics())
	m.Handle("/health-check", s.HealthCheck())
	server := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing more is served either way
	go func() {
		if err := server.Serve(listener); err != nil && ctx.Err() == nil {
			s.log.Error("serving without TLS stopped", "address", address, "err", err)
		}
	}()
	s.log.Info("serving metrics and the health check without TLS", "address", listener.Addr().String())
	return nil
}

// protect lets only those in whom the API server allows to, in the order that
// genericapiserver's own chain of handlers has.
func protect(h http.Handler, authn authenticator.Request, authz authorizer.Authorizer) http.Handler {
	info := &apirequest.RequestInfoFactory{}
	failed := genericapifilters.Unauthorized(scheme.Codecs)
	h = genericapifilters.WithAuthorization(h, beyondDiscovery{authz}, scheme.Codecs)
	h = impersonation.WithImpersonation(h, authz, scheme.Codecs)
	h = genericapifilters.WithAuthentication(h, authn, failed, nil, nil)
	h = genericapifilters.WithRequestInfo(h, info)
	h = genericapifilters.WithCacheControl(h)
	h = genericfilters.WithHTTPLogging(h)
	return genericfilters.WithPanicRecovery(h, info)
}
