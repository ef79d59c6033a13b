package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// This file is how berth explain, status and top reach a running Berth, with the credentials of the
// user's kubeconfig: at the address that --server gives (reach_direct.go), or through the API server
// (reach_leader.go finds the pod, reach_vouch.go checks that it is Berth's, reach_tunnel.go opens the
// way there). What must
// hold: each way to fail names the flag to look at, or the right that is missing.

// reachFlags say which Berth is asked, and as whom.
type reachFlags struct {
	kubeconfig, context, namespace string
	lease, pod                     string // as NAMESPACE/NAME; pod "" for the holder of the Lease
	serviceAccount                 string // of Berth's pods, as NAMESPACE/NAME; "" for the chart's, in the namespace of the Lease
	port                           int    // of that pod, 0 for what the Lease says
	server                         string // address, such as https://localhost:10259; "" to go through the API server
	tokenFile                      string // path, "" to ask without a token; with server
	ca                             string // path of certificates in PEM
	insecure                       bool   // accept any certificate; with server
}

func (f *reachFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "path to a kubeconfig file")
	fs.StringVar(&f.context, "context", "", "kubeconfig context to use")
	fs.StringVar(&f.lease, "lease", "kube-system/berth", "Lease held by the leader; with --mode=autoscaler kube-system/cluster-autoscaler")
	fs.StringVar(&f.pod, "pod", "", "pod of Berth to query, as NAMESPACE/NAME (default: the holder of the Lease)")
	fs.StringVar(&f.serviceAccount, "service-account", "", "service account that Berth's pods run under, as NAMESPACE/NAME (default: that of the Helm release, in the namespace of the Lease)")
	fs.IntVar(&f.port, "port", 0, "port of that pod (default: the one in the Lease)")
	fs.StringVar(&f.server, "server", "", "address of Berth, such as https://localhost:10259, to connect to it directly and not through the API server")
	fs.StringVar(&f.tokenFile, "token-file", "", "with --server: path to a file with a bearer token, sent in place of the kubeconfig's credentials")
	fs.StringVar(&f.ca, "certificate-authority", "", "path to the CA certificate that Berth's certificate is verified with")
	fs.BoolVar(&f.insecure, "insecure-skip-tls-verify", false, "with --server: don't verify Berth's certificate, and don't send it the kubeconfig's credentials")
}

// kubeconfigFile returns the kubeconfig that the flags name, as kubectl reads it.
func (f *reachFlags) kubeconfigFile() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// podNamespace returns the namespace of a pod that is named without one.
func (f *reachFlags) podNamespace() (string, error) {
	if f.namespace != "" {
		return f.namespace, nil
	}
	namespace, _, err := f.kubeconfigFile().Namespace()
	if err != nil && !clientcmd.IsEmptyConfig(err) { // with --server there may be no kubeconfig
		return "", fmt.Errorf("reading the kubeconfig: %w; set the namespace with --namespace", err)
	}
	return cmp.Or(namespace, "default"), nil
}

// connection is a way to one running Berth.
type connection struct {
	http *http.Client
	base string // of its URLs
	// refused words an answer 401 or 403 for a path.
	refused func(status int, path string) error
	close   func()
	// to says for people which Berth it is.
	to string
}

// open returns a connection. It is to be closed.
func (f *reachFlags) open(ctx context.Context) (*connection, error) {
	if f.server != "" {
		return f.direct(ctx)
	}
	for flag, given := range map[string]bool{"--token-file": f.tokenFile != "", "--insecure-skip-tls-verify": f.insecure} {
		if given {
			return nil, fmt.Errorf("%s needs --server; without it the credentials come from the kubeconfig, and the fingerprint of Berth's certificate from the Lease", flag)
		}
	}
	return f.throughAPIServer(ctx)
}

// ask gets one path over a connection of its own.
func (f *reachFlags) ask(ctx context.Context, path string) ([]byte, error) {
	c, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.get(ctx, path)
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 16 << 20

// get gets a path and returns the body of a good answer.
func (c *connection) get(ctx context.Context, path string) ([]byte, error) {
	// Berth answers between two Steps, and gives up long before this (503).
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, c.unanswered(err)
	}
	if resp.StatusCode != http.StatusOK {
		path, _, _ = strings.Cut(path, "?")
		return nil, c.refusal(resp, path, body)
	}
	return body, nil
}

// unanswered words that no answer came.
func (c *connection) unanswered(err error) error {
	if strings.HasPrefix(c.base, "https://"+insideTunnel) {
		return fmt.Errorf("querying %s: %w", c.to, err)
	}
	return fmt.Errorf("querying Berth: %w; check --server, and --certificate-authority or --insecure-skip-tls-verify", err)
}

// refusal returns the error of an answer that isn't good: what to do about it, where that is
// known, otherwise what Berth answers.
func (c *connection) refusal(resp *http.Response, path string, body []byte) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return c.refused(resp.StatusCode, path)
	}
	answer := struct{ Error string }{}
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		return errors.New(answer.Error)
	}
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s does not serve %s: it is an older version of Berth, or another server", c.to, path)
	}
	return fmt.Errorf("%s answered with status %s", c.to, resp.Status)
}

// program returns what the user has typed to call this program: berth or kubectl berth.
func program(cmd *cobra.Command) string { return cmd.Root().CommandPath() }
