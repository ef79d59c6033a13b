package demo

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file is the nodes of a demo and its pods as informers deliver them. What must hold:
// informers write what is guarded by mu, and whoever counts reads it under the lock.

// fleet is all nodes of the cluster. count may be called at any time, and is of one instant.
type fleet struct {
	price map[string]float64 // per hour, by node group

	mu    sync.Mutex
	named map[string]nodeSeen // guarded by mu
}

// nodeSeen is what a node's last event said. Amounts are in cores and bytes.
type nodeSeen struct {
	group       string
	ready       bool
	draining    bool       // has the taint of nodes that are being deleted
	cordoned    bool       // takes no pods
	candidate   bool       // has the soft taint of nodes that could be removed
	allocatable [2]float64 // CPU and memory
}

// nodeCounts is how many nodes there are; each is one of starting, ready and draining.
type nodeCounts struct {
	starting, ready, draining int
	cordoned, candidates      int        // of all these
	hourly                    float64    // price of all
	allocatable               [2]float64 // CPU and memory of all
}

func (c nodeCounts) all() int { return c.starting + c.ready + c.draining }

// newFleet returns the nodes that exist, and follows them until the context ends.
func newFleet(ctx context.Context, bed *testbed, file *simulatedgroup.File) (*fleet, error) {
	f := &fleet{price: map[string]float64{}, named: map[string]nodeSeen{}}
	for _, g := range file.Groups {
		f.price[g.Name] = g.PricePerHour
	}
	informer := informers.NewSharedInformerFactory(bed.client, 0).Core().V1().Nodes().Informer()
	return f, follow(ctx, informer, func(n *v1.Node) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.named[n.Name] = see(n)
	}, func(n *v1.Node) {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.named, n.Name)
	})
}

// see returns what a node's object says.
func see(n *v1.Node) nodeSeen {
	seen := nodeSeen{group: n.Labels[simulatedgroup.GroupLabel], cordoned: n.Spec.Unschedulable, allocatable: amounts(n.Status.Allocatable)}
	for _, t := range n.Spec.Taints {
		seen.draining = seen.draining || t.Key == autoscaler.ToBeDeletedTaint
		seen.candidate = seen.candidate || t.Key == autoscaler.DeletionCandidateTaint
	}
	for _, c := range n.Status.Conditions {
		seen.ready = seen.ready || c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	}
	return seen
}

// count counts the nodes as they are now.
func (f *fleet) count() nodeCounts {
	f.mu.Lock()
	defer f.mu.Unlock()
	var c nodeCounts
	for _, n := range f.named {
		c.hourly += f.price[n.group]
		c.allocatable[0], c.allocatable[1] = c.allocatable[0]+n.allocatable[0], c.allocatable[1]+n.allocatable[1]
		if n.cordoned {
			c.cordoned++
		}
		if n.candidate {
			c.candidates++
		}
		switch {
		case n.draining:
			c.draining++
		case n.ready:
			c.ready++
		default:
			c.starting++
		}
	}
	return c
}

// watchPods calls changed with each pod of a namespace as it is and whenever it changes, and
// gone when it is deleted, until the context ends. It returns when it has delivered what
// exists.
func watchPods(ctx context.Context, bed *testbed, namespace string, changed, gone func(*v1.Pod)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(bed.client, 0, informers.WithNamespace(namespace))
	return follow(ctx, factory.Core().V1().Pods().Informer(), changed, gone)
}

// follow runs an informer until the context ends, and returns when what exists has been
// delivered. Calls come one at a time.
func follow[T any](ctx context.Context, informer cache.SharedIndexInformer, changed, gone func(T)) error {
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj.(T)) }, UpdateFunc: func(_, obj any) { changed(obj.(T)) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok { // the deletion itself was missed
				obj = d.Obj
			}
			gone(obj.(T))
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// ordered returns how many nodes are ordered and not registered by Berth's status, 0 before
// its first.
func (bed *testbed) ordered(ctx context.Context) int {
	cm, err := bed.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err != nil {
		return 0
	}
	status := live.Status{}
	if err := yaml.Unmarshal([]byte(cm.Data["status"]), &status); err != nil {
		return 0
	}
	sum := 0
	for _, g := range status.NodeGroups {
		sum += g.Health.NodeCounts.Unregistered
	}
	return sum
}
