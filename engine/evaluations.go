package engine

import "github.com/berthproject/berth/framework"

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
// that a node was found, so that scores counted.
func (e *Engine) Count(c *Class, scored bool) {
	if e.evaluated == nil {
		e.evaluated = make([]evaluated, len(e.profile.Plugins))
	}
	count := func(plugin int, weight int64) {
		x := &e.evaluated[plugin]
		if _, ok := e.profile.Plugins[plugin].Plugin.(framework.Waker); ok {
			x.filter++
		}
		if scored && weight != 0 {
			x.score++
		}
	}
	at := 0
	for i := range c.locals { // both lists are in the order of the profile
		l := &c.locals[i]
		weight := l.weight
		for ; at < len(c.rules) && c.rules[at].plugin <= l.plugin; at++ {
			if c.rules[at].plugin < l.plugin {
				count(c.rules[at].plugin, c.rules[at].weight)
			} else {
				weight = max(weight, c.rules[at].weight)
			}
		}
		count(l.plugin, weight)
	}
	for ; at < len(c.rules); at++ {
		count(c.rules[at].plugin, c.rules[at].weight)
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
