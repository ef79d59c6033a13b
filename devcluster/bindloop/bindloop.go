// Package bindloop makes the API calls of a scheduler without any scheduling: it binds
// each pending pod to the next node in turn, with the writes that allocate devices to its
// claims and those that have other pods leave, and writes events if wanted. No scheduler can bind
// more pods a second on that API server, so its rate is the ceiling that a benchmark reports beside
// the schedulers' rates.
//
//	bindloop.go  which pods, and their binds
//	claims.go    the writes of claims for devices
//	victims.go   the writes for pods that leave
package bindloop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/devcluster/api"
)

// workers is how many pods are bound at a time: as many as Berth does.
const workers = 32

// Command returns the component's command.
func Command() *cobra.Command {
	var o options
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "bindloop", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, err := api.Dial(kubeconfig)
			if err != nil {
				return err
			}
			return run(ctx, client, o)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "")
	cmd.Flags().StringVar(&o.namespace, "namespace", "", "")
	cmd.Flags().BoolVar(&o.events, "events", false, "")
	cmd.Flags().StringVar(&o.victims, "victims", "", "")
	cmd.Flags().IntVar(&o.each, "victims-each", 0, "")
	return cmd
}

// options are what to do.
type options struct {
	namespace string // of the pods to bind
	events    bool
	victims   string // the namespace of pods that leave
	each      int    // how many leave a node for each pod; 0 for none
}

// loop binds the pods of a namespace.
type loop struct {
	client  kubernetes.Interface
	nodes   []string
	events  bool
	claims  claims
	victims victims

	mu    sync.Mutex
	begun map[types.UID]bool // pods whose calls have begun; guarded by mu
	next  int                // the node of the next pod; guarded by mu
}

// run binds the pods of a namespace that have no node, also those that come later, until the context ends.
func run(ctx context.Context, client kubernetes.Interface, o options) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	l := &loop{client: client, events: o.events, begun: map[types.UID]bool{}}
	if l.victims, err = newVictims(ctx, client, o.victims, o.each); err != nil {
		return err
	}
	for i := range nodes.Items {
		l.nodes = append(l.nodes, nodes.Items[i].Name)
	}
	waiting := make(chan *v1.Pod, 1<<16)
	if err := l.watch(ctx, o.namespace, func(p *v1.Pod) { waiting <- p }); err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	for range workers {
		work.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case p := <-waiting:
					if err := l.bind(ctx, p, l.nextNode()); err != nil && ctx.Err() == nil {
						return err
					}
				}
			}
		})
	}
	return work.Wait()
}

// watch passes on each pod without a node when its claims are there. Claims are read before pods; of one that comes
// later, every claim that comes is a reason to look again.
func (l *loop) watch(ctx context.Context, namespace string, ready func(*v1.Pod)) error {
	made := informers.NewSharedInformerFactoryWithOptions(l.client, 0, informers.WithNamespace(namespace)).Resource().V1().ResourceClaims()
	l.claims = claims{client: l.client, cache: made.Lister().ResourceClaims(namespace), shared: map[string]*shared{}}
	pods := informers.NewSharedInformerFactoryWithOptions(l.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "").String()
		})).Core().V1().Pods()
	look := func(p *v1.Pod) {
		if l.claims.there(p) && l.begin(p) {
			ready(p)
		}
	}
	changed := func(o any) { look(o.(*v1.Pod)) }
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }})
	if err != nil {
		return err
	}
	if _, err := made.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if owner := metav1.GetControllerOf(o.(metav1.Object)); owner != nil {
			if p, err := pods.Lister().Pods(namespace).Get(owner.Name); err == nil {
				look(p)
			}
		}
	}}); err != nil {
		return err
	}
	go made.Informer().RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), made.Informer().HasSynced) {
		return errors.New("reading claims: interrupted")
	}
	go pods.Informer().RunWithContext(ctx)
	return nil
}

// begin reports whether a pod's calls are to begin: once.
func (l *loop) begin(p *v1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.begun[p.UID]
	l.begun[p.UID] = true
	return !again && p.DeletionTimestamp == nil
}

// nextNode returns the nodes in turn.
func (l *loop) nextNode() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.nodes[(l.next-1)%len(l.nodes)]
}

// bind makes all calls of a pod.
func (l *loop) bind(ctx context.Context, p *v1.Pod, node string) error {
	if err := l.victims.leave(ctx, p, node, l.events); err != nil {
		return err
	}
	if err := l.claims.allocate(ctx, p, node); err != nil {
		return err
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := l.client.CoreV1().Pods(p.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil || !l.events {
		return err
	}
	_, err := l.client.EventsV1().Events(p.Namespace).Create(ctx, event(p, "Scheduled", "Binding", fmt.Sprintf("Successfully assigned %s/%s to %s", p.Namespace, p.Name, node)), metav1.CreateOptions{})
	return err
}
