// Package kubelets plays the kubelet of every node: it renews leases, reports nodes
// ready, runs pods that are bound, completes those whose annotation says how long they
// run, and removes deleted pods within their grace period.
//
//	kubelets.go   options, caches, workers
//	pods.go       what happens to a pod from its binding to its removal
//	resizes.go    resizes in place
//	nodes.go      a node's readiness and its lease
//	forward.go    port-forwards to what runs on this machine
//	describe.go   what a node is: labels, addresses, versions, what can be allocated
//	addresses.go  IP addresses of nodes and pods
//	timetable.go  calls that are due at a time
//
// Caches say what is due when; nothing waits in a handler. Due calls go to workers,
// and a call whose failure may pass is due again a second later.
package kubelets

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/edge/follow"
)

// Annotations on pods.
const (
	RunFor    = "berth.dev/run-for"    // duration after which the pod succeeds
	StopAfter = "berth.dev/stop-after" // how long the pod takes to stop, at most its grace period; default 1s
)

// RealNode is the label of nodes that have a real kubelet. Simulated ones leave them and their pods alone.
const RealNode = "berth.dev/real-node"

// Options of the kubelets. LeaseInterval and Workers must be above 0.
type Options struct {
	LeaseInterval time.Duration // between renewals of a node's lease
	StartDelay    time.Duration // from bound to running
	Workers       int           // how many API calls are under way at a time
	// Port is where the kubelet of every node serves on loopback; 0 for nowhere.
	Port int
}

// Command returns the component's command.
func Command() *cobra.Command {
	var kubeconfig string
	o := Options{}
	cmd := &cobra.Command{
		Use: "kubelets", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, err := api.Dial(kubeconfig)
			if err != nil {
				return err
			}
			return Run(ctx, client, o)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "")
	cmd.Flags().DurationVar(&o.LeaseInterval, "lease-interval", 60*time.Second, "")
	cmd.Flags().DurationVar(&o.StartDelay, "start-delay", 500*time.Millisecond, "")
	cmd.Flags().IntVar(&o.Workers, "workers", 16, "")
	cmd.Flags().IntVar(&o.Port, "port", 0, "")
	return cmd
}

// kubelets are all kubelets of a cluster. Handlers of the caches and workers share it.
type kubelets struct {
	client kubernetes.Interface
	o      Options
	wake   chan struct{} // holds one token when the timetable has changed

	nodeIPs, podIPs *addresses

	mu    sync.Mutex
	due   timetable               // guarded by mu
	pods  map[types.UID]*podState // guarded by mu, with the states
	nodes map[string]*v1.Node     // nodes that exist, by name, as last seen; guarded by mu
	// deferred are the pods whose resize is; guarded by mu.
	deferred map[types.UID]bool
}

func newKubelets(client kubernetes.Interface, o Options) *kubelets {
	return &kubelets{
		client: client, o: o, wake: make(chan struct{}, 1), pods: map[types.UID]*podState{}, nodes: map[string]*v1.Node{}, deferred: map[types.UID]bool{},
		nodeIPs: newAddresses("10.128.0.0"), podIPs: newAddresses("100.64.0.0"),
	}
}

// Run plays kubelet until the context ends. It returns an error only when it can't serve port-forwards;
// calls that fail are repeated or given up, as a kubelet would.
func Run(ctx context.Context, client kubernetes.Interface, o Options) error {
	k := newKubelets(client, o)
	if o.Port != 0 {
		if err := serveForwards(ctx, o.Port); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for _, c := range k.caches() {
		wg.Go(func() { c.Run(ctx) })
	}
	jobs := make(chan func(context.Context), 1024)
	for range o.Workers {
		wg.Go(func() {
			for job := range jobs {
				job(ctx)
			}
		})
	}
	k.loop(ctx, jobs)
	close(jobs)
	wg.Wait()
	return nil
}

// caches returns the caches of the nodes, and of the pods that kubelets have: bound and not ended.
func (k *kubelets) caches() []*follow.Cache {
	core := k.client.CoreV1()
	trim := func(object any) (any, error) {
		object.(metav1.Object).SetManagedFields(nil)
		return object, nil
	}
	pods := follow.New("pods", &v1.Pod{}, core.Pods(v1.NamespaceAll), k.client, follow.Options{Transform: trim, Match: func(l *metav1.ListOptions) {
		l.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
	}})
	pods.Tell(follow.Reader{Set: func(o any) { k.podChanged(o.(*v1.Pod)) }, Gone: func(o any) { k.podGone(o.(*v1.Pod).UID) }})
	nodes := follow.New("nodes", &v1.Node{}, core.Nodes(), k.client, follow.Options{Transform: trim})
	nodes.Tell(follow.Reader{Set: func(o any) { k.nodeChanged(o.(*v1.Node)) }, Gone: func(o any) { k.nodeGone(o.(*v1.Node).Name) }})
	return []*follow.Cache{nodes, pods}
}
