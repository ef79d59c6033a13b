package config

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
)

// points are the extension points of each plugin of kube-scheduler 1.36, in the
// order in which multiPoint enables them by default.
var points = []struct {
	name   string
	at     []string
	weight int32
}{
	{"SchedulingGates", []string{"preEnqueue"}, 0},
	{"PrioritySort", []string{"queueSort"}, 0},
	{"NodeUnschedulable", []string{"filter"}, 0},
	{"NodeName", []string{"filter"}, 0},
	{"TaintToleration", []string{"filter", "preScore", "score"}, 3},
	{"NodeAffinity", []string{"preFilter", "filter", "preScore", "score"}, 2},
	{"NodePorts", []string{"preFilter", "filter"}, 0},
	{"NodeResourcesFit", []string{"preFilter", "filter", "preScore", "score"}, 1},
	{"VolumeRestrictions", []string{"preFilter", "filter"}, 0},
	{"NodeVolumeLimits", []string{"preFilter", "filter"}, 0},
	{"VolumeBinding", []string{"preFilter", "filter", "preScore", "score", "reserve", "preBind"}, 0},
	{"VolumeZone", []string{"preFilter", "filter"}, 0},
	{"PodTopologySpread", []string{"preFilter", "filter", "preScore", "score"}, 2},
	{"InterPodAffinity", []string{"preFilter", "filter", "preScore", "score"}, 2},
	{"DynamicResources", []string{"preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind"}, 2},
	{"DefaultPreemption", []string{"preEnqueue", "postFilter"}, 0},
	{"NodeResourcesBalancedAllocation", []string{"preScore", "score"}, 1},
	{"ImageLocality", []string{"score"}, 1},
	{"DefaultBinder", []string{"bind"}, 0},
	{"NodeDeclaredFeatures", []string{"preFilter", "filter"}, 0},
}

// gone are plugins that the configuration's version 1 no longer has.
var gone = []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}

func pointsOf(name string) ([]string, bool) {
	for _, p := range points {
		if p.name == name {
			return p.at, true
		}
	}
	return nil, false
}

// stage is an extension point with what the file says of it.
type stage struct {
	name string
	set  kubeschedulerv1.PluginSet
}

func stages(p *kubeschedulerv1.Plugins) []stage {
	return []stage{
		{"preEnqueue", p.PreEnqueue}, {"queueSort", p.QueueSort}, {"preFilter", p.PreFilter}, {"filter", p.Filter},
		{"postFilter", p.PostFilter}, {"preScore", p.PreScore}, {"score", p.Score}, {"reserve", p.Reserve},
		{"permit", p.Permit}, {"preBind", p.PreBind}, {"bind", p.Bind}, {"postBind", p.PostBind},
		{"placementGenerate", p.PlacementGenerate}, {"placementScore", p.PlacementScore},
	}
}

// enabled is a plugin at an extension point.
type enabled struct {
	name   string
	weight int32
}

// profilePlugins works out which plugins a profile runs at which points.
type profilePlugins struct {
	path *field.Path
	errs field.ErrorList
	// byStage has the plugins of each point in their order.
	byStage map[string][]enabled
	weights map[string]int32 // of scores
}

// resolve merges what the file says into the defaults as kube-scheduler does:
// multiPoint first, then each point, which overrides it.
func (p *profilePlugins) resolve(in *kubeschedulerv1.Plugins) {
	if in == nil {
		in = &kubeschedulerv1.Plugins{}
	}
	p.byStage, p.weights = map[string][]enabled{}, map[string]int32{}
	p.check(p.path.Child("multiPoint"), "", in.MultiPoint)
	multi := p.merged(in.MultiPoint)
	for _, e := range multi {
		p.weights[e.name] = e.weight
	}
	for _, s := range stages(in) {
		p.check(p.path.Child(s.name), s.name, s.set)
		p.byStage[s.name] = expand(s, multi)
		if s.name == "score" {
			for _, e := range s.set.Enabled {
				p.weights[e.Name] = weightOf(e)
			}
		}
	}
}

func weightOf(p kubeschedulerv1.Plugin) int32 {
	if p.Weight == nil {
		return 0
	}
	return *p.Weight
}

// merged is the list of multiPoint: the defaults in their order, with what the
// file says in their place, and then the file's others.
func (p *profilePlugins) merged(in kubeschedulerv1.PluginSet) []enabled {
	disabled := func(name string) bool {
		return slices.ContainsFunc(in.Disabled, func(d kubeschedulerv1.Plugin) bool { return d.Name == name })
	}
	var out []enabled
	taken := map[int]bool{}
	if !disabled("*") {
		for _, d := range points {
			if disabled(d.name) {
				continue
			}
			e := enabled{d.name, d.weight}
			if i := slices.IndexFunc(in.Enabled, func(x kubeschedulerv1.Plugin) bool { return x.Name == d.name }); i >= 0 {
				e.weight = weightOf(in.Enabled[i])
				taken[i] = true
			}
			out = append(out, e)
		}
	}
	for i, x := range in.Enabled {
		if !taken[i] {
			out = append(out, enabled{x.Name, weightOf(x)})
		}
	}
	return out
}

// expand gives a point its plugins: those that override multiPoint, the rest of
// multiPoint, and those that only the point names.
func expand(s stage, multi []enabled) []enabled {
	named := func(list []kubeschedulerv1.Plugin, name string) bool {
		return slices.ContainsFunc(list, func(x kubeschedulerv1.Plugin) bool { return x.Name == name })
	}
	var overrides, rest, own []enabled
	all := named(s.set.Disabled, "*")
	inMulti := map[string]bool{}
	for _, e := range multi {
		at, _ := pointsOf(e.name)
		if all || !slices.Contains(at, s.name) || named(s.set.Disabled, e.name) {
			continue
		}
		if inMulti[e.name] = true; !named(s.set.Enabled, e.name) {
			rest = append(rest, e)
		}
	}
	for _, x := range s.set.Enabled {
		e := enabled{x.Name, weightOf(x)}
		if inMulti[x.Name] {
			overrides = append(overrides, e)
		} else {
			own = append(own, e)
		}
	}
	return slices.Concat(overrides, rest, own)
}

// check looks at what the file enables at one point; "" is multiPoint.
func (p *profilePlugins) check(path *field.Path, point string, set kubeschedulerv1.PluginSet) {
	seen := map[string]bool{}
	for i, x := range set.Enabled {
		at := path.Child("enabled").Index(i)
		abilities, known := pointsOf(x.Name)
		switch {
		case slices.Contains(gone, x.Name):
			p.errs = append(p.errs, field.Invalid(at, x.Name, fmt.Sprintf("was invalid in version %q (KubeSchedulerConfiguration is version %q)", v1.SchemeGroupVersion, kubeschedulerv1.SchemeGroupVersion)))
		case !known:
			p.errs = append(p.errs, field.NotSupported(at.Child("name"), x.Name, names()))
		case point != "" && !slices.Contains(abilities, point):
			p.errs = append(p.errs, field.Invalid(at.Child("name"), x.Name, fmt.Sprintf("plugin %q does not extend %s plugin; its points are %s", x.Name, point, strings.Join(abilities, ", "))))
		case seen[x.Name]:
			p.errs = append(p.errs, field.Duplicate(at, x.Name))
		case x.Weight != nil && (*x.Weight < 0 || *x.Weight > engine.MaxWeights):
			p.errs = append(p.errs, field.Invalid(at.Child("weight"), *x.Weight, fmt.Sprintf("not in valid range [0, %d]; 0 stands for 1", engine.MaxWeights)))
		}
		seen[x.Name] = true
	}
	for i, x := range set.Disabled {
		if _, known := pointsOf(x.Name); !known && x.Name != "*" {
			p.errs = append(p.errs, field.NotSupported(path.Child("disabled").Index(i).Child("name"), x.Name, append(names(), "*")))
		}
	}
}

func names() []string {
	var out []string
	for _, p := range points {
		out = append(out, p.name)
	}
	slices.Sort(out)
	return out
}

func (p *profilePlugins) has(point, name string) bool {
	return slices.ContainsFunc(p.byStage[point], func(e enabled) bool { return e.name == name })
}

// rules turns the points into rules, in the order in which they filter.
func (p *profilePlugins) rules(out *plugins.Options) {
	out.NoGates = !p.has("preEnqueue", "SchedulingGates")
	out.NoPreemption = !p.has("postFilter", "DefaultPreemption")
	if n := len(p.byStage["queueSort"]); n != 1 {
		p.errs = append(p.errs, field.Invalid(p.path.Child("queueSort"), n, fmt.Sprintf("only one queue sort plugin required for profile with scheduler name %q, but got %d", out.SchedulerName, n)))
	}
	if len(p.byStage["bind"]) == 0 {
		p.errs = append(p.errs, field.Required(p.path.Child("bind"), fmt.Sprintf("at least one bind plugin is needed for profile with scheduler name %q", out.SchedulerName)))
	}
	// Berth judges with one rule what these points do together.
	for _, pair := range [][2]string{{"preFilter", "filter"}, {"preScore", "score"}} {
		for _, e := range p.byStage[pair[1]] {
			if at, _ := pointsOf(e.name); slices.Contains(at, pair[0]) && !p.has(pair[0], e.name) {
				p.errs = append(p.errs, field.Forbidden(p.path.Child(pair[0]), fmt.Sprintf("%s is enabled at %s and disabled at %s; enable or disable it at both", e.name, pair[1], pair[0])))
			}
		}
	}
	if p.has("filter", "VolumeBinding") && (!p.has("reserve", "VolumeBinding") || !p.has("preBind", "VolumeBinding")) {
		p.errs = append(p.errs, field.Forbidden(p.path.Child("preBind"), "VolumeBinding is enabled at filter and disabled at reserve or preBind; enable or disable it at all three"))
	}
	weights := map[string]int64{}
	total := int64(0)
	for _, e := range p.byStage["score"] {
		w := int64(p.weights[e.name])
		if w == 0 {
			w = 1
		}
		if e.name == "VolumeBinding" || e.name == "DynamicResources" {
			continue // no score without feature gates that are off in 1.36
		}
		weights[e.name] = w
		total += w
	}
	if total > engine.MaxWeights {
		p.errs = append(p.errs, field.Invalid(p.path.Child("score"), total, fmt.Sprintf("total score of Score plugins could overflow; the weights may add up to %d", engine.MaxWeights)))
	}
	out.Rules = []plugins.Rule{}
	for _, e := range p.byStage["filter"] {
		out.Rules = append(out.Rules, plugins.Rule{Name: e.name, Filters: true, Weight: weights[e.name]})
		delete(weights, e.name)
	}
	for _, e := range p.byStage["score"] {
		if w, ok := weights[e.name]; ok {
			out.Rules = append(out.Rules, plugins.Rule{Name: e.name, Weight: w})
		}
	}
}

// sortText is the queueSort set of a profile, for comparing.
func sortText(in *kubeschedulerv1.Plugins) string {
	if in == nil {
		return "|"
	}
	text := func(list []kubeschedulerv1.Plugin) (out string) {
		for _, p := range list {
			out += p.Name + ","
		}
		return out
	}
	return text(in.QueueSort.Enabled) + "|" + text(in.QueueSort.Disabled)
}
