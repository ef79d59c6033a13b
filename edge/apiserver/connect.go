// Package apiserver connects berth run to an API server. The address is --master, or comes from the
// first of --kubeconfig, clientConnection.kubeconfig of --config, $KUBECONFIG, ~/.kube/config and the
// pod's service account.
package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
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
	// Version is the one whose rules to follow: the server's, or the nearest that there is.
	Version compat.Version
}

// answerWithin is how long the API server may take to say its version at start-up.
const answerWithin = 10 * time.Second

// Options say how the API server is found, and whether it may be written to.
type Options struct {
	Kubeconfig string // path, "" for none
	Master     string // address in place of the kubeconfig's, "" for that
	Shadow     bool   // it is only read
	// Config names another kubeconfig, the limits of bind calls, and the Lease.
	Config config.Scheduler
}

// Connect returns a client of an API server that has answered: somebody who gave a
// wrong address learns so at once, not from caches that retry for ever. What is to be known of
// its version goes to log.
func Connect(ctx context.Context, o Options, log *slog.Logger) (*Connection, error) {
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
	v, err := s.answers(ctx)
	if err != nil {
		return nil, err
	}
	if note := judgeVersion(v); note != "" {
		log.Warn(note)
	}
	s.Version = followed(v)
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
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	rc.UserAgent = "berth/" + version.Get().Version
	rc.QPS, rc.Burst = o.Config.BindQPS, o.Config.BindBurst
	return rc, nil
}

// answers asks the API server for its version, for answerWithin at most. The call
// takes no context, so it runs in a goroutine that outlives this one on a timeout.
func (s *Connection) answers(ctx context.Context) (*apiversion.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	type answer struct {
		version *apiversion.Info
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := s.Client.Discovery().ServerVersion()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, fmt.Errorf("the API server at %s is not reachable: %w; check that it is running and that the kubeconfig points to it", s.Rest.Host, a.err)
		}
		return a.version, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the API server at %s did not answer within 10 seconds; check that it is running and that the kubeconfig points to it", s.Rest.Host)
	}
}
