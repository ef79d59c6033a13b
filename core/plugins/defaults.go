// Package plugins assembles the plugins, which have a folder each, into profiles
// (framework.Profile). It is the only place that knows all of them by name; whoever
// reads configuration translates it into Options.
package plugins

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/defaultpreemption"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/core/plugins/extender"
	"github.com/berthproject/berth/core/plugins/imagelocality"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/nodefilters"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/core/plugins/nodevolumelimits"
	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/core/plugins/schedulinggates"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
	"github.com/berthproject/berth/core/plugins/topologyplacement"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/core/plugins/volumerestrictions"
	"github.com/berthproject/berth/core/plugins/volumezone"
	"github.com/berthproject/berth/core/weighing"
)

// Options are what configuration says about a profile. The zero value is kube-scheduler's
// default profile.
type Options struct {
	SchedulerName string // default "default-scheduler"
	// Rules are the plugins that filter or score, in the order in which they
	// filter; nil for the default ones.
	Rules   []Rule
	NoGates bool // leaves scheduling gates out
	// NoClaimGate lets pods into the queue whose resource claims don't exist.
	NoClaimGate bool
	// NoPreemption pods never take the place of others.
	NoPreemption bool
	Fit          noderesources.FitArgs
	Balanced     []noderesources.ResourceWeight
	Spread       podtopologyspread.Args
	Affinity     *interpodaffinity.Args // nil for the defaults
	// VolumeShape is that of VolumeBinding's score, where it scores; nil for the default.
	VolumeShape []framework.ShapePoint
	// StorageCapacityScoring and VolumeLimitScaling are the feature gates of these names; nil for
	// their default in the schema's version.
	StorageCapacityScoring, VolumeLimitScaling *bool
	AddedAffinity                              *v1.NodeAffinity
	BindTimeout                                time.Duration // of volumes, default 10 minutes
	// DeviceSteps is how many devices may be tried for a pod on a node; 0 for the default.
	DeviceSteps       int
	DeviceStrategy    dynamicresources.Strategy
	DeviceBindTimeout time.Duration // of devices with binding conditions, default 10 minutes
	DevicePreemption  bool          // pods may preempt others for their devices
	Extenders         []framework.Extender
	// Weighing is what a pod does that could preempt; nil for the defaults.
	Weighing *weighing.Config
	// KeepRoom says when room is kept for gangs that wait; zero for never.
	KeepRoom framework.KeepRoom
}

// ScoresVolumes reports whether VolumeBinding scores in a version (the feature gate
// StorageCapacityScoring).
func (o *Options) ScoresVolumes(v compat.Version) bool { return from137(o.StorageCapacityScoring, v) }

// needsDrivers reports whether NodeVolumeLimits rejects nodes without a CSI driver in a version (the
// feature gate VolumeLimitScaling).
func (o *Options) needsDrivers(v compat.Version) bool { return from137(o.VolumeLimitScaling, v) }

// from137 reports whether a feature gate is on that is on by default since 1.37.
func from137(gate *bool, v compat.Version) bool {
	if gate != nil {
		return *gate
	}
	return v >= compat.V37
}

// Rule is a plugin that filters, scores or both.
type Rule struct {
	Name    string
	Filters bool
	Weight  int64 // of the score, 0 when it doesn't score
}

// DefaultRules returns the plugins of the default profile that filter or score (its MultiPoint set)
// in kube-scheduler of a version, in its order and with its weights.
func DefaultRules(v compat.Version) []Rule {
	first := []Rule{{nodefilters.NodeName, true, 0}, {nodefilters.NodeUnschedulable, true, 0}}
	if v < compat.V37 {
		slices.Reverse(first)
	}
	return append(first, []Rule{
		{tainttoleration.Name, true, 3},
		{nodeaffinity.Name, true, 2},
		{nodefilters.NodePorts, true, 0},
		{noderesources.FitName, true, 1},
		{volumerestrictions.Name, true, 0},
		{nodevolumelimits.Name, true, 0},
		{volumebinding.Name, true, 1},
		{volumezone.Name, true, 0},
		{podtopologyspread.Name, true, 2},
		{interpodaffinity.Name, true, 2},
		{dynamicresources.Name, true, 2},
		{noderesources.BalancedName, false, 1},
		{imagelocality.Name, false, 1},
		{nodefilters.NodeDeclaredFeatures, true, 0},
	}...)
}

// build makes the plugin of a name with its arguments; nil when there is none of that
// name.
func build(schema *cluster.Schema, name string, o *Options) framework.Plugin {
	switch name {
	case nodefilters.NodeUnschedulable:
		return nodefilters.ByUnschedulable{}
	case nodefilters.NodeName:
		return nodefilters.NewByName(schema.Version())
	case tainttoleration.Name:
		return tainttoleration.Plugin{}
	case nodeaffinity.Name:
		return nodeaffinity.New(o.AddedAffinity)
	case nodefilters.NodePorts:
		return nodefilters.ByPorts{}
	case noderesources.FitName:
		return noderesources.NewFit(o.Fit)
	case volumerestrictions.Name:
		return volumerestrictions.Plugin{}
	case nodevolumelimits.Name:
		return nodevolumelimits.Plugin{NeedsDrivers: o.needsDrivers(schema.Version())}
	case volumebinding.Name:
		return buildVolumeBinding(o, schema.Version())
	case volumezone.Name:
		return volumezone.Plugin{}
	case podtopologyspread.Name:
		return podtopologyspread.New(o.Spread)
	case interpodaffinity.Name:
		if o.Affinity == nil {
			return interpodaffinity.New(interpodaffinity.Args{HardPodAffinityWeight: interpodaffinity.DefaultHardPodAffinityWeight})
		}
		return interpodaffinity.New(*o.Affinity)
	case dynamicresources.Name:
		p := dynamicresources.New(cmp.Or(o.DeviceSteps, dynamicresources.DefaultSteps)).With(o.DeviceStrategy)
		if o.DevicePreemption {
			return p.Yielding()
		}
		return p
	case noderesources.BalancedName:
		return noderesources.NewBalanced(o.Balanced)
	case imagelocality.Name:
		return imagelocality.New(schema.Version())
	case nodefilters.NodeDeclaredFeatures:
		return nodefilters.ByFeatures{}
	}
	return nil
}

// buildVolumeBinding makes VolumeBinding, which scores by the shape where it does.
func buildVolumeBinding(o *Options, v compat.Version) framework.Plugin {
	switch {
	case !o.ScoresVolumes(v):
		return volumebinding.Plugin{}
	case o.VolumeShape == nil:
		return volumebinding.NewScoring(volumebinding.DefaultShape())
	}
	return volumebinding.NewScoring(o.VolumeShape)
}

// weightOf returns the weight of a rule's score. VolumeBinding and DynamicResources score by what their
// filters find on a node, and nothing without.
func (o *Options) weightOf(r Rule, v compat.Version) int64 {
	if r.Name == dynamicresources.Name && !r.Filters || r.Name == volumebinding.Name && !(r.Filters && o.ScoresVolumes(v)) {
		return 0
	}
	return r.Weight
}

// Default returns the profile that the options describe: kube-scheduler's default
// profile where they say nothing. A plugin that could filter and isn't to is wrapped
// (framework.OnlyScores). Rules of unknown plugins are left out; whoever reads the
// configuration refuses them.
func Default(schema *cluster.Schema, o Options) *framework.Profile {
	if o.SchedulerName == "" {
		o.SchedulerName = v1.DefaultSchedulerName
	}
	if o.BindTimeout == 0 {
		o.BindTimeout = 10 * time.Minute
	}
	if o.DeviceBindTimeout == 0 {
		o.DeviceBindTimeout = 10 * time.Minute
	}
	rules := o.Rules
	if rules == nil {
		rules = DefaultRules(schema.Version())
	}
	p := &framework.Profile{SchedulerName: o.SchedulerName, Less: framework.ByPriority, BindTimeout: o.BindTimeout, DeviceBindTimeout: o.DeviceBindTimeout}
	for _, r := range rules {
		plugin := build(schema, r.Name, &o)
		if plugin == nil {
			continue
		}
		canFilter := slices.ContainsFunc(DefaultRules(schema.Version()), func(d Rule) bool { return d.Name == r.Name && d.Filters })
		if canFilter && !r.Filters {
			plugin = framework.OnlyScores(plugin)
		}
		p.Plugins = append(p.Plugins, framework.Weighted{Plugin: plugin, Weight: o.weightOf(r, schema.Version())})
	}
	p.Plugins = append(p.Plugins, framework.Weighted{Plugin: topologyplacement.Plugin{}})
	if len(o.Extenders) > 0 {
		p.Extenders = o.Extenders
		p.Plugins = append(p.Plugins, framework.Weighted{Plugin: extender.Plugin{Extenders: o.Extenders}})
	}
	if !o.NoGates {
		p.Gates = append(p.Gates, schedulinggates.Plugin{})
	}
	if claims := p.Claimer(); claims != nil && !o.NoClaimGate {
		p.Gates = append(p.Gates, claims)
	}
	if !o.NoPreemption {
		p.Preempter = defaultpreemption.New(schema.Version())
	}
	p.KeepRoom = o.KeepRoom
	p.Weighing = weighing.Default()
	if o.Weighing != nil {
		p.Weighing = *o.Weighing
	}
	return p
}
