// Package kubelets plays the kubelet of every node: it renews leases, reports nodes
// ready, runs pods that are bound, completes those whose annotation says how long they
// run, and removes deleted pods within their grace period.
//
//	kubelets.go   options, informers, workers
//	pods.go       what happens to a pod from its binding to its removal
//	nodes.go      a node's readiness and its lease
//	forward.go    port-forwards to what runs on this machine
//	describe.go   what a node is: labels, addresses, versions, what can be allocated
//	addresses.go  IP addresses of nodes and pods
//	timetable.go  calls that are due at a time
//
// Informers say what is due when; nothing waits in a handler. Due calls go to workers,
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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/devcluster/api"
)

// Annotations on pods.
const (
	RunFor    = "berth.dev/run-for"    // duration after which the pod succeeds
	StopAfter = "berth.dev/stop-after" // how long the pod takes to stop, at most its grace period; default 1s
)

// Options of the kubelets.
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

// kubelets are all kubelets of a cluster.
type kubelets struct {
	client kubernetes.Interface
	o      Options
	wake   chan struct{} // holds one token when the timetable has changed

	nodeIPs, podIPs *addresses

	mu    sync.Mutex
	due   timetable               // guarded by mu
	pods  map[types.UID]*podState // guarded by mu, with the states
	nodes map[string]bool         // nodes that exist, by name; guarded by mu
}

func newKubelets(client kubernetes.Interface, o Options) *kubelets {
	return &kubelets{
		client: client, o: o, wake: make(chan struct{}, 1), pods: map[types.UID]*podState{}, nodes: map[string]bool{},
		nodeIPs: newAddresses("10.128.0.0"), podIPs: newAddresses("100.64.0.0"),
	}
}

// Run plays kubelet until the context ends.
func Run(ctx context.Context, client kubernetes.Interface, o Options) error {
	k := newKubelets(client, o)
	if o.Port != 0 {
		if err := serveForwards(ctx, o.Port); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if m, ok := obj.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return obj, nil
	}))
	if err := watch(podInformer(factory), k.podChanged, func(p *v1.Pod) { k.podGone(p.UID) }); err != nil {
		return err
	}
	if err := watch(factory.Core().V1().Nodes().Informer(), k.nodeChanged, func(n *v1.Node) { k.nodeGone(n.Name) }); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	var wg sync.WaitGroup
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

// podInformer returns an informer of the pods that kubelets have: bound and not ended.
func podInformer(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.InformerFor(&v1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		tweak := func(l *metav1.ListOptions) {
			l.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
		}
		return cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(c.CoreV1().RESTClient(), "pods", "", tweak), &v1.Pod{}, resync, cache.Indexers{})
	})
}

// watch has an informer call changed with each object that is added or updated, and gone
// with each that is deleted.
func watch[T any](informer cache.SharedIndexInformer, changed, gone func(T)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj.(T)) }, UpdateFunc: func(_, obj any) { changed(obj.(T)) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok { // the deletion itself was missed
				obj = d.Obj
			}
			gone(obj.(T))
		},
	})
	return err
}
