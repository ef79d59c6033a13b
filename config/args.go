package config

import (
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/core/plugins/podtopologyspread"
)

// arguments reads the arguments of one plugin into the options. What
// kube-scheduler refuses is refused, in its words where it has some.
func arguments(path *field.Path, name string, raw []byte, out *plugins.Options) (errs field.ErrorList) {
	args := path.Child("args")
	read := func(into any) bool {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		if len(raw) == 0 {
			return true // all defaults
		}
		if err := d.Decode(into); err != nil {
			errs = append(errs, field.Invalid(args, string(raw), "has to match plugin args: "+err.Error()))
			return false
		}
		return true
	}
	switch name {
	case "NodeResourcesFit":
		in := kubeschedulerv1.NodeResourcesFitArgs{}
		if read(&in) {
			out.Fit, errs = fitArgs(args, &in)
		}
	case "NodeResourcesBalancedAllocation":
		in := kubeschedulerv1.NodeResourcesBalancedAllocationArgs{}
		if read(&in) {
			out.Balanced, errs = balancedArgs(args, &in)
		}
	case "PodTopologySpread":
		in := kubeschedulerv1.PodTopologySpreadArgs{}
		if read(&in) {
			out.Spread, errs = spreadArgs(args, &in)
		}
	case "InterPodAffinity":
		in := kubeschedulerv1.InterPodAffinityArgs{}
		if read(&in) {
			a := interpodaffinity.Args{HardPodAffinityWeight: interpodaffinity.DefaultHardPodAffinityWeight,
				IgnorePreferredTermsOfExistingPods: in.IgnorePreferredTermsOfExistingPods}
			if w := in.HardPodAffinityWeight; w != nil {
				if a.HardPodAffinityWeight = *w; *w < 0 || *w > 100 {
					errs = append(errs, field.Invalid(args.Child("hardPodAffinityWeight"), *w, "not in valid range [0, 100]"))
				}
			}
			out.Affinity = &a
		}
	case "NodeAffinity":
		in := kubeschedulerv1.NodeAffinityArgs{}
		if read(&in) {
			out.AddedAffinity = in.AddedAffinity
			errs = addedAffinity(args.Child("addedAffinity"), in.AddedAffinity)
		}
	case "VolumeBinding":
		in := kubeschedulerv1.VolumeBindingArgs{}
		if read(&in) {
			if s := in.BindTimeoutSeconds; s != nil {
				if out.BindTimeout = time.Duration(*s) * time.Second; *s < 0 {
					errs = append(errs, field.Invalid(args.Child("bindTimeoutSeconds"), *s, "invalid BindTimeoutSeconds, should not be a negative value"))
				}
			}
			if in.Shape != nil {
				errs = append(errs, field.Invalid(args.Child("shape"), in.Shape, "unexpected field `shape`, remove it: it is behind the feature gate StorageCapacityScoring, which is off in 1.36"))
			}
		}
	case "DefaultPreemption":
		in := kubeschedulerv1.DefaultPreemptionArgs{}
		if read(&in) {
			errs = preemptionArgs(args, &in)
		}
	case "DynamicResources":
		in := kubeschedulerv1.DynamicResourcesArgs{}
		read(&in)
	default:
		if _, known := pointsOf(name); !known {
			errs = append(errs, field.NotSupported(path.Child("name"), name, names()))
			break
		}
		if text := strings.TrimSpace(string(raw)); text != "" && text != "{}" && text != "null" {
			errs = append(errs, field.Forbidden(args, name+" has no arguments; remove them"))
		}
	}
	return errs
}

func fitArgs(path *field.Path, in *kubeschedulerv1.NodeResourcesFitArgs) (out noderesources.FitArgs, errs field.ErrorList) {
	out.IgnoredResources, out.IgnoredResourceGroups = in.IgnoredResources, in.IgnoredResourceGroups
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
	s := in.ScoringStrategy
	if s == nil {
		return out, errs
	}
	at := path.Child("scoringStrategy")
	out.Strategy = noderesources.Strategy(s.Type)
	ratio := at.Child("requestedToCapacityRatio")
	switch out.Strategy {
	case noderesources.LeastAllocated, noderesources.MostAllocated:
		if s.RequestedToCapacityRatio != nil {
			errs = append(errs, field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
		}
	case noderesources.RequestedToCapacityRatio:
		if s.RequestedToCapacityRatio == nil {
			errs = append(errs, field.Required(ratio, "must be specified when type is RequestedToCapacityRatio"))
			break
		}
		shape, more := shapeOf(ratio.Child("shape"), s.RequestedToCapacityRatio.Shape)
		out.Shape, errs = shape, append(errs, more...)
	default:
		errs = append(errs, field.NotSupported(at.Child("type"), s.Type, []string{"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"}))
	}
	list, more := weights(at.Child("resources"), s.Resources)
	out.Resources = list
	return out, append(errs, more...)
}

func balancedArgs(path *field.Path, in *kubeschedulerv1.NodeResourcesBalancedAllocationArgs) ([]noderesources.ResourceWeight, field.ErrorList) {
	at := path.Child("resources")
	list, errs := weights(at, in.Resources)
	seen := map[v1.ResourceName]bool{}
	for i, r := range list {
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), r.Name))
		}
		if seen[r.Name] = true; r.Weight != 1 {
			errs = append(errs, field.Invalid(at.Index(i).Child("weight"), r.Weight, "must be 1"))
		}
	}
	return list, errs
}

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

func shapeOf(path *field.Path, in []kubeschedulerv1.UtilizationShapePoint) (out []noderesources.ShapePoint, errs field.ErrorList) {
	if len(in) == 0 {
		return nil, field.ErrorList{field.Required(path, "at least one point must be specified")}
	}
	for i, p := range in {
		at := path.Index(i)
		if i > 0 && p.Utilization <= in[i-1].Utilization {
			errs = append(errs, field.Invalid(at.Child("utilization"), p.Utilization, "values must be sorted in increasing order"))
		}
		if p.Utilization < 0 || p.Utilization > 100 {
			errs = append(errs, field.Invalid(at.Child("utilization"), p.Utilization, "not in valid range [0, 100]"))
		}
		if p.Score < 0 || p.Score > 10 {
			errs = append(errs, field.Invalid(at.Child("score"), p.Score, "not in valid range [0, 10]"))
		}
		out = append(out, noderesources.ShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
	}
	return out, errs
}

func spreadArgs(path *field.Path, in *kubeschedulerv1.PodTopologySpreadArgs) (out podtopologyspread.Args, errs field.ErrorList) {
	kind, list := path.Child("defaultingType"), path.Child("defaultConstraints")
	switch in.DefaultingType {
	case "", kubeschedulerv1.SystemDefaulting:
		if len(in.DefaultConstraints) > 0 {
			errs = append(errs, field.Invalid(kind, kubeschedulerv1.SystemDefaulting, "when .defaultConstraints are not empty"))
		}
	case kubeschedulerv1.ListDefaulting:
		out.List, out.Constraints = true, in.DefaultConstraints
	default:
		errs = append(errs, field.NotSupported(kind, in.DefaultingType, []string{"System", "List"}))
	}
	for i := range in.DefaultConstraints {
		c, at := &in.DefaultConstraints[i], list.Index(i)
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
		for k := range i {
			if o := &in.DefaultConstraints[k]; o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable {
				errs = append(errs, field.Duplicate(at, "{"+c.TopologyKey+", "+string(c.WhenUnsatisfiable)+"}"))
				break
			}
		}
	}
	return out, errs
}

func addedAffinity(path *field.Path, a *v1.NodeAffinity) (errs field.ErrorList) {
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

func preemptionArgs(path *field.Path, in *kubeschedulerv1.DefaultPreemptionArgs) (errs field.ErrorList) {
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
