// Package oracle asks the plugins of the real kube-scheduler for their verdict
// on a pod, so that Berth's can be compared with it.
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
	"k8s.io/apimachinery/pkg/util/sets"
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

// Verdict is what kube-scheduler's plugins say of a pod and a node.
type Verdict struct {
	OK       bool
	Plugin   string           // that rejects, when not OK
	Messages []string         // why, in its words
	Total    int64            // when OK: the weighted sum of normalised scores
	Scores   map[string]int64 // when OK: by plugin, weighted and normalised
	Raw      map[string]int64 // when OK: by plugin, as Score returned them
}

// Cluster is what the plugins see.
type Cluster struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod        // with spec.nodeName
	Workloads []runtime.Object // Services, ReplicaSets, StatefulSets, ReplicationControllers
	Objects   []metav1.Object  // Namespaces, disruption budgets, and what concerns storage
	Nominated []*v1.Pod        // with status.nominatedNodeName
}

// Judge has kube-scheduler's plugins. It serves one cluster at a time.
type Judge struct {
	framework  framework.Framework
	lister     *lister
	indexers   map[reflect.Type]cache.Indexer // by the objects' type
	scorers    map[string]fwk.ScorePlugin
	preemption *defaultpreemption.DefaultPreemption // nil when the profile has none
	nominated  nominator
}

// lister is the snapshot of the cluster that is being judged.
type lister struct{ fwk.SharedLister }

var register sync.Once

// outside are default plugins that the comparison leaves out: dynamic
// resources, which Berth refuses.
var outside = []string{names.DynamicResources}

// New returns a judge with the first profile of a KubeSchedulerConfiguration,
// as kube-scheduler reads, completes and checks it; an empty text is the
// default configuration.
func New(ctx context.Context, text string) (*Judge, error) {
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
	j := &Judge{lister: &lister{schedulercache.NewEmptySnapshot()}, nominated: nominator{}}
	j.indexers = map[reflect.Type]cache.Indexer{
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
	j.scorers = map[string]fwk.ScorePlugin{}
	registry := plugins.NewInTreeRegistry()
	for name, make := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := make(ctx, args, h)
			if s, ok := p.(fwk.ScorePlugin); ok {
				j.scorers[name] = s
			}
			if x, ok := p.(*defaultpreemption.DefaultPreemption); ok {
				j.preemption = x
			}
			return p, err
		}
	}
	j.framework, err = frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(j.lister), frameworkruntime.WithPodNominator(j.nominated),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx,
			assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil), nil, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())), frameworkruntime.WithParallelism(1))
	if err != nil {
		return nil, fmt.Errorf("making kube-scheduler's framework: %w", err)
	}
	return j, nil
}

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

// Set shows the plugins a cluster.
func (j *Judge) Set(c *Cluster) error {
	j.lister.SharedLister = schedulercache.NewSnapshot(c.Pods, c.Nodes)
	if err := j.nominated.set(c.Nominated); err != nil {
		return err
	}
	by := map[reflect.Type][]any{}
	take := func(o any) error {
		kind := reflect.TypeOf(o)
		if j.indexers[kind] == nil {
			return fmt.Errorf("kube-scheduler's plugins read no %T", o)
		}
		by[kind] = append(by[kind], o)
		return nil
	}
	for _, o := range c.Workloads {
		if err := take(o); err != nil {
			return err
		}
	}
	for _, o := range c.Objects {
		if err := take(o); err != nil {
			return err
		}
	}
	for kind, index := range j.indexers {
		if err := index.Replace(by[kind], ""); err != nil {
			return err
		}
	}
	return nil
}

// Outcome is what kube-scheduler says of a pod.
type Outcome struct {
	Nodes map[string]Verdict // by name
	// Message is the text of the condition when no node is feasible, and none
	// can be made so by preemption.
	Message string
	// Victims are what preemption would take away, by node, and Chosen where.
	Victims map[string]Victims
	Chosen  string
}

// Judge returns the verdict on a pod for each node.
func (j *Judge) Judge(ctx context.Context, pod *v1.Pod) (*Outcome, error) {
	nodes, err := j.lister.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	fit := &framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
	out := map[string]Verdict{}
	state := framework.NewCycleState()
	result, status, narrowing := j.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, fmt.Errorf("prefilter of pod %s: %w", pod.Name, status.AsError())
		}
		for _, n := range nodes {
			out[n.Node().Name] = Verdict{Plugin: status.Plugin(), Messages: status.Reasons()}
		}
		fit.Diagnosis.PreFilterMsg = status.Message()
		fit.Diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		return j.refused(ctx, state, pod, fit, out)
	}
	// As in schedule_one.go.
	absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing)))
	fit.Diagnosis.NodeToStatus.SetAbsentNodesStatus(absent)
	var feasible []fwk.NodeInfo
	for _, n := range nodes {
		name := n.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			v := Verdict{Messages: absent.Reasons()}
			if narrowing.Len() == 1 {
				v.Plugin = sets.List(narrowing)[0]
			}
			out[name] = v
			continue
		}
		if status := j.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, n); !status.IsSuccess() {
			if !status.IsRejected() {
				return nil, fmt.Errorf("filter of pod %s on node %s: %w", pod.Name, name, status.AsError())
			}
			out[name] = Verdict{Plugin: status.Plugin(), Messages: status.Reasons()}
			fit.Diagnosis.NodeToStatus.Set(name, status)
			continue
		}
		feasible = append(feasible, n)
	}
	if len(feasible) == 0 {
		return j.refused(ctx, state, pod, fit, out)
	}
	if status := j.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, fmt.Errorf("prescore of pod %s: %w", pod.Name, status.AsError())
	}
	scores, status := j.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return nil, fmt.Errorf("score of pod %s: %w", pod.Name, status.AsError())
	}
	byName := map[string]fwk.NodeInfo{}
	for _, n := range feasible {
		byName[n.Node().Name] = n
	}
	for _, s := range scores {
		v := Verdict{OK: true, Total: s.TotalScore, Scores: map[string]int64{}, Raw: map[string]int64{}}
		for _, x := range s.Scores {
			v.Scores[x.Name] = x.Score
			raw, status := j.scorers[x.Name].Score(ctx, state, pod, byName[s.Name])
			if !status.IsSuccess() {
				return nil, fmt.Errorf("raw score of pod %s: %w", pod.Name, status.AsError())
			}
			v.Raw[x.Name] = raw
		}
		out[s.Name] = v
	}
	return &Outcome{Nodes: out}, nil
}

// refused is the outcome for a pod that no node takes.
func (j *Judge) refused(ctx context.Context, state fwk.CycleState, pod *v1.Pod, fit *framework.FitError, nodes map[string]Verdict) (*Outcome, error) {
	out := &Outcome{Nodes: nodes, Victims: map[string]Victims{}}
	if j.preemption != nil {
		if err := j.preempt(ctx, state, pod, fit, out); err != nil {
			return nil, err
		}
	}
	out.Message = fit.Error()
	return out, nil
}
