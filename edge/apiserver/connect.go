// Package apiserver connects berth run to an API server, which may start later than Berth. The address is --master, or comes from the
// first of --kubeconfig, clientConnection.kubeconfig of --config, $KUBECONFIG, ~/.kube/config and the
// pod's service account.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/internal/version"
)

// Connection is how Berth reaches the API server. What is made of Rest, as Client is, reads
// whenever it likes and writes while the fence is open; of a shadow it never writes.
type Connection struct {
	Rest   *rest.Config
	Client kubernetes.Interface
	Fence  *leader.Fence        // nil without leader election
	Lease  kubernetes.Interface // for the Lease alone; nil without leader election
	// Version is the one whose rules to follow: the server's, or the nearest that there is. It is set
	// when the API server has answered.
	Version compat.Version

	unanswered atomic.Pointer[error] // why the API server hasn't answered; nil when it has
}

// Options say how the API server is found, and whether it may be written to.
type Options struct {
	Kubeconfig string // path, "" for none
	Master     string // address in place of the kubeconfig's, "" for that
	Shadow     bool   // it is only read
	// Config names another kubeconfig, the limits of bind calls, and the Lease.
	Config config.Scheduler
}

// Open returns a connection without asking the API server for anything. Its errors are those that no
// waiting heals: a kubeconfig or a certificate that can't be read.
func Open(o Options) (*Connection, error) {
	rc, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	s := &Connection{}
	if o.Config.LeaderElection.Enabled {
		s.Fence = leader.NewFence()
		if s.Lease, err = leader.NewClient(rc, o.Config.LeaderElection); err != nil {
			return nil, fmt.Errorf("making an API client: %w", err)
		}
	}
	s.Rest = s.guarded(rc, o.Shadow)
	if s.Client, err = kubernetes.NewForConfig(s.Rest); err != nil {
		return nil, fmt.Errorf("making an API client: %w", err)
	}
	s.unanswered.Store(&errNotAsked)
	return s, nil
}

// Connect returns a client of an API server that has answered: somebody who gave a
// wrong address learns so at once, not from caches that retry for ever. What is to be known of
// its version goes to log.
func Connect(ctx context.Context, o Options, log *slog.Logger) (*Connection, error) {
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	if err := s.ask(ctx, log); err != nil {
		return nil, err
	}
	return s, nil
}

// guarded returns a configuration whose clients write only when this Berth may.
func (s *Connection) guarded(base *rest.Config, shadow bool) *rest.Config {
	if shadow {
		return live.ReadOnly(base)
	}
	return s.Fence.Config(base)
}

// KubeconfigPath returns the file that has the API server's address, "" for the
// pod's service account.
func (o Options) KubeconfigPath() string {
	if path := cmp.Or(o.Kubeconfig, o.Config.Kubeconfig); path != "" {
		return path
	}
	if path := clientcmd.NewDefaultClientConfigLoadingRules().GetDefaultFilename(); path != "" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// restConfig reads the kubeconfig. The client's limits are those of bind calls; other
// writes have limits of their own (edge/live).
func (o Options) restConfig() (*rest.Config, error) {
	path := cmp.Or(o.Kubeconfig, o.Config.Kubeconfig)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w; set it to the path of a kubeconfig file", err)
		}
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	}
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = o.Master
	rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig, and this is not a pod with a service account: set --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w; check --kubeconfig", err)
	}
	rc.UserAgent = "berth/" + version.Get().Version
	rc.QPS, rc.Burst = o.Config.BindQPS, o.Config.BindBurst
	// Otherwise an API server of 1.37 packs each event of a watch by itself, and Berth unpacks it. kube-scheduler
	// refuses that, too: both are near the API server.
	rc.DisableCompression = true
	return rc, nil
}
