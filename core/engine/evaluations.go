package engine

import "github.com/berthproject/berth/core/framework"

// Evaluations counts the pods that a plugin has judged at an extension point of
// kube-scheduler. The engine judges classes, and most answers lie ready: what counts
// is for how many pods the answer was wanted.
type Evaluations struct {
	Plugin, Point string
	Pods          uint64
}

// evaluated counts by plugin, in the order of the profile.
type evaluated struct{ filter, score uint64 }

// Count takes note that an answer was wanted for a pod of the class; scored says
// that a node was found, so that scores counted. A plugin that says what wakes a
// pod is one that filters.
func (e *Engine) Count(c *Class, scored bool) {
	if e.evaluated == nil {
		e.evaluated = make([]evaluated, len(e.profile.Plugins))
	}
	for i := range c.made {
		m, p := &c.made[i], &e.profile.Plugins[i]
		if m.Local == nil && m.Group == nil && m.reason == nil {
			continue // it has nothing to say of the class
		}
		if _, ok := p.Plugin.(framework.Waker); ok {
			e.evaluated[i].filter++
		}
		if scored && p.Weight != 0 {
			e.evaluated[i].score++
		}
	}
}

// Evaluations returns the counts, in the order of the profile.
func (e *Engine) Evaluations() (out []Evaluations) {
	for i, x := range e.evaluated {
		name := e.profile.Plugins[i].Name()
		if x.filter > 0 {
			out = append(out, Evaluations{name, "Filter", x.filter})
		}
		if x.score > 0 {
			out = append(out, Evaluations{name, "Score", x.score})
		}
	}
	return out
}
