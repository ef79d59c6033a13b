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

// watcher counts pods and nodes as the API shows them and integrates cost.
type watcher struct {
	mu      sync.Mutex
	pods    map[types.UID]podSight
	nodesAt map[string]nodeSight
	price   map[string]float64

	start, last    time.Time
	allRunning     time.Duration
	peak, ordered  int
	nodeHours      float64
	cost           float64
	used, had      [2]float64 // CPU and memory, times seconds
	checked        int
	violations     int
	worked         bool // all pods are done: waste is no longer counted
	pendingPods    int
	boundPods      int
	runningPods    int
	donePods       int
	starting       int
	ready, leaving int
	hourly         float64
}

type podSight struct {
	phase v1.PodPhase
	bound bool
	asks  [2]float64
}

type nodeSight struct {
	group          string
	ready, leaving bool
	has            [2]float64
}

func amounts(list v1.ResourceList) [2]float64 {
	return [2]float64{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64()}
}

func newWatcher(ctx context.Context, s *stage, file *simulatedgroup.File) (*watcher, error) {
	w := &watcher{pods: map[types.UID]podSight{}, nodesAt: map[string]nodeSight{}, price: map[string]float64{}, start: time.Now()}
	w.last = w.start
	for _, g := range file.Groups {
		w.price[g.Name] = g.PricePerHour
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	pod := func(obj any) {
		p := obj.(*v1.Pod)
		if p.Namespace != namespace {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pods[p.UID] = podSight{p.Status.Phase, p.Spec.NodeName != "", amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))}
	}
	node := func(obj any) {
		n := obj.(*v1.Node)
		sight := nodeSight{group: n.Labels[simulatedgroup.GroupLabel], has: amounts(n.Status.Allocatable)}
		for _, t := range n.Spec.Taints {
			sight.leaving = sight.leaving || t.Key == "ToBeDeletedByClusterAutoscaler"
		}
		for _, c := range n.Status.Conditions {
			sight.ready = sight.ready || c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.nodesAt[n.Name] = sight
	}
	gone := func(obj any) {
		if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.nodesAt, obj.(*v1.Node).Name)
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

// sample counts and adds up what the time since the last sample cost.
func (w *watcher) sample(now time.Time, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := now.Sub(w.last).Seconds()
	w.last = now
	w.pendingPods, w.boundPods, w.runningPods, w.donePods = 0, 0, 0, 0
	var used, had [2]float64
	for _, p := range w.pods {
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
		used[0], used[1] = used[0]+p.asks[0], used[1]+p.asks[1]
	}
	w.starting, w.ready, w.leaving, w.hourly = 0, 0, 0, 0
	for _, n := range w.nodesAt {
		w.hourly += w.price[n.group]
		had[0], had[1] = had[0]+n.has[0], had[1]+n.has[1]
		switch {
		case n.leaving:
			w.leaving++
		case n.ready:
			w.ready++
		default:
			w.starting++
		}
	}
	w.peak = max(w.peak, len(w.nodesAt))
	w.nodeHours += float64(len(w.nodesAt)) * passed / 3600
	w.cost += w.hourly * passed / 3600
	w.worked = w.worked || w.donePods >= total
	if !w.worked {
		for i := range used {
			w.used[i] += used[i] * passed
			w.had[i] += had[i] * passed
		}
	}
	if w.allRunning == 0 && w.runningPods+w.donePods >= total {
		w.allRunning = now.Sub(w.start)
	}
}

func (w *watcher) elapsed() time.Duration { return w.last.Sub(w.start) }
func (w *watcher) done() int              { return w.donePods }
func (w *watcher) nodes() int             { return w.starting + w.ready + w.leaving }

// wasted is the share of what the nodes had that no pod on them asked for.
func (w *watcher) wasted(i int) float64 {
	if w.had[i] == 0 {
		return 0
	}
	return 1 - w.used[i]/w.had[i]
}

func (w *watcher) line() string {
	return fmt.Sprintf("%5ds │ %7d %6d %7d %6d │ %9d %8d %6d %8d │ %8.2f", int(w.elapsed().Seconds()),
		w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.ordered, w.starting, w.ready, w.leaving, w.hourly)
}

func (w *watcher) text() string {
	return fmt.Sprintf("%d pods pending, %d bound, %d running, %d done; %d nodes", w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.nodes())
}

// launching reads how many nodes are asked for and not registered.
func (w *watcher) launching(ctx context.Context, s *stage) {
	cm, err := s.client.CoreV1().ConfigMaps(live.StatusNamespace).Get(ctx, live.StatusName, metav1.GetOptions{})
	if err == nil { // before Berth's first status there is none
		w.ordered = launchingFrom(cm)
	}
}

func (w *watcher) check(ctx context.Context, s *stage) error {
	pods, found, err := s.check(ctx, namespace)
	if err != nil {
		return err
	}
	w.checked += pods
	w.violations += len(found)
	for _, v := range found {
		fmt.Fprintln(s.out, "VIOLATION:", v)
	}
	return nil
}
