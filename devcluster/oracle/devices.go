package oracle

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// This file has what kube-scheduler's plugins read about devices: its own manager of
// claims, classes and slices, with its assume cache of claims and its tracker of slices,
// made anew for every cluster. What must hold: evaluating a pod leaves no trace in them,
// so that the next pod finds the cluster that was Set.

// Allocation is what a claim of a pod would get on a node.
type Allocation struct {
	// Claim is the claim's name. That of the claim which the scheduler makes for extended
	// resources is "<extended-resources>" until it is created.
	Claim string
	// Requests are those of the claim for extended resources, which depend on the node.
	Requests []resourcev1.DeviceRequest `json:",omitempty"`
	// Result is what the claim's status would get, without ShareIDs, which are random.
	Result resourcev1.AllocationResult
}

// devices implements fwk.SharedDRAManager with kube-scheduler's own manager of the cluster
// that was last Set. The plugins keep devices, and ask it again for each pod.
type devices struct {
	*dynamicresources.DefaultDRAManager
	ctx     context.Context
	linked  Linked
	stop    func()                      // ends what the manager runs
	sources map[reflect.Type]*source    // by the type of objects that the manager reads
	chosen  []*resourcev1.ResourceClaim // that Reserve has allocated
	freed   string                      // namespace/name of the claim that PostFilter has deallocated or deleted
}

var _ fwk.SharedDRAManager = &devices{}

// newDevices returns the devices of an empty cluster.
func newDevices(ctx context.Context, linked Linked) (*devices, error) {
	d := &devices{ctx: ctx, linked: linked, stop: func() {}}
	return d, d.set(nil)
}

// reads reports whether the manager reads objects of a type.
func (d *devices) reads(kind reflect.Type) bool { return d.sources[kind] != nil }

// set makes the manager read other objects, by their type, instead of the ones before.
func (d *devices) set(objects map[reflect.Type][]any) error {
	d.stop()
	factory := informers.NewSharedInformerFactory(nil, 0)
	d.sources = map[reflect.Type]*source{}
	for _, example := range []runtime.Object{&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}, d.linked.TaintRule} {
		if example != nil {
			d.sources[reflect.TypeOf(example)] = newSource(factory, example)
		}
	}
	// As in scheduler.New.
	claims := assumecache.NewAssumeCache(klog.FromContext(d.ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	options := resourceslicetracker.Options{
		EnableDeviceTaintRules:   d.linked.TrackRules != nil && feature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: feature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
	}
	if options.EnableDeviceTaintRules {
		d.linked.TrackRules(&options, factory)
	}
	tracker, err := resourceslicetracker.StartTracker(d.ctx, options)
	if err != nil {
		return fmt.Errorf("tracking resource slices: %w", err)
	}
	d.stop = tracker.Stop
	d.DefaultDRAManager = dynamicresources.NewDRAManager(d.ctx, claims, tracker, factory)
	classes := d.DeviceClassResolver().(cache.ResourceEventHandler)
	if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(classes); err != nil {
		return err
	}
	for kind, s := range d.sources {
		if err := s.hold(objects[kind]); err != nil {
			return err
		}
	}
	for _, s := range d.sources { // handlers look other objects up
		s.tell()
	}
	return nil
}

// ResourceClaims implements fwk.SharedDRAManager.
func (d *devices) ResourceClaims() fwk.ResourceClaimTracker {
	return tracker{d.DefaultDRAManager.ResourceClaims(), d}
}

// tracker is kube-scheduler's tracker of claims, which doesn't learn what Reserve allocates.
type tracker struct {
	fwk.ResourceClaimTracker
	devices *devices
}

// SignalClaimPendingAllocation implements fwk.ResourceClaimTracker.
func (t tracker) SignalClaimPendingAllocation(_ types.UID, claim *resourcev1.ResourceClaim) error {
	t.devices.chosen = append(t.devices.chosen, claim)
	return nil
}

// allocate returns what the claims of a pod that aren't allocated get on a node, in the
// order in which kube-scheduler allocates them. The node must have passed the filters.
func (e *evaluation) allocate(node string) ([]Allocation, error) {
	if e.allocating == nil {
		return nil, nil
	}
	e.devices.chosen = nil
	if status := e.allocating.Reserve(e.devices.ctx, e.state, e.pod, node); !status.IsSuccess() {
		return nil, fmt.Errorf("reserving devices of node %s for pod %s: %w", node, e.pod.Name, status.AsError())
	}
	var out []Allocation
	for _, c := range e.devices.chosen {
		a := Allocation{Claim: c.Name, Result: *c.Status.Allocation.DeepCopy()}
		if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "" {
			a.Requests = c.Spec.Devices.Requests
		}
		for i := range a.Result.Devices.Results {
			a.Result.Devices.Results[i].ShareID = nil
		}
		out = append(out, a)
	}
	return out, nil
}

// watchWrites records which claim the plugin deallocates or deletes, and lets it succeed.
func (d *devices) watchWrites(client *fake.Clientset) {
	client.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		obj := action.(clienttesting.UpdateAction).GetObject()
		if action.GetSubresource() == "status" {
			d.freed = action.GetNamespace() + "/" + obj.(metav1.Object).GetName()
		}
		return true, obj, nil
	})
	client.PrependReactor("delete", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		d.freed = action.GetNamespace() + "/" + action.(clienttesting.DeleteAction).GetName()
		return true, nil, nil
	})
}

// source is an informer that gets its objects from a test instead of an API server, and
// calls its handlers in the caller's goroutine.
type source struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
	objects  []any
}

// newSource makes a factory return a new source for objects of the example's type.
func newSource(factory informers.SharedInformerFactory, example runtime.Object) *source {
	s := &source{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, example, 0, cache.Indexers{})}
	factory.InformerFor(example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return s })
	return s
}

// AddEventHandler implements cache.SharedInformer.
func (s *source) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (s *source) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers = append(s.handlers, h)
	return synced{}, nil
}

// RemoveEventHandler implements cache.SharedInformer.
func (s *source) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// hold sets the objects, in the order of names, as an API server lists them.
func (s *source) hold(objects []any) error {
	s.objects = slices.SortedFunc(slices.Values(objects), func(a, b any) int {
		x, y := a.(metav1.Object), b.(metav1.Object)
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return s.GetIndexer().Replace(s.objects, "")
}

// tell tells the handlers about the objects.
func (s *source) tell() {
	for _, h := range s.handlers {
		for _, o := range s.objects {
			h.OnAdd(o, true)
		}
	}
}

// synced is the registration of a handler that knows everything.
type synced struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }

// Name implements cache.DoneChecker.
func (synced) Name() string { return "synced" }

// Done implements cache.DoneChecker.
func (synced) Done() <-chan struct{} { return closed }
