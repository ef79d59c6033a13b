package observe

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
)

// This file serves names of pods, pod groups, nodes and node groups, for shells that complete them.

// Names is what /debug/explain?names=KIND&prefix=TEXT answers: names that begin so, sorted,
// maxNames at most. Those of pods and pod groups are
// NAMESPACE/NAME.
type Names struct {
	Names []string `json:"names"`
}

// maxNames is how many names an answer has at most.
const maxNames = 500

// namesOf returns what lists the names of a kind, in O(of them); nil for a kind that isn't known.
func namesOf(kind string) func(c *core.Core, f func(name string)) {
	switch kind {
	case "pods":
		return func(c *core.Core, f func(string)) {
			c.Pods(func(obj *v1.Pod, _ string) { f(obj.Namespace + "/" + obj.Name) })
		}
	case "podgroups":
		return func(c *core.Core, f func(string)) {
			for _, name := range c.View().PodGroupNames() {
				f(name)
			}
		}
	case "nodes":
		return func(c *core.Core, f func(string)) {
			names, _ := c.View().NodeNames()
			for _, name := range names {
				f(name)
			}
		}
	case "groups":
		return func(c *core.Core, f func(string)) {
			for _, g := range c.State().Groups() {
				f(g.ID)
			}
		}
	}
	return nil
}

// explainNames returns the names of a kind that begin with a prefix.
func explainNames(c *core.Core, list func(*core.Core, func(string)), prefix string) reply {
	out := Names{Names: []string{}}
	list(c, func(name string) {
		if strings.HasPrefix(name, prefix) {
			out.Names = append(out.Names, name)
		}
	})
	slices.Sort(out.Names)
	out.Names = out.Names[:min(len(out.Names), maxNames)]
	return reply{value: out}
}
