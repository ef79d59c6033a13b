package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file is what the night's progress is computed from: the pods as the API shows them,
// the nodes of nodes.go, and sums over time. Informers write what is guarded by mu; everything else
// is for the one goroutine that calls sample, which reads under the lock what informers
// wrote.

// watcher counts pods and nodes, and sums up what they cost. A pod that was deleted after it succeeded
// stays among the done ones.
type watcher struct {
	mu        sync.Mutex
	podsByUID map[types.UID]podSeen // of the batch, also those that are gone; guarded by mu
	fleet     *fleet

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
	nodes                                         nodeCounts
	ordered                                       int // nodes asked for and not registered, by Berth's status
}

// podSeen is what a pod's last event said.
type podSeen struct {
	phase    v1.PodPhase
	bound    bool
	requests [2]float64 // CPU and memory
}

// amounts returns the CPU and the memory of a list.
func amounts(list v1.ResourceList) [2]float64 {
	return [2]float64{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64()}
}

// newWatcher returns a watcher whose informers have delivered what exists. They end with
// the context.
func newWatcher(ctx context.Context, bed *testbed, file *simulatedgroup.File) (*watcher, error) {
	w := &watcher{podsByUID: map[types.UID]podSeen{}, start: time.Now()}
	w.last = w.start
	var err error
	if w.fleet, err = newFleet(ctx, bed, file); err != nil {
		return nil, err
	}
	seen := func(p *v1.Pod) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.podsByUID[p.UID] = podSeen{p.Status.Phase, p.Spec.NodeName != "", amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))}
	}
	return w, watchPods(ctx, bed, namespace, seen, func(*v1.Pod) {})
}

// sample counts pods and nodes, and adds to the sums what the time since the last sample
// cost. total is how many pods the batch has. The sums take what there is now for what there was since
// the last sample: they are as exact as samples are frequent.
func (w *watcher) sample(now time.Time, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := now.Sub(w.last).Seconds()
	w.last = now
	w.pendingPods, w.boundPods, w.runningPods, w.donePods = 0, 0, 0, 0
	var requested [2]float64
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
	w.nodes = w.fleet.count()
	allocatable := w.nodes.allocatable
	w.peak = max(w.peak, w.nodes.all())
	w.nodeHours += float64(w.nodes.all()) * passed / 3600
	w.cost += w.nodes.hourly * passed / 3600
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

// wasted returns the share of the nodes' CPU (0) or memory (1) that no pod requested.
func (w *watcher) wasted(i int) float64 {
	if w.allocatable[i] == 0 {
		return 0
	}
	return 1 - w.requested[i]/w.allocatable[i]
}

// cells returns the last sample as a row of the progress table.
func (w *watcher) cells() string {
	return fmt.Sprintf("%7d %6d %7d %6d │ %9d %8d %6d %8d │ %8.2f",
		w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.ordered, w.nodes.starting, w.nodes.ready, w.nodes.draining, w.nodes.hourly)
}

// text returns the last sample as a sentence.
func (w *watcher) text() string {
	return fmt.Sprintf("%d pods pending, %d bound, %d running, %d done; %d nodes", w.pendingPods, w.boundPods, w.runningPods, w.donePods, w.nodes.all())
}

// check has the checker look at the placements of now, and adds what it finds to the
// counts.
func (w *watcher) check(ctx context.Context, bed *testbed) error {
	pods, found, err := bed.check(ctx, namespace)
	w.checked += pods
	w.violations += found
	return err
}
