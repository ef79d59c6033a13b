package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
)

// This file writes a configuration as kube-scheduler's /configz has it: a KubeSchedulerConfiguration
// v1 with every default filled in, and every weight written, 0 too. What must hold: it says what is in
// force, so the Lease and the limits of binding requests are Berth's, and it has no secrets.

// Debugging says what of /debug/pprof is served.
type Debugging struct{ Profiling, Contention bool }

// Component returns the configuration as a KubeSchedulerConfiguration.
// It is made anew for each call, and the caller may change it.
func (s *Scheduler) Component(debugging Debugging) *kubeschedulerv1.KubeSchedulerConfiguration {
	// What the file says and Berth doesn't read is shown as it stands there.
	out := kubeschedulerv1.KubeSchedulerConfiguration{}
	if s.file != nil {
		s.file.DeepCopyInto(&out)
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: kubeschedulerv1.SchemeGroupVersion.String(), Kind: "KubeSchedulerConfiguration"}
	out.Parallelism = ptr.To(ptr.Deref(out.Parallelism, 16))
	out.PercentageOfNodesToScore = ptr.To(ptr.Deref(out.PercentageOfNodesToScore, 0))
	out.EnableProfiling, out.EnableContentionProfiling = &debugging.Profiling, &debugging.Contention
	out.PodInitialBackoffSeconds = ptr.To(int64(s.Queue.InitialBackoff.Seconds()))
	out.PodMaxBackoffSeconds = ptr.To(int64(s.Queue.MaxBackoff.Seconds()))
	// These may come from flags, which count more than the file.
	le := s.LeaderElection
	out.LeaderElection = componentconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: &le.Enabled, ResourceLock: lockKind, ResourceNamespace: le.Namespace, ResourceName: le.Name,
		LeaseDuration: metav1.Duration{Duration: le.LeaseDuration}, RenewDeadline: metav1.Duration{Duration: le.RenewDeadline}, RetryPeriod: metav1.Duration{Duration: le.RetryPeriod}}
	c := &out.ClientConnection
	c.QPS, c.Burst = s.BindQPS, int32(s.BindBurst)
	// Berth speaks protobuf wherever the API has it.
	if c.ContentType == "" {
		c.ContentType = runtime.ContentTypeProtobuf
	}
	// Their TLS configuration may have keys inline.
	out.Extenders = redactExtenders(s.Extenders)
	if len(out.Profiles) == 0 {
		out.Profiles = []kubeschedulerv1.KubeSchedulerProfile{{}}
	}
	for i := range out.Profiles {
		s.defaultProfile(&out.Profiles[i])
	}
	return &out
}

// defaultProfile fills in the defaults of a profile: its name, plugins, and arguments of all plugins
// that have some. Those of Berth's own plugins are left out.
// Weights of 0 are written because kube-scheduler writes them.
func (s *Scheduler) defaultProfile(p *kubeschedulerv1.KubeSchedulerProfile) {
	p.SchedulerName = ptr.To(ptr.Deref(p.SchedulerName, v1.DefaultSchedulerName))
	if p.Plugins == nil {
		p.Plugins = &kubeschedulerv1.Plugins{}
	}
	multi := &p.Plugins.MultiPoint
	// Only the merged list says which plugins run.
	enabled := mergeMultiPoint(s.Version, *multi)
	multi.Enabled = nil
	for _, e := range enabled {
		multi.Enabled = append(multi.Enabled, kubeschedulerv1.Plugin{Name: e.name, Weight: &e.weight})
	}
	names := map[string]bool{}
	for _, set := range pluginSets(p.Plugins) {
		for _, list := range [][]kubeschedulerv1.Plugin{set.Enabled, set.Disabled} {
			for i := range list {
				list[i].Weight = ptr.To(ptr.Deref(list[i].Weight, 0))
			}
		}
		for _, x := range set.Enabled {
			names[x.Name] = true
		}
	}
	// Those of the file come first, in its order, as kube-scheduler has it.
	given := p.PluginConfig
	p.PluginConfig = nil
	add := func(name string, raw []byte) {
		if args := defaultArgs(s.Rules, name, raw); args != nil {
			p.PluginConfig = append(p.PluginConfig, kubeschedulerv1.PluginConfig{Name: name, Args: runtime.RawExtension{Object: args}})
		}
	}
	for _, x := range given {
		delete(names, x.Name)
		add(x.Name, x.Args.Raw)
	}
	// The rest is sorted, so that two calls print the same.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, nil)
	}
}

// pluginSets returns all sets of plugins.
// It must list each extension point: a plugin that is enabled at one only has arguments,
// too.
func pluginSets(p *kubeschedulerv1.Plugins) []*kubeschedulerv1.PluginSet {
	return []*kubeschedulerv1.PluginSet{
		&p.MultiPoint, &p.PreEnqueue, &p.QueueSort, &p.PreFilter, &p.Filter, &p.PostFilter, &p.PreScore, &p.Score, &p.Reserve,
		&p.Permit, &p.PreBind, &p.Bind, &p.PostBind, &p.PlacementGenerate, &p.PlacementScore, &p.PodGroupPostFilter,
	}
}

// defaultArgs returns the arguments of a plugin, those of a file with the defaults; nil for a plugin
// that has none in kube-scheduler. The file has been read before.
// Defaults are those of kube-scheduler, and the values that Berth uses.
func defaultArgs(r Rules, name string, raw []byte) runtime.Object {
	switch name {
	case "DefaultPreemption":
		return argsOf(raw, func(x *kubeschedulerv1.DefaultPreemptionArgs) {
			setDefault(&x.MinCandidateNodesPercentage, 10)
			setDefault(&x.MinCandidateNodesAbsolute, 100)
		})
	case "InterPodAffinity":
		return argsOf(raw, func(x *kubeschedulerv1.InterPodAffinityArgs) { setDefault(&x.HardPodAffinityWeight, 1) })
	case "NodeAffinity":
		return argsOf(raw, func(*kubeschedulerv1.NodeAffinityArgs) {})
	case "NodeResourcesBalancedAllocation":
		return argsOf(raw, func(x *kubeschedulerv1.NodeResourcesBalancedAllocationArgs) {
			x.Resources = defaultWeights(x.Resources)
		})
	case "NodeResourcesFit":
		return argsOf(raw, func(x *kubeschedulerv1.NodeResourcesFitArgs) {
			if x.ScoringStrategy == nil {
				x.ScoringStrategy = &kubeschedulerv1.ScoringStrategy{Type: kubeschedulerv1.LeastAllocated}
			}
			x.ScoringStrategy.Resources = defaultWeights(x.ScoringStrategy.Resources)
		})
	case "PodTopologySpread":
		return argsOf(raw, func(x *kubeschedulerv1.PodTopologySpreadArgs) {
			x.DefaultingType = cmp.Or(x.DefaultingType, kubeschedulerv1.SystemDefaulting)
		})
	case "VolumeBinding":
		return argsOf(raw, func(x *kubeschedulerv1.VolumeBindingArgs) {
			setDefault(&x.BindTimeoutSeconds, 600)
			// The default shape is there only with the feature gate.
			if len(x.Shape) == 0 && r.Enabled("StorageCapacityScoring") {
				x.Shape = []kubeschedulerv1.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
			}
		})
	case "DynamicResources":
		return argsOf(raw, func(x *kubeschedulerv1.DynamicResourcesArgs) {
			setDefault(&x.FilterTimeout, metav1.Duration{Duration: kubeschedulerv1.DynamicResourcesFilterTimeoutDefault})
			setDefault(&x.BindingTimeout, metav1.Duration{Duration: kubeschedulerv1.DynamicResourcesBindingTimeoutDefault})
		})
	}
	return nil
}

// argsOf decodes the arguments of a plugin and sets the defaults; the kind is the type's name.
// Types of arguments are named as their kinds, which is how the kind is known.
func argsOf[T any, P interface {
	*T
	runtime.Object
}](raw []byte, defaults func(P)) runtime.Object {
	x := P(new(T))
	_ = json.Unmarshal(raw, x) // it was read before: what doesn't decode was refused
	defaults(x)
	x.GetObjectKind().SetGroupVersionKind(kubeschedulerv1.SchemeGroupVersion.WithKind(reflect.TypeFor[T]().Name()))
	return x
}

// setDefault sets what is nil.
func setDefault[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}

// defaultWeights returns the weights of resources: CPU and memory where there are none, and 1 for 0.
// It changes the list in place.
func defaultWeights(in []kubeschedulerv1.ResourceSpec) []kubeschedulerv1.ResourceSpec {
	if len(in) == 0 {
		in = []kubeschedulerv1.ResourceSpec{{Name: string(v1.ResourceCPU)}, {Name: string(v1.ResourceMemory)}}
	}
	for i := range in {
		in[i].Weight = cmp.Or(in[i].Weight, 1)
	}
	return in
}
