package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/core/plugins/podtopologyspread"
)

// This file reads the arguments of plugins (pluginConfig). What must hold: what
// kube-scheduler refuses is refused, in its words where it has some; a field that 1.36 has
// and Berth can't honour is refused too.

// argsReader reads the arguments of one plugin, empty for all defaults, into the options, as a
// version has them.
type argsReader func(v compat.Version, path *field.Path, raw []byte, out *plugins.Options) field.ErrorList

// argsReaders are those of the plugins that have arguments.
// The last four are Berth's own, which kube-scheduler doesn't know.
var argsReaders = map[string]argsReader{
	"NodeResourcesFit":                readArgs(fitArgs),
	"NodeResourcesBalancedAllocation": readArgs(balancedArgs),
	"PodTopologySpread":               readArgs(spreadArgs),
	"InterPodAffinity":                readArgs(affinityArgs),
	"NodeAffinity":                    readArgs(nodeAffinityArgs),
	"VolumeBinding":                   readVolumeBindingArgs,
	"DefaultPreemption":               readArgs(preemptionArgs),
	"DynamicResources":                readArgs(dynamicResourcesArgs),
	PreemptOrBuy:                      readArgs(preemptOrBuyArgs),
	GangRoom:                          readArgs(gangRoomArgs),
	DeviceScoring:                     readArgs(deviceScoringArgs),
	DevicePreemption:                  readArgs(devicePreemptionArgs),
}

// readArgs returns a reader that decodes arguments of a type, unknown fields refused, and
// then takes them into the options.
// take may leave an option as it is; then the default holds.
func readArgs[T any](take func(path *field.Path, in *T, out *plugins.Options) field.ErrorList) argsReader {
	return func(_ compat.Version, path *field.Path, raw []byte, out *plugins.Options) field.ErrorList {
		in := new(T)
		if len(raw) > 0 {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			if err := d.Decode(in); err != nil {
				return field.ErrorList{field.Invalid(path, string(raw), "has to match plugin args: "+err.Error())}
			}
		}
		return take(path, in, out)
	}
}

// arguments reads the arguments of the plugin of that name into the options. path is that
// of the entry of pluginConfig.
// A name that no version knows is refused with the list of those that can be given.
func arguments(v compat.Version, path *field.Path, name string, raw []byte, out *plugins.Options) field.ErrorList {
	if read := argsReaders[name]; read != nil {
		return read(v, path.Child("args"), raw, out)
	}
	if _, known := pointsOf(compat.Newest, name); !known {
		return field.ErrorList{field.NotSupported(path.Child("name"), name, append(knownNames(), PreemptOrBuy, GangRoom, DeviceScoring, DevicePreemption))}
	}
	if text := strings.TrimSpace(string(raw)); text != "" && text != "{}" && text != "null" {
		return field.ErrorList{field.Forbidden(path.Child("args"), name+" has no arguments; remove them")}
	}
	return nil
}

// fitArgs reads which resources NodeResourcesFit leaves out, and what it scores by.
// The names of resources are checked as kube-scheduler checks them, so that a file works
// for both.
func fitArgs(path *field.Path, in *kubeschedulerv1.NodeResourcesFitArgs, out *plugins.Options) (errs field.ErrorList) {
	out.Fit = noderesources.FitArgs{IgnoredResources: in.IgnoredResources, IgnoredResourceGroups: in.IgnoredResourceGroups}
	for i, r := range in.IgnoredResources {
		errs = append(errs, metav1validation.ValidateLabelName(r, path.Child("ignoredResources").Index(i))...)
	}
	for i, g := range in.IgnoredResourceGroups {
		at := path.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(g, "/") {
			errs = append(errs, field.Invalid(at, g, "resource group name can't contain '/'"))
		}
		errs = append(errs, metav1validation.ValidateLabelName(g, at)...)
	}
	if in.ScoringStrategy != nil {
		errs = append(errs, scoringStrategy(path.Child("scoringStrategy"), in.ScoringStrategy, &out.Fit)...)
	}
	return errs
}

// scoringStrategy sets what NodeResourcesFit scores by.
// A shape without RequestedToCapacityRatio is an error, and so is the reverse.
func scoringStrategy(path *field.Path, in *kubeschedulerv1.ScoringStrategy, out *noderesources.FitArgs) (errs field.ErrorList) {
	out.Strategy = noderesources.Strategy(in.Type)
	ratio := path.Child("requestedToCapacityRatio")
	switch out.Strategy {
	case noderesources.LeastAllocated, noderesources.MostAllocated:
		if in.RequestedToCapacityRatio != nil {
			errs = append(errs, field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
		}
	case noderesources.RequestedToCapacityRatio:
		if in.RequestedToCapacityRatio == nil {
			errs = append(errs, field.Required(ratio, "must be specified when type is RequestedToCapacityRatio"))
			break
		}
		// Weights are read even if the strategy is wrong: all errors are reported at once.
		shape, more := shapeOf(ratio.Child("shape"), in.RequestedToCapacityRatio.Shape)
		out.Shape, errs = shape, append(errs, more...)
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), in.Type, []string{"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"}))
	}
	list, more := weights(path.Child("resources"), in.Resources)
	out.Resources = list
	return append(errs, more...)
}

// balancedArgs reads the resources whose use NodeResourcesBalancedAllocation balances. Unlike
// those of NodeResourcesFit they differ in name, and have no weight but 1.
func balancedArgs(path *field.Path, in *kubeschedulerv1.NodeResourcesBalancedAllocationArgs, out *plugins.Options) field.ErrorList {
	at := path.Child("resources")
	list, errs := weights(at, in.Resources)
	// Balancing has no weights, so a resource twice would count twice.
	seen := map[v1.ResourceName]bool{}
	for i, r := range list {
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), r.Name))
		}
		if seen[r.Name] = true; r.Weight != 1 {
			errs = append(errs, field.Invalid(at.Index(i).Child("weight"), r.Weight, "must be 1"))
		}
	}
	out.Balanced = list
	return errs
}

// weights reads resources with their weights; a weight of 0 stands for 1.
// The number is bounded, as each costs time at every score.
func weights(path *field.Path, in []kubeschedulerv1.ResourceSpec) (out []noderesources.ResourceWeight, errs field.ErrorList) {
	if len(in) > noderesources.MaxScoredResources {
		errs = append(errs, field.TooMany(path, len(in), noderesources.MaxScoredResources))
	}
	for i, r := range in {
		if r.Weight == 0 {
			r.Weight = 1
		}
		if r.Weight < 1 || r.Weight > 100 {
			errs = append(errs, field.Invalid(path.Index(i).Child("weight"), r.Weight, "resource weight of "+r.Name+" not in valid range (0, 100]"))
		}
		out = append(out, noderesources.ResourceWeight{Name: v1.ResourceName(r.Name), Weight: r.Weight})
	}
	return out, errs
}

// shapeOf reads the points of a scoring function, the score of each utilization: both as in
// the file, in percent and from 0 to 10.
func shapeOf(path *field.Path, in []kubeschedulerv1.UtilizationShapePoint) (out []framework.ShapePoint, errs field.ErrorList) {
	if len(in) == 0 {
		return nil, field.ErrorList{field.Required(path, "at least one point must be specified")}
	}
	for i, p := range in {
		at := path.Index(i)
		// Between two points the function is linear, so their order matters.
		if i > 0 && p.Utilization <= in[i-1].Utilization {
			errs = append(errs, field.Invalid(at.Child("utilization"), p.Utilization, "values must be sorted in increasing order"))
		}
		if p.Utilization < 0 || p.Utilization > 100 {
			errs = append(errs, field.Invalid(at.Child("utilization"), p.Utilization, "not in valid range [0, 100]"))
		}
		if p.Score < 0 || p.Score > 10 {
			errs = append(errs, field.Invalid(at.Child("score"), p.Score, "not in valid range [0, 10]"))
		}
		out = append(out, framework.ShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
	}
	return out, errs
}

// spreadArgs reads the constraints of pods without any of their own: system defaults, or the
// list of the file, which may be empty.
func spreadArgs(path *field.Path, in *kubeschedulerv1.PodTopologySpreadArgs, out *plugins.Options) (errs field.ErrorList) {
	// A profile that gives arguments gives all: nothing is left of defaults.
	out.Spread = podtopologyspread.Args{}
	kind, list := path.Child("defaultingType"), path.Child("defaultConstraints")
	switch in.DefaultingType {
	case "", kubeschedulerv1.SystemDefaulting:
		if len(in.DefaultConstraints) > 0 {
			errs = append(errs, field.Invalid(kind, kubeschedulerv1.SystemDefaulting, "when .defaultConstraints are not empty"))
		}
	case kubeschedulerv1.ListDefaulting:
		out.Spread.List, out.Spread.Constraints = true, in.DefaultConstraints
	default:
		errs = append(errs, field.NotSupported(kind, in.DefaultingType, []string{"System", "List"}))
	}
	for i := range in.DefaultConstraints {
		errs = append(errs, defaultConstraint(list, in.DefaultConstraints, i)...)
	}
	return errs
}

// defaultConstraint checks the i-th of the default constraints.
// Pods bring their own selector, hence a constraint must have none.
func defaultConstraint(path *field.Path, list []v1.TopologySpreadConstraint, i int) (errs field.ErrorList) {
	c, at := &list[i], path.Index(i)
	if c.MaxSkew <= 0 {
		errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "not in valid range (0, inf)"))
	}
	if c.TopologyKey == "" {
		errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
	} else {
		errs = append(errs, metav1validation.ValidateLabelName(c.TopologyKey, at.Child("topologyKey"))...)
	}
	switch c.WhenUnsatisfiable {
	case v1.DoNotSchedule, v1.ScheduleAnyway:
	case "":
		errs = append(errs, field.Required(at.Child("whenUnsatisfiable"), "can not be empty"))
	default:
		errs = append(errs, field.NotSupported(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, []string{string(v1.DoNotSchedule), string(v1.ScheduleAnyway)}))
	}
	if c.LabelSelector != nil {
		errs = append(errs, field.Forbidden(at.Child("labelSelector"), "constraint must not define a selector, as they deduced for each pod"))
	}
	// Two constraints of one key may differ in what they do when they can't be satisfied.
	for k := range i {
		if earlier := &list[k]; earlier.TopologyKey == c.TopologyKey && earlier.WhenUnsatisfiable == c.WhenUnsatisfiable {
			errs = append(errs, field.Duplicate(at, "{"+c.TopologyKey+", "+string(c.WhenUnsatisfiable)+"}"))
			break
		}
	}
	return errs
}

// affinityArgs reads what the affinity terms of placed pods add to an incoming pod's scores.
// The weight is what a required term of a placed pod counts for in scores.
func affinityArgs(path *field.Path, in *kubeschedulerv1.InterPodAffinityArgs, out *plugins.Options) (errs field.ErrorList) {
	weight := ptr.Deref(in.HardPodAffinityWeight, interpodaffinity.DefaultHardPodAffinityWeight)
	if weight < 0 || weight > 100 {
		errs = append(errs, field.Invalid(path.Child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]"))
	}
	out.Affinity = &interpodaffinity.Args{HardPodAffinityWeight: weight,
		IgnorePreferredTermsOfExistingPods: in.IgnorePreferredTermsOfExistingPods}
	return errs
}

// nodeAffinityArgs reads a node affinity that all pods of the profile have besides their own.
// Required parts filter nodes for every pod, preferred ones add to scores.
func nodeAffinityArgs(path *field.Path, in *kubeschedulerv1.NodeAffinityArgs, out *plugins.Options) field.ErrorList {
	out.AddedAffinity = in.AddedAffinity
	return checkAddedAffinity(path.Child("addedAffinity"), in.AddedAffinity)
}

// checkAddedAffinity refuses selectors that can't be parsed.
// What can't be parsed would reject every pod of the profile at run time.
func checkAddedAffinity(path *field.Path, a *v1.NodeAffinity) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	if s := a.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
		if _, err := nodeaffinity.NewNodeSelector(s); err != nil {
			errs = append(errs, field.Invalid(path.Child("requiredDuringSchedulingIgnoredDuringExecution"), "", err.Error()))
		}
	}
	if terms := a.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		if _, err := nodeaffinity.NewPreferredSchedulingTerms(terms); err != nil {
			errs = append(errs, field.Invalid(path.Child("preferredDuringSchedulingIgnoredDuringExecution"), "", err.Error()))
		}
	}
	return errs
}

// readVolumeBindingArgs reads how long PreBind waits for the PV controller, and by which shape nodes
// are scored, where they are.
// Whether there is a shape depends on the version and on a feature gate.
func readVolumeBindingArgs(v compat.Version, path *field.Path, raw []byte, out *plugins.Options) field.ErrorList {
	read := readArgs(func(path *field.Path, in *kubeschedulerv1.VolumeBindingArgs, out *plugins.Options) field.ErrorList {
		return append(bindTimeout(path, in, out), volumeShape(v, path.Child("shape"), in.Shape, out)...)
	})
	return read(v, path, raw, out)
}

// bindTimeout reads for how long a bind may wait for the volumes of a pod; without it the
// default holds.
func bindTimeout(path *field.Path, in *kubeschedulerv1.VolumeBindingArgs, out *plugins.Options) (errs field.ErrorList) {
	if s := in.BindTimeoutSeconds; s != nil {
		if out.BindTimeout = time.Duration(*s) * time.Second; *s < 0 {
			errs = append(errs, field.Invalid(path.Child("bindTimeoutSeconds"), *s, "invalid BindTimeoutSeconds, should not be a negative value"))
		}
	}
	return errs
}

// volumeShape reads the shape of VolumeBinding's score. An empty one stands for the default.
func volumeShape(v compat.Version, path *field.Path, in []kubeschedulerv1.UtilizationShapePoint, out *plugins.Options) (errs field.ErrorList) {
	switch {
	case in == nil:
	case !out.ScoresVolumes(v):
		errs = append(errs, field.Invalid(path, in, "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"))
	case len(in) > 0:
		out.VolumeShape, errs = shapeOf(path, in)
	}
	return errs
}

// preemptionArgs checks how many candidates to look at. Berth takes nothing of it into the
// options: it looks at all.
// The defaults are filled in before they are compared with each other.
func preemptionArgs(path *field.Path, in *kubeschedulerv1.DefaultPreemptionArgs, _ *plugins.Options) (errs field.ErrorList) {
	percentage, absolute := ptr.Deref(in.MinCandidateNodesPercentage, 10), ptr.Deref(in.MinCandidateNodesAbsolute, 100)
	p, a := path.Child("minCandidateNodesPercentage"), path.Child("minCandidateNodesAbsolute")
	if percentage < 0 || percentage > 100 {
		errs = append(errs, field.Invalid(p, percentage, "not in valid range [0, 100]"))
	}
	if absolute < 0 {
		errs = append(errs, field.Invalid(a, absolute, "not in valid range [0, inf)"))
	}
	if percentage == 0 && absolute == 0 {
		errs = append(errs, field.Invalid(p, percentage, "cannot be zero at the same time as minCandidateNodesAbsolute"),
			field.Invalid(a, absolute, "cannot be zero at the same time as minCandidateNodesPercentage"))
	}
	return errs
}

// dynamicResourcesArgs reads the arguments. The time that the filter may take becomes a number of
// steps, so that the same decision is made on a slow machine; without a limit it is a day's. kube-scheduler accepts
// times in which it could hardly evaluate one selector, so a very short time is lengthened instead of refused.
func dynamicResourcesArgs(path *field.Path, in *kubeschedulerv1.DynamicResourcesArgs, out *plugins.Options) (errs field.ErrorList) {
	if d := in.FilterTimeout; d != nil {
		if d.Duration < 0 {
			errs = append(errs, field.Invalid(path.Child("filterTimeout"), d, "must be zero or positive"))
		}
		limit := d.Duration
		if limit == 0 || limit > 24*time.Hour {
			limit = 24 * time.Hour
		}
		out.DeviceSteps = max(int(limit.Seconds()*dynamicresources.StepsPerSecond), dynamicresources.MinSteps)
	}
	if d := in.BindingTimeout; d != nil {
		if out.DeviceBindTimeout = d.Duration; d.Duration < time.Second {
			errs = append(errs, field.Invalid(path.Child("bindingTimeout"), d, "must be at least 1 second"))
		}
	}
	return errs
}
