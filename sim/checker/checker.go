// Package checker verifies placements from API objects alone: whether each pod was allowed
// to be where it is. It shares no code with the engine or the rules, or it would share
// their defects: tests and the virtual world ask it for a second opinion.
//
// What it can't know it takes for allowed: when a taint came, which Namespace objects a
// selector matches, volumes, declared features.
package checker

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Violation is a pod that must not be where it is.
type Violation struct {
	Pod, Node string
	// Rule is capacity, pods, ports, taint, affinity, cordon, anti-affinity, pod affinity,
	// spread or node.
	Rule   string
	Detail string
}

func (v Violation) String() string {
	return fmt.Sprintf("pod %s on node %s breaks %s: %s", v.Pod, v.Node, v.Rule, v.Detail)
}

// Check returns every violation of what holds at all times, among the pods that have a node
// and haven't ended, in the order of nodes and pods given. A taint with effect NoSchedule
// that came after the pod looks like one that was there before: ignoreTaint, which may be
// nil, is true for those to be ignored.
func Check(nodes []*v1.Node, pods []*v1.Pod, ignoreTaint func(v1.Taint) bool) []Violation {
	c := newCheck(nodes, pods)
	c.ignoreTaint = ignoreTaint
	for _, node := range nodes {
		c.capacity(node)
		for i, pod := range c.podsByNode[node.Name] {
			c.nodeAffinity(node, pod)
			c.taints(node, pod, v1.TaintEffectNoSchedule)
			for _, other := range c.podsByNode[node.Name][:i] {
				c.ports(pod, other)
			}
		}
	}
	c.antiAffinity()
	return c.found
}

// CheckPods returns the violations of what had to hold when some pods were placed, those
// for which placed is true. A violation that was there before doesn't count: a node that
// has shrunk since is no decision.
func CheckPods(nodes []*v1.Node, pods []*v1.Pod, placed func(*v1.Pod) bool) []Violation {
	c := newCheck(nodes, pods)
	c.placed = placed
	for _, node := range nodes {
		for i, pod := range c.podsByNode[node.Name] {
			if !placed(pod) {
				continue
			}
			c.capacity(node)
			c.nodeAffinity(node, pod)
			c.taints(node, pod, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute)
			c.cordon(node, pod)
			for k, other := range c.podsByNode[node.Name] {
				if k != i {
					c.ports(pod, other)
				}
			}
		}
	}
	c.antiAffinity()
	return c.found
}

// Fits reports whether a pod may be placed on a node, with pods that are placed already. The
// cost is that of a whole check, for each call.
func Fits(pod *v1.Pod, node *v1.Node, nodes []*v1.Node, pods []*v1.Pod) bool {
	there := *pod
	there.Spec.NodeName = node.Name
	all := append(pods[:len(pods):len(pods)], &there)
	if len(CheckPods(nodes, all, func(p *v1.Pod) bool { return p == &there })) > 0 {
		return false
	}
	c := newCheck(nodes, all)
	for i := range there.Spec.TopologySpreadConstraints {
		if s := &there.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == v1.DoNotSchedule {
			c.spread(&there, s)
		}
	}
	return len(c.found) == 0
}

// CheckStanding returns the violations of what holds after every placement, as long as no
// pod leaves its node: required pod affinity, and hard topology spread among pods that all
// ask for it. For every other rule there is Check.
func CheckStanding(nodes []*v1.Node, pods []*v1.Pod) []Violation {
	c := newCheck(nodes, pods)
	for _, name := range slices.Sorted(maps.Keys(c.podsByNode)) {
		for _, pod := range c.podsByNode[name] {
			if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
				for i := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					c.affinityTerm(pod, &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
				}
			}
			for i := range pod.Spec.TopologySpreadConstraints {
				if s := &pod.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == v1.DoNotSchedule {
					c.spread(pod, s)
				}
			}
		}
	}
	return c.found
}

// check is one look at a cluster.
type check struct {
	ignoreTaint func(v1.Taint) bool // nil ignores none
	placed      func(*v1.Pod) bool  // whose violations count; nil for all
	nodes       map[string]*v1.Node
	podsByNode  map[string][]*v1.Pod // pods that have a node and haven't ended, by its name
	found       []Violation
}

// newCheck returns a check that has found the pods whose node isn't there.
func newCheck(nodes []*v1.Node, pods []*v1.Pod) *check {
	c := &check{podsByNode: map[string][]*v1.Pod{}, nodes: map[string]*v1.Node{}}
	for _, node := range nodes {
		c.nodes[node.Name] = node
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if c.nodes[pod.Spec.NodeName] == nil {
			c.add(pod, "node", "there is no such node")
			continue
		}
		c.podsByNode[pod.Spec.NodeName] = append(c.podsByNode[pod.Spec.NodeName], pod)
	}
	return c
}

// add records a violation. Rule is a short name by which callers tell violations apart.
func (c *check) add(pod *v1.Pod, rule, format string, args ...any) {
	c.found = append(c.found, Violation{pod.Namespace + "/" + pod.Name, pod.Spec.NodeName, rule, fmt.Sprintf(format, args...)})
}
