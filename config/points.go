package config

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/engine"
)

// This file works out which plugins a profile enables at which extension points, as
// kube-scheduler does: from its defaults, multiPoint, and the points themselves. What must
// hold: what kube-scheduler of the version refuses is refused, with its message where it has one.

// knownPlugin is a plugin of kube-scheduler with its extension points in 1.36 and the default weight of its
// score, 0 for plugins that don't score, or not by default.
type knownPlugin struct {
	name   string
	points []string
	weight int32
}

// knownPlugins are the plugins of all versions, in the order in which multiPoint enables them by
// default in the newest (defaultOrder).
var knownPlugins = []knownPlugin{
	{"SchedulingGates", []string{"preEnqueue"}, 0},
	{"PrioritySort", []string{"queueSort"}, 0},
	{"NodeName", []string{"filter"}, 0},
	{"NodeUnschedulable", []string{"filter"}, 0},
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

// newPoints are the extension points that plugins have in 1.37 besides.
var newPoints = map[string][]string{
	"NodeName":          {"preFilter"},
	"NodeUnschedulable": {"preFilter"},
	"TaintToleration":   {"preFilter"},
	"DynamicResources":  {"podGroupPostFilter"},
	"DefaultPreemption": {"podGroupPostFilter"},
}

// defaultOrder returns the plugins that a version has, in the order in which its multiPoint enables
// them: in 1.36 NodeUnschedulable came before NodeName.
func defaultOrder(v compat.Version) []knownPlugin {
	out := slices.Clone(knownPlugins)
	if v < compat.V37 {
		i := slices.IndexFunc(out, func(p knownPlugin) bool { return p.name == "NodeName" })
		out[i], out[i+1] = out[i+1], out[i]
	}
	return out
}

// removedPlugins were in earlier versions of the configuration, and aren't in version 1.
var removedPlugins = []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}

// pointsOf returns the extension points of a plugin in a version; false when there is no such plugin.
func pointsOf(v compat.Version, name string) ([]string, bool) {
	for _, p := range knownPlugins {
		switch {
		case p.name != name:
		case v < compat.V37:
			return p.points, true
		default:
			return slices.Concat(p.points, newPoints[name]), true
		}
	}
	return nil, false
}

// knownNames returns the names of all plugins, sorted.
func knownNames() []string {
	var out []string
	for _, p := range knownPlugins {
		out = append(out, p.name)
	}
	slices.Sort(out)
	return out
}

// extensionPoint is a point with what the file enables and disables at it.
type extensionPoint struct {
	name string
	set  kubeschedulerv1.PluginSet
}

// extensionPoints returns all points but multiPoint.
func extensionPoints(p *kubeschedulerv1.Plugins) []extensionPoint {
	return []extensionPoint{
		{"preEnqueue", p.PreEnqueue}, {"queueSort", p.QueueSort}, {"preFilter", p.PreFilter}, {"filter", p.Filter},
		{"postFilter", p.PostFilter}, {"preScore", p.PreScore}, {"score", p.Score}, {"reserve", p.Reserve},
		{"permit", p.Permit}, {"preBind", p.PreBind}, {"bind", p.Bind}, {"postBind", p.PostBind},
		{"placementGenerate", p.PlacementGenerate}, {"placementScore", p.PlacementScore}, {"podGroupPostFilter", p.PodGroupPostFilter},
	}
}

// unknownPoint returns the path of a field with an extension point that a version doesn't have and the text
// of a configuration does, "" for none. The type is the newest version's, and decodes all of them.
func unknownPoint(raw []byte, v compat.Version) string {
	var in struct {
		Profiles []struct{ Plugins map[string]any }
	}
	if v >= compat.V37 || yaml.Unmarshal(raw, &in) != nil {
		return ""
	}
	for i := range in.Profiles {
		if _, ok := in.Profiles[i].Plugins["podGroupPostFilter"]; ok {
			return fmt.Sprintf("profiles[%d].plugins.podGroupPostFilter", i)
		}
	}
	return ""
}

// enabled is a plugin at an extension point.
type enabled struct {
	name   string
	weight int32 // as in the file; 0 stands for 1
}

// profilePlugins are the plugins that a profile enables: valid after resolve, and
// complete only while errs is empty.
type profilePlugins struct {
	version compat.Version
	path    *field.Path // of the profile's plugins
	errs    field.ErrorList
	byPoint map[string][]enabled // in the order in which the point calls them
	weights map[string]int32     // of scores, by plugin; 0 stands for 1
}

// resolve merges the file into the defaults as kube-scheduler does: multiPoint first,
// then each point, which overrides it.
func (p *profilePlugins) resolve(in *kubeschedulerv1.Plugins) {
	if in == nil {
		in = &kubeschedulerv1.Plugins{}
	}
	p.byPoint, p.weights = map[string][]enabled{}, map[string]int32{}
	p.checkMultiPoint(in.MultiPoint)
	multi := mergeMultiPoint(p.version, in.MultiPoint)
	for _, e := range multi {
		p.weights[e.name] = e.weight
	}
	for _, point := range extensionPoints(in) {
		p.checkPoint(point)
		p.byPoint[point.name] = expand(p.version, point, multi)
		if point.name == "score" {
			for _, e := range point.set.Enabled {
				p.weights[e.Name] = weightOf(e)
			}
		}
	}
}

// weightOf returns the weight that the file gives a plugin, 0 for none.
func weightOf(p kubeschedulerv1.Plugin) int32 {
	if p.Weight == nil {
		return 0
	}
	return *p.Weight
}

// mergeMultiPoint returns the plugins of multiPoint: first the defaults in their order,
// each with the file's weight where the file enables it too, then the file's others.
func mergeMultiPoint(v compat.Version, in kubeschedulerv1.PluginSet) []enabled {
	disabled := func(name string) bool {
		return slices.ContainsFunc(in.Disabled, func(d kubeschedulerv1.Plugin) bool { return d.Name == name })
	}
	var out []enabled
	taken := map[int]bool{}
	if !disabled("*") {
		for _, d := range defaultOrder(v) {
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

// expand returns the plugins of a point in their order: those that override multiPoint,
// the rest of multiPoint, and those that only the point names.
func expand(v compat.Version, point extensionPoint, multi []enabled) []enabled {
	named := func(list []kubeschedulerv1.Plugin, name string) bool {
		return slices.ContainsFunc(list, func(x kubeschedulerv1.Plugin) bool { return x.Name == name })
	}
	var overrides, rest, own []enabled
	all := named(point.set.Disabled, "*")
	inMulti := map[string]bool{}
	for _, e := range multi {
		points, _ := pointsOf(v, e.name)
		if all || !slices.Contains(points, point.name) || named(point.set.Disabled, e.name) {
			continue
		}
		if inMulti[e.name] = true; !named(point.set.Enabled, e.name) {
			rest = append(rest, e)
		}
	}
	for _, x := range point.set.Enabled {
		e := enabled{x.Name, weightOf(x)}
		if inMulti[x.Name] {
			overrides = append(overrides, e)
		} else {
			own = append(own, e)
		}
	}
	return slices.Concat(overrides, rest, own)
}

// checkMultiPoint checks the plugins that the file names at multiPoint, which takes
// plugins of all points.
func (p *profilePlugins) checkMultiPoint(set kubeschedulerv1.PluginSet) {
	p.checkSet(p.path.Child("multiPoint"), set, func(*field.Path, string, []string) *field.Error { return nil })
}

// checkPoint checks the plugins that the file names at one point: each must have it.
func (p *profilePlugins) checkPoint(point extensionPoint) {
	p.checkSet(p.path.Child(point.name), point.set, func(path *field.Path, name string, points []string) *field.Error {
		if slices.Contains(points, point.name) {
			return nil
		}
		return field.Invalid(path, name, fmt.Sprintf("plugin %q does not extend %s plugin; its points are %s", name, point.name, strings.Join(points, ", ")))
	})
}

// checkSet checks one set of plugins. misplaced returns why a plugin with these points
// can't be in the set, nil when it can.
func (p *profilePlugins) checkSet(path *field.Path, set kubeschedulerv1.PluginSet, misplaced func(path *field.Path, name string, points []string) *field.Error) {
	seen := map[string]bool{}
	for i, x := range set.Enabled {
		at := path.Child("enabled").Index(i)
		points, known := pointsOf(p.version, x.Name)
		switch wrong := misplaced(at.Child("name"), x.Name, points); {
		case slices.Contains(removedPlugins, x.Name):
			p.errs = append(p.errs, field.Invalid(at, x.Name, fmt.Sprintf("was invalid in version %q (KubeSchedulerConfiguration is version %q)", v1.SchemeGroupVersion, kubeschedulerv1.SchemeGroupVersion)))
		case !known:
			p.errs = append(p.errs, field.NotSupported(at.Child("name"), x.Name, knownNames()))
		case wrong != nil:
			p.errs = append(p.errs, wrong)
		case seen[x.Name]:
			p.errs = append(p.errs, field.Duplicate(at, x.Name))
		case x.Weight != nil && (*x.Weight < 0 || *x.Weight > engine.MaxWeights):
			p.errs = append(p.errs, field.Invalid(at.Child("weight"), *x.Weight, fmt.Sprintf("not in valid range [0, %d]; 0 means 1", engine.MaxWeights)))
		}
		seen[x.Name] = true
	}
	for i, x := range set.Disabled {
		if _, known := pointsOf(p.version, x.Name); !known && x.Name != "*" {
			p.errs = append(p.errs, field.NotSupported(path.Child("disabled").Index(i).Child("name"), x.Name, append(knownNames(), "*")))
		}
	}
}

// has reports whether a plugin is enabled at a point.
func (p *profilePlugins) has(point, name string) bool {
	return slices.ContainsFunc(p.byPoint[point], func(e enabled) bool { return e.name == name })
}
