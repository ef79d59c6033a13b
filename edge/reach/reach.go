// Package reach connects berth explain, status and top with a running Berth, with the credentials of
// the user's kubeconfig: at the address that --server gives (direct.go), or through the API server
// (leader.go finds the pod, vouch.go checks that it is Berth's, tunnel.go opens the way there).
//
// What must hold: each way to fail names the flag to look at, or the right that is missing.
package reach

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Flags say which Berth is asked, and as whom.
type Flags struct {
	// Kubeconfig is a path and Context a name in it; "" for what kubectl would use.
	Kubeconfig, Context string
	Namespace           string // of a pod that is named without one, "" for the context's
	Lease, Pod          string // as NAMESPACE/NAME; Pod "" for the holder of the Lease
	ServiceAccount      string // of Berth's pods, as NAMESPACE/NAME; "" for the chart's, in the namespace of the Lease
	Port                int    // of that pod, 0 for what the Lease says
	Server              string // address, such as https://localhost:10259; "" to go through the API server
	TokenFile           string // path, "" to ask without a token; with Server
	CA                  string // path of certificates in PEM
	Insecure            bool   // accept any certificate; with Server
	// Shadow asks for a shadow, which holds no Lease: its pod is found by its label.
	Shadow bool
	// kube are kubectl's flags; nil before they are asked for.
	kube *genericclioptions.ConfigFlags
	// registered has the flags that a command line may set; nil before Register.
	registered *pflag.FlagSet
}

// kubeFlags returns the flags by which kubectl chooses a cluster and a user. Those that kubectl has for the API
// server's own address and certificate are Berth's here.
func (f *Flags) kubeFlags() *genericclioptions.ConfigFlags {
	if f.kube == nil {
		k := genericclioptions.NewConfigFlags(false)
		k.KubeConfig, k.Context, k.Namespace = &f.Kubeconfig, &f.Context, &f.Namespace
		k.APIServer, k.Insecure, k.CAFile, k.CacheDir = nil, nil, nil, nil
		f.kube = k
	}
	return f.kube
}

// RegisterKubeconfig adds the flags that choose a cluster and a user, without those of Berth.
func (f *Flags) RegisterKubeconfig(fs *pflag.FlagSet) {
	k := f.kubeFlags()
	k.Namespace = nil
	k.AddFlags(fs)
	k.Namespace = &f.Namespace
	fs.VisitAll(func(flag *pflag.Flag) { // in the style of the other flags
		if first, _, _ := strings.Cut(flag.Usage, " "); first != strings.ToUpper(first) {
			flag.Usage = strings.ToLower(flag.Usage[:1]) + flag.Usage[1:]
		}
		flag.Usage = strings.TrimSuffix(flag.Usage, ".")
	})
}

// Complete has shells complete the names of the kubeconfig.
func (f *Flags) Complete(cmd *cobra.Command) {
	for flag, names := range map[string]func(*clientcmdapi.Config) []string{
		"context": func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) },
		"cluster": func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) },
		"user":    func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) },
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			raw, err := f.kubeFlags().ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(&raw), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// Register adds the flags to a command. Namespace has none: only some commands name pods.
func (f *Flags) Register(fs *pflag.FlagSet) {
	f.registered = fs
	f.RegisterKubeconfig(fs)
	fs.StringVar(&f.Lease, "lease", "kube-system/berth", "Lease held by the leader; with --mode=autoscaler kube-system/cluster-autoscaler")
	fs.StringVar(&f.Pod, "pod", "", "pod of Berth to query, as NAMESPACE/NAME (default: the holder of the Lease)")
	fs.StringVar(&f.ServiceAccount, "service-account", "", "service account that Berth's pods run under, as NAMESPACE/NAME (default: that of the Helm release, in the namespace of the Lease)")
	fs.IntVar(&f.Port, "port", 0, "port of that pod (default: the one in the Lease)")
	fs.StringVar(&f.Server, "server", "", "address of Berth, such as https://localhost:10259, to connect to it directly and not through the API server")
	fs.StringVar(&f.TokenFile, "token-file", "", "with --server: path to a file with a bearer token, sent in place of the kubeconfig's credentials")
	fs.StringVar(&f.CA, "certificate-authority", "", "path to the CA certificate that Berth's certificate is verified with")
	fs.BoolVar(&f.Insecure, "insecure-skip-tls-verify", false, "with --server: don't verify Berth's certificate, and don't send it the kubeconfig's credentials")
}

// answerWithin is how long the API server may take to answer.
const answerWithin = 10 * time.Second

// errNoKubeconfig says that there is neither a kubeconfig nor a service account.
var errNoKubeconfig = errors.New("there is no kubeconfig: set --kubeconfig or $KUBECONFIG")

// restConfig returns what the flags and the kubeconfig say about the API server and the user.
func (f *Flags) restConfig() (*rest.Config, error) {
	loader := f.kubeFlags().ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	switch inCluster := os.Getenv("KUBERNETES_SERVICE_HOST") != ""; {
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w; set --kubeconfig or $KUBECONFIG", err)
	case clientcmdapi.IsConfigEmpty(&raw) && !inCluster:
		return nil, errNoKubeconfig
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w; check --kubeconfig, --context, --cluster and --user", err)
	}
	return cfg, nil
}

// PodNamespace returns the namespace of a pod that is named without one.
func (f *Flags) PodNamespace() (string, error) {
	if f.Namespace != "" {
		return f.Namespace, nil
	}
	namespace, _, err := f.kubeFlags().ToRawKubeConfigLoader().Namespace()
	if err != nil && !clientcmd.IsEmptyConfig(err) && !(os.IsNotExist(err) && f.Kubeconfig == "") { // with --server there may be no kubeconfig
		return "", fmt.Errorf("reading the kubeconfig: %w; set --kubeconfig or $KUBECONFIG, or give the namespace with --namespace", err)
	}
	return cmp.Or(namespace, "default"), nil
}

// Connection is a way to one running Berth. It stays open between questions, so that a port-forward is
// made once.
type Connection struct {
	http *http.Client
	base string // of its URLs
	// refused words an answer 401 or 403 for a path.
	refused func(status int, path string) error
	close   func()
	// to says for people which Berth it is.
	to string
	// direct says that it is at the address of --server.
	direct bool
	// within is how long an answer may take; 0 for answerOfBerth.
	within time.Duration
}

// answerOfBerth is how long Berth may take to answer, unless --request-timeout says so: it answers between two
// Steps, and gives up long before this (503).
const answerOfBerth = 30 * time.Second

// Open returns a connection, which the caller must close.
func (f *Flags) Open(ctx context.Context) (*Connection, error) {
	if f.Server != "" {
		return f.direct(ctx)
	}
	return f.throughAPIServer(ctx)
}

// Close ends the connection.
func (c *Connection) Close() { c.close() }

// maxAnswer is how much of an answer is read.
const maxAnswer = 16 << 20

// Get gets a path and returns the body of a good answer.
func (c *Connection) Get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.within, answerOfBerth))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unanswered(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unanswered(err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("%s answered with more than %d bytes, which no Berth does: check --server", c.to, maxAnswer)
	}
	if resp.StatusCode != http.StatusOK {
		path, _, _ = strings.Cut(path, "?")
		return nil, c.refusal(resp, path, body)
	}
	return body, nil
}

// unanswered words that no answer came.
func (c *Connection) unanswered(err error) error {
	if !c.direct {
		return fmt.Errorf("querying %s: %w", c.to, err)
	}
	return fmt.Errorf("querying Berth: %w; check --server, and --certificate-authority or --insecure-skip-tls-verify", err)
}

// refusal returns the error of an answer that isn't good: what to do about it, where that is
// known, otherwise what Berth answers.
func (c *Connection) refusal(resp *http.Response, path string, body []byte) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return answered{refusedError{c.refused(resp.StatusCode, path), resp.StatusCode}}
	}
	answer := struct{ Error string }{}
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		if resp.StatusCode == http.StatusServiceUnavailable {
			return errors.New(answer.Error)
		}
		return answered{errors.New(answer.Error)}
	}
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s does not serve %s: it is an older version of Berth, or another server", c.to, path)
	}
	return fmt.Errorf("%s answered with status %s", c.to, resp.Status)
}

// noLeader is an error that ends by itself once an instance leads, or a new leader has written the Lease.
type noLeader struct{ error }

// Unwrap lets callers see what is wrapped.
func (e noLeader) Unwrap() error { return e.error }

// NoLeader reports whether an error is that no instance leads, or that the instance which was reached isn't the one
// that does: waiting may help, and other flags won't.
func NoLeader(err error) bool { return errors.As(err, &noLeader{}) }

// Hopeless reports whether a command that has waited can't wait any longer, since another command line or another right
// is needed: a server without TLS, a certificate that is refused, or 403. A name that isn't known any more is none of
// these: without a VPN, names of the cluster are unknown for a while.
func Hopeless(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var refused refusedError
	switch {
	case NoLeader(err):
		return false
	case apierrors.IsForbidden(err): // by the API server, for the Lease or the pod
		return true
	case errors.As(err, &refused):
		return refused.status == http.StatusForbidden
	}
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &x509.UnknownAuthorityError{}) || errors.As(err, &x509.HostnameError{}) ||
		errors.As(err, &x509.CertificateInvalidError{})
}

// Unauthenticated reports whether an error is an answer 401, of the API server or of Berth. The next attempt may succeed:
// credential plugins renew a token after a 401, and Berth answers 401 when its own TokenReview fails.
func Unauthenticated(err error) bool {
	var refused refusedError
	return apierrors.IsUnauthorized(err) || errors.As(err, &refused) && refused.status == http.StatusUnauthorized
}

// refusedError is an answer with the status 401 or 403.
type refusedError struct {
	error
	status int
}

// Unwrap lets callers see what is wrapped.
func (e refusedError) Unwrap() error { return e.error }

// answered is an error that the API answers with.
type answered struct{ error }

// Unwrap lets callers see what is wrapped.
func (e answered) Unwrap() error { return e.error }

// Answered reports whether an error is an answer: another Berth would answer the same. It isn't when nothing answered,
// or an instance that stands by.
func Answered(err error) bool { return errors.As(err, &answered{}) }
