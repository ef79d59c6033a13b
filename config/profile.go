package config

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
)

// This file turns profiles of a file into plugins.Options: which rules filter, which score
// and with which weight. What must hold: what a profile asks for and Berth's rules can't
// do, such as a filter without its preFilter, is refused and never approximated.

// readProfiles reads the list of profiles. Each needs a name of its own, and all need the
// same queueSort, since there is one queue.
func readProfiles(r Rules, path *field.Path, in []kubeschedulerv1.KubeSchedulerProfile) (out []plugins.Options, errs field.ErrorList) {
	defaultName := ""
	if len(in) == 1 {
		defaultName = v1.DefaultSchedulerName
	}
	seen := map[string]int{}
	for i := range in {
		at := path.Index(i)
		checkPercentage(at.Child("percentageOfNodesToScore"), in[i].PercentageOfNodesToScore, &errs)
		p, more := profile(r, at, &in[i], defaultName)
		errs = append(errs, more...)
		if first, ok := seen[p.SchedulerName]; ok {
			errs = append(errs, field.Duplicate(at.Child("schedulerName"), path.Index(first).Child("schedulerName").String()))
		}
		if sortText(in[i].Plugins) != sortText(in[0].Plugins) {
			errs = append(errs, field.Invalid(at.Child("plugins", "queueSort"), "", "must be the same for all profiles"))
		}
		seen[p.SchedulerName] = i
		out = append(out, p)
	}
	return out, errs
}

// profile reads one profile. Without a name it is called defaultName, and refused if that
// is empty.
func profile(r Rules, path *field.Path, in *kubeschedulerv1.KubeSchedulerProfile, defaultName string) (plugins.Options, field.ErrorList) {
	var out plugins.Options
	r.setGates(&out)
	out.SchedulerName = ptr.Deref(in.SchedulerName, defaultName)
	p := profilePlugins{version: r.Version, path: path.Child("plugins")}
	if out.SchedulerName == "" {
		p.errs = append(p.errs, field.Required(path.Child("schedulerName"), "the profile needs a name"))
	}
	p.resolve(in.Plugins)
	p.rules(&out)
	// Arguments are read for plugins that aren't enabled, too: kube-scheduler checks them all.
	seen := map[string]bool{}
	for i := range in.PluginConfig {
		c, at := &in.PluginConfig[i], path.Child("pluginConfig").Index(i)
		if seen[c.Name] {
			p.errs = append(p.errs, field.Duplicate(at, c.Name))
		}
		seen[c.Name] = true
		p.errs = append(p.errs, arguments(r.Version, at, c.Name, c.Args.Raw, &out)...)
		if c.Name == PreemptOrBuy && out.NoPreemption {
			p.errs = append(p.errs, field.Forbidden(at, "no pod of the profile preempts; enable DefaultPreemption at postFilter, or remove this"))
		}
	}
	return out, p.errs
}

// rules sets the rules of a profile, in the order in which they filter; those that only
// score come after them.
func (p *profilePlugins) rules(out *plugins.Options) {
	out.NoGates = !p.has("preEnqueue", "SchedulingGates")
	out.NoClaimGate = !p.has("preEnqueue", "DynamicResources")
	out.NoPreemption = !p.has("postFilter", "DefaultPreemption")
	p.checkRequired(out.SchedulerName)
	p.checkTogether()
	weights := p.scoreWeights(out)
	out.Rules = []plugins.Rule{}
	for _, e := range p.byPoint["filter"] {
		out.Rules = append(out.Rules, plugins.Rule{Name: e.name, Filters: true, Weight: weights[e.name]})
		delete(weights, e.name)
	}
	for _, e := range p.byPoint["score"] {
		if w, ok := weights[e.name]; ok {
			out.Rules = append(out.Rules, plugins.Rule{Name: e.name, Weight: w})
		}
	}
}

// checkRequired refuses a profile without the plugins that every profile needs.
func (p *profilePlugins) checkRequired(profile string) {
	if n := len(p.byPoint["queueSort"]); n != 1 {
		p.errs = append(p.errs, field.Invalid(p.path.Child("queueSort"), n, fmt.Sprintf("only one queue sort plugin required for profile with scheduler name %q, but got %d", profile, n)))
	}
	if len(p.byPoint["bind"]) == 0 {
		p.errs = append(p.errs, field.Required(p.path.Child("bind"), fmt.Sprintf("at least one bind plugin is needed for profile with scheduler name %q", profile)))
	}
}

// checkTogether refuses a plugin at one point without another that Berth does with the same
// rule: it can't leave out one half of a rule. What plugins have at preFilter since 1.37 is nothing that
// their rules for pods without a node need.
func (p *profilePlugins) checkTogether() {
	for _, pair := range [][2]string{{"preFilter", "filter"}, {"preScore", "score"}} {
		for _, e := range p.byPoint[pair[1]] {
			if points, _ := pointsOf(compat.V36, e.name); slices.Contains(points, pair[0]) && !p.has(pair[0], e.name) {
				p.errs = append(p.errs, field.Forbidden(p.path.Child(pair[0]), fmt.Sprintf("%s is enabled at %s and disabled at %s; enable or disable it at both", e.name, pair[1], pair[0])))
			}
		}
	}
	if p.has("filter", "VolumeBinding") && (!p.has("reserve", "VolumeBinding") || !p.has("preBind", "VolumeBinding")) {
		p.errs = append(p.errs, field.Forbidden(p.path.Child("preBind"), "VolumeBinding is enabled at filter and disabled at reserve or preBind; enable or disable it at all three"))
	}
}

// scoreWeights returns the weights of the plugins that score. Their sum is limited, or a
// node's total score would not fit into the engine's encoding.
func (p *profilePlugins) scoreWeights(out *plugins.Options) map[string]int64 {
	weights := map[string]int64{}
	total := int64(0)
	for _, e := range p.byPoint["score"] {
		if e.name == "VolumeBinding" && !out.ScoresVolumes(p.version) {
			continue
		}
		w := max(1, int64(p.weights[e.name]))
		weights[e.name] = w
		total += w
	}
	if total > engine.MaxWeights {
		p.errs = append(p.errs, field.Invalid(p.path.Child("score"), total, fmt.Sprintf("total score of Score plugins could overflow; the weights may add up to %d", engine.MaxWeights)))
	}
	return weights
}

// sortText writes a profile's queueSort as text: profiles with equal texts agree.
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
