// Package oracle asks the plugins of the real kube-scheduler, in its own framework
// and without an API server, about a pod and a cluster: which nodes are feasible,
// their scores, why others aren't, and what preemption would do. Tests compare
// Berth's answers with these.
//
//	oracle.go      kube-scheduler's framework with its plugins, and the cluster that
//	               they read
//	evaluate.go    PreFilter to Score for one pod
//	preemption.go  PostFilter for a pod that fits nowhere
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
	"k8s.io/klog/v2"
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
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// Cluster is what the plugins read.
type Cluster struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod        // with spec.nodeName
	Workloads []runtime.Object // Services, ReplicaSets, StatefulSets, ReplicationControllers
	Objects   []metav1.Object  // Namespaces, disruption budgets, and what concerns storage
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
	nominated  nominator
}

// Lister is the snapshot of the cluster: the framework keeps the lister, Set changes
// what is in it.
type Lister struct{ *schedulercache.Snapshot }

var register sync.Once

// outside are default plugins that the comparison leaves out: dynamic
// resources, which Berth refuses.
var outside = []string{names.DynamicResources}

// New returns an oracle with the first profile of a KubeSchedulerConfiguration, as
// kube-scheduler reads, defaults and validates it; an empty text is the default
// configuration. More options of the framework are those that only the version has that the program is
// linked with. An error says what kube-scheduler refuses.
func New(ctx context.Context, text string, more ...func(*Lister) frameworkruntime.Option) (*Oracle, error) {
	register.Do(metrics.Register)
	cfg, err := read(text)
	if err != nil {
		return nil, err
	}
	profile := cfg.Profiles[0].DeepCopy()
	p := &profile.Plugins.MultiPoint
	p.Enabled = slices.DeleteFunc(p.Enabled, func(x config.Plugin) bool { return slices.Contains(outside, x.Name) })
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	o := &Oracle{lister: &Lister{schedulercache.NewEmptySnapshot()}, nominated: nominator{}, indexers: indexersOf(factory), scorers: map[string]fwk.ScorePlugin{}}
	options := []frameworkruntime.Option{
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(o.lister), frameworkruntime.WithPodNominator(o.nominated),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx,
			assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil), nil, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())), frameworkruntime.WithParallelism(1),
	}
	for _, option := range more {
		options = append(options, option(o.lister))
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
		if o.indexers[kind] == nil {
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
	return nil
}
