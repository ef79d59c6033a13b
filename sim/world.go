package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/checker"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is a world as a whole: how it is made of a scenario, how it is played to its
// end, and how objects come and go.

// Options are how a run is played and watched.
type Options struct {
	// Engine changes how answers are found; its seed is the scenario's.
	Engine engine.Options
	// Check looks at every invariant after every Step of Berth's, which takes
	// time with many pods.
	Check bool
	// Decisions gets the decision ledger as lines of JSON; may be nil.
	Decisions io.Writer
	// Progress is called now and then; may be nil.
	Progress func(at time.Duration, s *Stats)
	// Stopwatch bounds how long plans take; nil for no bound. It has no part in the
	// scenario: worlds have no clock but their own.
	Stopwatch autoscaler.Stopwatch
	// Hooks see every Step of Berth's, before the world's own books do; one that
	// starts again after a crash has the same hooks.
	Hooks []drive.Hook
	// CrashAfter makes Berth crash after so many of its Steps, and start again 5 s later; never
	// when 0.
	CrashAfter int
}

// World is a virtual cluster and what is around it. Everything happens in events of its
// clock; nothing may iterate over a map where the order could reach an event or Berth.
type World struct {
	clock
	run *scenario.Run
	opt Options

	// What the API server has. Pods that have ended are in pods; removed ones aren't.
	// pods are by UID, nodes by name; byName has the newest pod of each name.
	pods        map[types.UID]*pod
	byName      map[string]*pod // namespace/name
	nodes       map[string]*node
	budgets     []*budget
	controllers map[controllerKey]*controller
	daemons     []*controller // those of kind DaemonSet
	objects     map[objectKey]cluster.Object
	stored      []objectKey // of objects and of removed ones, in the order of their creation
	// claimTemplates are the ResourceClaimTemplates, and generations those of the nodes' pools of devices, by
	// the name of the node.
	claimTemplates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	generations    map[string]int64
	// given are the devices that Berth last chose for a claim, and expressions those that were compiled for checks.
	given       map[objectKey]*resourcev1.AllocationResult
	gangs       map[cluster.PodGroupKey]*gang // of which members were bound
	room        *gangRoom                     // that Berth keeps for a gang; nil for none
	turns       map[string]time.Duration      // by group, namespace/name: when room was first kept in the gang's last turn
	expressions *cel.Cache
	serial      int // of the last UID or resource version

	// What is around the API server: the cloud, its disks, what goes wrong, and Berth.
	groups  []*group // by name
	images  map[string][]scenario.Layer
	storage *storage
	faults  faults
	cloud   cloudQueue
	watch   map[string]*watch // by the kind of what it shows
	berth   *berth

	stats      *Stats
	recounting bool          // the budgets are about to be counted
	roomTaken  bool          // pods have come or preempted others, and may be where evicted ones could be
	lastChange time.Duration // when anything last changed but by Berth's planning
	waiting    []waiting     // how many pods waited, with Options.Check
	formerly   []formerName  // names that groups have had and have no more
}

// New returns the world of a run at its beginning.
func New(run *scenario.Run, opt Options) (*World, error) {
	w := &World{
		run: run, opt: opt,
		pods: map[types.UID]*pod{}, byName: map[string]*pod{}, nodes: map[string]*node{},
		claimTemplates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}, generations: map[string]int64{},
		given: map[objectKey]*resourcev1.AllocationResult{}, gangs: map[cluster.PodGroupKey]*gang{}, turns: map[string]time.Duration{}, expressions: checker.NewExpressions(),
		images: map[string][]scenario.Layer{}, watch: map[string]*watch{}, controllers: map[controllerKey]*controller{}, objects: map[objectKey]cluster.Object{},
	}
	w.clock.seed = run.Spec.Seed
	w.storage = newStorage(&w.clock, run.Spec.Storage)
	w.stats = newStats(w)
	for _, i := range run.Spec.Images {
		for k, l := range i.Layers {
			if l.Digest == "" {
				l.Digest = fmt.Sprintf("%s#%d", i.Name, k)
			}
			w.images[i.Name] = append(w.images[i.Name], l)
		}
	}
	for i := range run.Spec.NodeGroups {
		w.addGroup(&run.Spec.NodeGroups[i])
	}
	b, err := newBerth(w)
	if err != nil {
		return nil, err
	}
	w.berth = b
	for _, g := range w.groups {
		for range g.cfg.Initial {
			g.target++
			w.initialInstance(g)
		}
	}
	// Pods need their nodes and controllers to be there.
	for _, pass := range []func(runtime.Object) bool{isNode, isController, isPod} {
		for _, obj := range run.Objects {
			if pass(obj) {
				w.create(obj)
			}
		}
	}
	for i := range run.Arrivals {
		a := &run.Arrivals[i]
		w.stats.Pods.ToCome += a.Pods()
		w.after(a.At, phaseWorld, func() { w.arrive(a) })
	}
	w.startFaults()
	return w, nil
}

func isNode(o runtime.Object) bool { _, ok := o.(*v1.Node); return ok }
func isPod(o runtime.Object) bool  { _, ok := o.(*v1.Pod); return ok }
func isController(o runtime.Object) bool {
	return !isNode(o) && !isPod(o)
}

// Run plays until nothing has happened for End.Quiet and nothing is to come, or until
// End.At, and returns the summary. An error says that ctx is done, that the decisions
// couldn't be written, or that Berth steps without end.
func (w *World) Run(ctx context.Context) (*scenario.Summary, error) {
	if _, err := w.Play(ctx, w.run.Spec.End.Latest()); err != nil {
		return nil, err
	}
	if w.opt.Check {
		w.checkQuiet()
	}
	return w.stats.summary(), w.berth.ledger.Err()
}

// Play plays what happens up to a virtual time and no further, and reports whether Run has nothing more to
// play. A later call goes on from there. Its errors are those of Run.
func (w *World) Play(ctx context.Context, until time.Duration) (over bool, err error) {
	latest := w.run.Spec.End.Latest()
	quiet := cmp.Or(w.run.Spec.End.Quiet.Duration, 45*time.Minute)
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return false, fmt.Errorf("stopped at virtual time %s: %w", w.now.Round(time.Second), context.Cause(ctx))
		}
		if n%256 == 0 && w.opt.Progress != nil {
			w.opt.Progress(w.now, w.stats)
		}
		if w.foreground == 0 && w.now-w.lastChange >= quiet {
			return true, nil
		}
		if len(w.events) > 0 && w.events[0].at <= min(until, latest) {
			w.stats.sampleOwed(w.events[0].at)
		}
		if !w.next(min(until, latest)) {
			return len(w.events) == 0 || w.events[0].at > latest, nil
		}
		if err := w.berth.step(); err != nil {
			return false, err
		}
		w.stats.sample()
	}
}

// Stats returns what has been counted so far.
func (w *World) Stats() *Stats { return w.stats }

// Core returns the core of the Berth that runs, or ran last, for whoever reads its view.
func (w *World) Core() *core.Core { return w.berth.core() }

// time returns the virtual time.
func (w *World) time() time.Time { return Epoch.Add(w.now) }

// serverTime returns the time by the API server's clock.
func (w *World) serverTime() time.Time { return w.time().Add(w.clockAhead()) }

// stamp returns the virtual time as the API writes it: in whole seconds.
func (w *World) stamp() metav1.Time { return metav1.NewTime(w.serverTime().Truncate(time.Second)) }

// chance draws a number in [0, 1) by name: equal names give equal numbers.
func (w *World) chance(name ...string) float64 { return seeded.Float(w.seed, name...) }

// between draws a duration from a span by name; from low to high milliseconds if the span
// is nil.
func (w *World) between(s *simulatedgroup.Span, low, high int, name ...string) time.Duration {
	if s == nil {
		s = &simulatedgroup.Span{Min: metav1.Duration{Duration: time.Duration(low) * time.Millisecond}, Max: metav1.Duration{Duration: time.Duration(high) * time.Millisecond}}
	}
	return s.Between(w.chance(name...))
}

// noteChange records that something has happened: the run goes on for End.Quiet at least.
func (w *World) noteChange() { w.lastChange = w.now }

// arrive creates the objects of an arrival, and deletes them when their time is over.
func (w *World) arrive(a *scenario.Arrival) {
	w.stats.Pods.ToCome -= a.Pods()
	w.roomTaken = w.roomTaken || w.stats.Drain.Pods > 0
	for _, obj := range a.Objects {
		w.create(obj)
	}
	if a.DeleteAfter > 0 {
		w.after(a.DeleteAfter, phaseWorld, func() {
			for _, obj := range a.Objects {
				w.remove(obj)
			}
		})
	}
}

// create does what the API server does with a new object. The world works on a copy, since
// a run may be played more than once.
func (w *World) create(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1.Node:
		w.adoptNode(o)
	case *v1.Pod:
		w.addPod(o, nil)
	case *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
		w.publishWorkload(obj, false)
		w.addController(obj)
	case *policyv1.PodDisruptionBudget:
		w.addBudget(o)
	case *resourcev1.ResourceClaimTemplate:
		w.addClaimTemplate(o)
	case *resourcev1.ResourceClaim:
		w.storeClaim(o.DeepCopy())
	case cluster.Object:
		if cluster.KindOf(o) != cluster.NoObject {
			stored := obj.DeepCopyObject().(cluster.Object)
			if r, ok := stored.(*autoscalingapi.ProvisioningRequest); ok {
				r.CreationTimestamp = metav1.NewTime(w.time()) // its time counts from there
			}
			w.storeObject(stored)
		}
	}
	w.noteChange()
}

// remove deletes an object, and the pods of a controller with it.
func (w *World) remove(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		if p := w.pods[o.UID]; p != nil {
			w.deletePod(p)
		}
	case *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
		w.publishWorkload(obj, true)
		w.removeController(obj)
	case *policyv1.PodDisruptionBudget:
		w.removeBudget(o)
	case *resourcev1.ResourceClaimTemplate:
		delete(w.claimTemplates, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	case *resourcev1.ResourceClaim:
		if c := w.resourceClaim(o.Namespace, o.Name); c != nil {
			w.deleteClaim(c)
		}
	case *v1.PodTemplate, *schedulingv1beta1.PodGroup, *autoscalingapi.CapacityBuffer, *autoscalingapi.ProvisioningRequest:
		w.removeObject(obj.(cluster.Object))
	}
	w.noteChange()
}
