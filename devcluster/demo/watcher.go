package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file is what the night's progress is computed from: the pods and nodes as the API
// shows them, and sums over time. Informers write what is guarded by mu; everything else
// is for the one goroutine that calls sample, which reads under the lock what informers
// wrote.

// watcher counts pods and nodes, and sums up what they cost.
type watcher struct {
	mu         sync.Mutex
	podsByUID  map[types.UID]podSeen // of the batch, also those that are gone; guarded by mu
	nodesNamed map[string]nodeSeen   // guarded by mu
	price      map[string]float64    // per hour, by node group

	start, last time.Time     // the beginning, and the last sample
	allRunning  time.Duration // from the beginning until every pod had started; 0 before
	peak        int           // most nodes in a sample
	nodeHours   float64
	cost        float64
	// CPU (0) and memory (1) that pods on nodes requested, and that nodes had, times
	// seconds, until the last pod was done.
	requested, allocatable [2]float64
	batchDone              bool // every pod is done
	checked, violations    int  // placements that the checker has seen, and those that break a rule

	// As of the last sample.
	pendingPods, boundPods, runningPods, donePods int
	starting, ready, draining                     int     // nodes
	ordered                                       int     // nodes asked for and not registered, by Berth's status
	hourly                                        float64 // price of all nodes
}

// podSeen is what a pod's last event said.
type podSeen struct {
	phase    v1.PodPhase
	bound    bool
	requests [2]float64 // CPU and memory
}

// nodeSeen is what a node's last event said.
type nodeSeen struct {
	group           string
	ready, draining bool
	allocatable     [2]float64 // CPU and memory
}

// amounts returns the CPU and the memory of a list.
func amounts(list v1.ResourceList) [2]float64 {
	return [2]float64{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64()}
}

// newWatcher returns a watcher whose informers have delivered what exists. They end with
// the context.
func newWatcher(ctx context.Context, bed *testbed, file *simulatedgroup.File) (*watcher, error) {
	w := &watcher{podsByUID: map[types.UID]podSeen{}, nodesNamed: map[string]nodeSeen{}, price: map[string]float64{}, start: time.Now()}
	w.last = w.start
	for _, g := range file.Groups {
		w.price[g.Name] = g.PricePerHour
	}
	factory := informers.NewSharedInformerFactory(bed.client, 0)
	pod := func(obj any) {
		p := obj.(*v1.Pod)
		if p.Namespace != namespace {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.podsByUID[p.UID] = podSeen{p.Status.Phase, p.Spec.NodeName != "", amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))}
	}
	node := func(obj any) {
		n := obj.(*v1.Node)
		seen := nodeSeen{group: n.Labels[simulatedgroup.GroupLabel], allocatable: amounts(n.Status.Allocatable)}
		for _, t := range n.Spec.Taints {
			seen.draining = seen.draining || t.Key == "ToBeDeletedByClusterAutoscaler"
		}
		for _, c := range n.Status.Conditions {
			seen.ready = seen.ready || c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.nodesNamed[n.Name] = seen
	}
	gone := func(obj any) {
		if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.nodesNamed, obj.(*v1.Node).Name)
	}
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: pod, UpdateFunc: func(_, obj any) { pod(obj) }}); err != nil {
		return nil, err
	}
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: node, UpdateFunc: func(_, obj any) { node(obj) }, DeleteFunc: gone}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, nodes.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return w, nil
}

// sample counts pods and nodes, and adds to the sums what the time since the last sample
// cost. total is how many pods the batch has.
func (w *watcher) sample(now time.Time, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := now.Sub(w.last).Seconds()
	w.last = now
	w.pendingPods, w.boundPods, w.runningPods, w.donePods = 0, 0, 0, 0
	var requested, allocatable [2]float64
	for _, p := range w.podsByUID {
		switch {
		case p.phase == v1.PodSucceeded:
			w.donePods++
			continue
		case p.phase == v1.PodRunning:
			w.runningPods++
		case p.bound:
			w.boundPods++
		default:
			w.pendingPods++
			continue
		}
		requested[0], requested[1] = requested[0]+p.requests[0], requested[1]+p.requests[1]
	}
	w.starting, w.ready, w.draining, w.hourly = 0, 0, 0, 0
	for _, n := range w.nodesNamed {
		w.hourly += w.price[n.group]
		allocatable[0], allocatable[1] = allocatable[0]+n.allocatable[0], allocatable[1]+n.allocatable[1]
		switch {
		case n.draining:
			w.draining++
		case n.ready:
			w.ready++
		default:
			w.starting++
		}
	}
	w.peak = max(w.peak, len(w.nodesNamed))
	w.nodeHours += float64(len(w.nodesNamed)) * passed / 3600
	w.cost += w.hourly * passed / 3600
	w.batchDone = w.batchDone || w.donePods >= total
	if !w.batchDone {
		for i := range requested {
			w.requested[i] += requested[i] * passed
			w.allocatable[i] += allocatable[i] * passed
		}
	}
	if w.allRunning == 0 && w.runningPods+w.donePods >= total {
		w.allRunning = now.Sub(w.start)
	}
}

func (w *watcher) elapsed() time.Duration { return w.last.Sub(w.start) }
func (w *watcher) done() int              { return w.donePods }
func (w *watcher) nodes() int             { return w.starting + w.ready + w.draining }

// wasted returns the share of the nodes' CPU (0) or memory (1) that no pod requested.
func (w *watcher) wasted(i int) float64 {
	if w.allocatable[i] == 0 {
		return 0
	}
	return 1 - w.requested[i]/w.allocatable[i]
}

// line returns the last sample as a line of the progress table.
func (w *watcher) line() string {
	return fmt.Sprintf("%5ds │ %7d %6d %7d %6d │ %9d %8d %6d %8d │ %8.2f", int(w.elapsed().Seconds()),
		w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.ordered, w.starting, w.ready, w.draining, w.hourly)
}

// text returns the last sample as a sentence.
func (w *watcher) text() string {
	return fmt.Sprintf("%d pods pending, %d bound, %d running, %d done; %d nodes", w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.nodes())
}

// readOrdered reads from Berth's status how many nodes are ordered and not registered.
func (w *watcher) readOrdered(ctx context.Context, bed *testbed) {
	cm, err := bed.client.CoreV1().ConfigMaps(live.StatusNamespace).Get(ctx, live.StatusName, metav1.GetOptions{})
	if err == nil { // before Berth's first status there is none
		w.ordered = unregisteredIn(cm)
	}
}

// check has the checker look at the placements of now, and adds what it finds to the
// counts.
func (w *watcher) check(ctx context.Context, bed *testbed) error {
	pods, found, err := bed.check(ctx, namespace)
	if err != nil {
		return err
	}
	w.checked += pods
	w.violations += len(found)
	for _, v := range found {
		fmt.Fprintln(bed.out, "VIOLATION:", v)
	}
	return nil
}
