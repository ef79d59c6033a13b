// Package oracle asks the plugins of the real kube-scheduler, in its own framework
// and without an API server, about a pod and a cluster: which nodes are feasible,
// their scores, why others aren't, and what preemption would do. Tests compare
// Berth's answers with these.
//
//	oracle.go      kube-scheduler's framework with its plugins, and the cluster that
//	               they read
//	devices.go     what they read about devices, and which devices they choose
//	evaluate.go    PreEnqueue to Reserve for one pod
//	preemption.go  PostFilter for a pod that fits nowhere
//	remote.go      an oracle in another program, linked with another version
//
// What must hold: the plugins are evaluated as schedule_one.go does it, but for every
// node instead of a sample, so that answers don't depend on an order.
package oracle

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Cluster is what the plugins read.
type Cluster struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod        // with spec.nodeName
	Workloads []runtime.Object // Services, ReplicaSets, StatefulSets, ReplicationControllers
	Objects   []metav1.Object  // Namespaces, disruption budgets, and what concerns storage and devices
	Nominated []*v1.Pod        // with status.nominatedNodeName
}

// Oracle has kube-scheduler's plugins for one profile. Its methods are for one
// goroutine, and answer about the cluster that was last Set.
type Oracle struct {
	framework  framework.Framework
	lister     *Lister
	indexers   map[reflect.Type]cache.Indexer       // what informers would hold, by the objects' type
	scorers    map[string]fwk.ScorePlugin           // by name, to ask for raw scores
	preemption *defaultpreemption.DefaultPreemption // nil when the profile has none
	allocating *dynamicresources.DynamicResources   // nil when the profile has none
	devices    *devices                             // nil when the profile has no plugin for them
	nominated  nominator
}

// Setup says which oracle New makes.
type Setup struct {
	// Config is a KubeSchedulerConfiguration, whose first profile answers; "" is the default
	// configuration.
	Config string
	// Devices says that the profile keeps DynamicResources, and that clusters may have objects of
	// resource.k8s.io. Without it the plugin is taken out.
	Devices bool
	// Linked is for a program that is linked with a newer kube-scheduler than 1.36.
	Linked Linked `json:"-"`
}

// Linked has what kube-scheduler 1.36 doesn't have. The zero value is for 1.36.
type Linked struct {
	// Option returns an option that the newer framework needs, given the snapshot.
	Option func(*Lister) frameworkruntime.Option
	// TaintRule is an empty DeviceTaintRule of the version that the scheduler reads.
	TaintRule runtime.Object
	// TrackRules sets the informer of DeviceTaintRules in the options of a tracker of ResourceSlices.
	TrackRules func(*resourceslicetracker.Options, informers.SharedInformerFactory)
}

// Lister is the snapshot of the cluster: the framework keeps the lister, Set changes
// what is in it.
type Lister struct{ *schedulercache.Snapshot }

var register sync.Once

// New returns an oracle with a profile, as kube-scheduler reads, defaults and validates
// it. An error says what kube-scheduler refuses.
func New(ctx context.Context, setup Setup) (*Oracle, error) {
	register.Do(metrics.Register)
	cfg, err := read(setup.Config)
	if err != nil {
		return nil, err
	}
	profile := cfg.Profiles[0].DeepCopy()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	inOrder(factory)
	o := &Oracle{lister: &Lister{schedulercache.NewEmptySnapshot()}, nominated: nominator{}, indexers: indexersOf(factory), scorers: map[string]fwk.ScorePlugin{}}
	options := []frameworkruntime.Option{
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(o.lister), frameworkruntime.WithPodNominator(o.nominated),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())), frameworkruntime.WithParallelism(1),
	}
	if setup.Linked.Option != nil {
		options = append(options, setup.Linked.Option(o.lister))
	}
	// NodeResourcesFit asks for device classes even where no plugin allocates devices.
	manager, err := newDevices(ctx, setup.Linked)
	if err != nil {
		return nil, err
	}
	options = append(options, frameworkruntime.WithSharedDRAManager(manager))
	if setup.Devices {
		o.devices = manager
		manager.watchWrites(client)
	} else {
		p := &profile.Plugins.MultiPoint
		p.Enabled = slices.DeleteFunc(p.Enabled, func(x config.Plugin) bool { return x.Name == names.DynamicResources })
	}
	o.framework, err = frameworkruntime.NewFramework(ctx, o.registry(), profile, options...)
	if err != nil {
		return nil, fmt.Errorf("making kube-scheduler's framework: %w", err)
	}
	return o, nil
}

// indexersOf returns the indexers that the plugins' listers read. The factory is never
// started: Set writes the indexers itself.
func indexersOf(factory informers.SharedInformerFactory) map[reflect.Type]cache.Indexer {
	return map[reflect.Type]cache.Indexer{
		reflect.TypeFor[*v1.Service]():                   factory.Core().V1().Services().Informer().GetIndexer(),
		reflect.TypeFor[*v1.ReplicationController]():     factory.Core().V1().ReplicationControllers().Informer().GetIndexer(),
		reflect.TypeFor[*appsv1.ReplicaSet]():            factory.Apps().V1().ReplicaSets().Informer().GetIndexer(),
		reflect.TypeFor[*appsv1.StatefulSet]():           factory.Apps().V1().StatefulSets().Informer().GetIndexer(),
		reflect.TypeFor[*v1.Namespace]():                 factory.Core().V1().Namespaces().Informer().GetIndexer(),
		reflect.TypeFor[*v1.PersistentVolumeClaim]():     factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer(),
		reflect.TypeFor[*v1.PersistentVolume]():          factory.Core().V1().PersistentVolumes().Informer().GetIndexer(),
		reflect.TypeFor[*storagev1.StorageClass]():       factory.Storage().V1().StorageClasses().Informer().GetIndexer(),
		reflect.TypeFor[*storagev1.CSINode]():            factory.Storage().V1().CSINodes().Informer().GetIndexer(),
		reflect.TypeFor[*storagev1.CSIDriver]():          factory.Storage().V1().CSIDrivers().Informer().GetIndexer(),
		reflect.TypeFor[*storagev1.CSIStorageCapacity](): factory.Storage().V1().CSIStorageCapacities().Informer().GetIndexer(),
		reflect.TypeFor[*policyv1.PodDisruptionBudget](): factory.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer(),
		reflect.TypeFor[*storagev1.VolumeAttachment]():   factory.Storage().V1().VolumeAttachments().Informer().GetIndexer(),
	}
}

// registry returns kube-scheduler's plugins; the oracle keeps those that it asks
// directly when the framework makes them.
func (o *Oracle) registry() frameworkruntime.Registry {
	registry := plugins.NewInTreeRegistry()
	for name, make := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := make(ctx, args, h)
			if s, ok := p.(fwk.ScorePlugin); ok {
				o.scorers[name] = s
			}
			if x, ok := p.(*defaultpreemption.DefaultPreemption); ok {
				o.preemption = x
			}
			if x, ok := p.(*dynamicresources.DynamicResources); ok {
				o.allocating = x
			}
			return p, err
		}
	}
	return registry
}

// read returns a configuration with its defaults, after kube-scheduler's own
// validation.
func read(text string) (*config.KubeSchedulerConfiguration, error) {
	if text == "" {
		cfg, err := latest.Default()
		if err != nil {
			return nil, fmt.Errorf("making kube-scheduler's default configuration: %w", err)
		}
		return cfg, nil
	}
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoded a %T", obj)
	}
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, fmt.Errorf("validating: %w", err)
	}
	return cfg, nil
}

// Set makes the plugins read a cluster, instead of the one before. An error says which
// object none of them reads.
func (o *Oracle) Set(c *Cluster) error {
	o.lister.Snapshot = schedulercache.NewSnapshot(c.Pods, c.Nodes)
	if err := o.nominated.set(c.Nominated); err != nil {
		return err
	}
	byType := map[reflect.Type][]any{}
	add := func(obj any) error {
		kind := reflect.TypeOf(obj)
		if o.indexers[kind] == nil && (o.devices == nil || !o.devices.reads(kind)) {
			return fmt.Errorf("kube-scheduler's plugins read no %T", obj)
		}
		byType[kind] = append(byType[kind], obj)
		return nil
	}
	for _, obj := range c.Workloads {
		if err := add(obj); err != nil {
			return err
		}
	}
	for _, obj := range c.Objects {
		if err := add(obj); err != nil {
			return err
		}
	}
	for kind, index := range o.indexers {
		if err := index.Replace(byType[kind], ""); err != nil {
			return err
		}
	}
	if o.devices == nil {
		return nil
	}
	return o.devices.set(byType)
}
