package engine

import "github.com/berthproject/berth/core/framework"

// For how many pods each plugin's answer was wanted, which stands for
// kube-scheduler's scheduler_plugin_evaluation_total. The engine evaluates classes
// and keeps most answers, so how often a plugin really ran says little about the
// pods. Whoever decides for a pod counts it (CountFiltered, CountScored), once for
// each attempt; what-ifs and explanations don't count.

// Evaluations is for how many pods the answer of a plugin was wanted.
type Evaluations struct {
	Plugin string
	Point  string // kube-scheduler's extension point: "Filter" or "Score"
	Pods   uint64 // since the engine was made
}

// pluginPods counts pods for one plugin.
type pluginPods struct{ filtered, scored uint64 }

// CountFiltered counts a pod of the class for the plugins that filter it. A plugin
// filters if it says what wakes a pod that it rejects (framework.Waker).
func (e *Engine) CountFiltered(c *Class) {
	for i := range c.prepared {
		if _, filters := e.profile.Plugins[i].Plugin.(framework.Waker); filters && c.prepared[i].concerns() {
			e.evaluated[i].filtered++
		}
	}
}

// CountScored counts a pod of the class for the plugins that score it: for a pod
// that found a node, since no other pod's scores matter.
func (e *Engine) CountScored(c *Class) {
	for i := range c.prepared {
		if e.profile.Plugins[i].Weight != 0 && c.prepared[i].concerns() {
			e.evaluated[i].scored++
		}
	}
}

// concerns reports whether the plugin has a rule for the class, or rejects it.
func (p *prepared) concerns() bool { return p.Local != nil || p.Group != nil || p.reason != nil }

// Evaluations returns the counts that aren't 0, in the order of the profile,
// "Filter" before "Score".
func (e *Engine) Evaluations() (out []Evaluations) {
	for i, pods := range e.evaluated {
		name := e.profile.Plugins[i].Name()
		if pods.filtered > 0 {
			out = append(out, Evaluations{name, "Filter", pods.filtered})
		}
		if pods.scored > 0 {
			out = append(out, Evaluations{name, "Score", pods.scored})
		}
	}
	return out
}
