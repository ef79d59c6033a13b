// Package reference is the slow, obvious implementation of the engine: it answers for a
// pod from nothing, every node as a group of its own, with no class, cache or fact kept
// from before. Tests compare the engine with it.
//
// It shares the rules with the engine, so it can't tell whether a rule is right: that is
// for the conformance oracle in devcluster/. What it shows is that classes, columns,
// groups, exceptional nodes and rollbacks change no answer.
package reference

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Answer is the answer for one node.
type Answer struct {
	OK     bool
	Score  int64  // total, when OK
	Plugin string // the first that rejects, when not
}

// Answers returns the answer for every node by name. It rebuilds the state from
// the objects in it first, so that no fact is kept from before.
// It follows the order in which kube-scheduler works: rules for the pod, filters node by
// node, scores among what is feasible.
func Answers(state *cluster.State, profile *framework.Profile, pod *cluster.Pod) map[string]Answer {
	fresh := rebuild(state, nil)
	out := map[string]Answer{}
	var rules []rule
	for i := range profile.Plugins {
		p := &profile.Plugins[i]
		r, reason := p.For(pod, fresh)
		// A rule that is final for the pod rejects it everywhere, and later rules aren't
		// made.
		if reason != nil {
			fresh.Nodes(func(n *cluster.Node) { out[n.Name] = Answer{Plugin: p.Name()} })
			return out
		}
		rules = append(rules, rule{r, p})
	}
	var feasible []*cluster.Node
	failed := "" // the plugin that ends the attempt with an error
	fresh.Nodes(func(n *cluster.Node) {
		// The node is judged twice, as kube-scheduler does it: with the pods nominated to
		// it, and without them below.
		plugin, code := rejecterWithNominated(state, profile, pod, n.Name)
		for _, r := range rules {
			if code != framework.OK {
				break
			}
			if code = r.code(fresh, n); code != framework.OK {
				plugin = r.Name()
			}
		}
		switch code {
		case framework.OK:
			feasible = append(feasible, n)
			return
		case framework.Error:
			failed = plugin
		}
		out[n.Name] = Answer{Plugin: plugin}
	})
	// No node is feasible then, whatever was said before.
	if failed != "" {
		for _, n := range feasible {
			out[n.Name] = Answer{Plugin: failed}
		}
		return out
	}
	// Only feasible nodes are scored, and normalised among each other.
	totals := make([]int64, len(feasible))
	for _, r := range rules {
		if r.Rules.Local != nil {
			for i, n := range feasible {
				_, score := r.Rules.Local.EvalNode(n)
				totals[i] += score * r.Weight
			}
		}
		if r.Rules.Group != nil && len(feasible) > 0 {
			r.Rules.Group.Score(r.groups(fresh, feasible), r.Weight, totals)
		}
	}
	for i, n := range feasible {
		out[n.Name] = Answer{OK: true, Score: totals[i]}
	}
	return out
}

// rule is what a plugin made for the pod.
// Its Rules are for one pod and one state.
type rule struct {
	framework.Rules
	*framework.Weighted
}

// code returns what the rule says about the pod on one node.
// A local rule's verdict comes first: where it rejects, group rules aren't asked.
func (r rule) code(s *cluster.State, n *cluster.Node) framework.Code {
	if r.Rules.Local != nil {
		if code, _ := r.Rules.Local.EvalNode(n); code != framework.OK {
			return code
		}
	}
	code := make([]framework.Code, 1)
	if r.Rules.Group != nil {
		r.Rules.Group.Filter(r.groups(s, []*cluster.Node{n}), code)
	}
	return code[0]
}

// groups makes each of the nodes a group of its own.
// With each node alone nothing can go wrong in grouping, which is what makes this the
// reference.
func (r rule) groups(s *cluster.State, nodes []*cluster.Node) *framework.Groups {
	g := &framework.Groups{}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, 1)
		g.Static = append(g.Static, r.Rules.Group.StaticKey(&n.NodeBasics))
		g.Host = append(g.Host, r.Rules.Group.HostKey(n.Index))
	}
	for _, key := range r.Rules.Group.TopologyKeys() {
		var domains []cluster.Domain
		for _, n := range nodes {
			domains = append(domains, s.Topology(key).Of(n.Index))
		}
		g.Domains = append(g.Domains, domains)
	}
	return g
}

// rejecterWithNominated returns the first plugin that rejects the pod on a node if the
// pods of equal or higher priority that are nominated to it were there already, but for
// those that keep room for it, and its code; "" for none.
// Nominations count for filters only.
func rejecterWithNominated(state *cluster.State, profile *framework.Profile, pod *cluster.Pod, node string) (string, framework.Code) {
	with := rebuild(state, nil)
	some := false
	for _, x := range inTurn(state) {
		// A stand-in keeps room for the pods that its headroom admits, so it isn't in their
		// way.
		own := x.Pod.StandsIn() && state.Headroom(x.Pod.StandIn) != nil && state.Headroom(x.Pod.StandIn).Admits(pod)
		if x.Name == node && x.Pod.Priority >= pod.Priority && !own {
			with.Place(x.Pod, node)
			assume(with, profile, x.Pod, node, keeps(state, x))
			some = true
		}
	}
	if !some {
		return "", framework.OK
	}
	// State and rules are rebuilt, so this costs a copy of the cluster for each node.
	return rejecter(with, profile, pod, node)
}

// rejecter returns the first plugin that rejects the pod on a node, and its code; "" for none.
func rejecter(state *cluster.State, profile *framework.Profile, pod *cluster.Pod, node string) (string, framework.Code) {
	for i := range profile.Plugins {
		p := &profile.Plugins[i]
		r, reason := p.For(pod, state)
		if reason != nil {
			return p.Name(), framework.Final
		}
		if code := (rule{r, p}).code(state, state.NodeByName(node)); code != framework.OK {
			return p.Name(), code
		}
	}
	return "", framework.OK
}

// fits reports whether a pod may go to a node when some pods are gone.
// Both with nominated pods and without them the pod must fit.
func fits(state *cluster.State, profile *framework.Profile, pod *cluster.Pod, node string, gone map[*cluster.Pod]bool) bool {
	s := withoutVictims(state, profile, gone)
	with, _ := rejecterWithNominated(s, profile, pod, node)
	without, _ := rejecter(s, profile, pod, node)
	return with == "" && without == ""
}

// Preempt returns, for every node where preemption helps, the names of the pods
// that would have to go, the most important first.
// The candidates are not compared with each other: which of them is chosen is the
// preempter's test.
func Preempt(state *cluster.State, profile *framework.Profile, pod *cluster.Pod) map[string][]string {
	out := map[string][]string{}
	if profile.Preempter.Eligible(pod) != nil {
		return out
	}
	answers := Answers(state, profile, pod)
	state.Nodes(func(n *cluster.Node) {
		lower := leavable(state, n, pod.Priority)
		gone := map[*cluster.Pod]bool{}
		mark := func(u framework.Unit, is bool) {
			for _, p := range u.Pods {
				gone[p] = is
			}
		}
		for _, u := range lower {
			mark(u, true)
		}
		if answers[n.Name].OK || lower == nil || !fits(state, profile, pod, n.Name, gone) {
			return
		}
		// Then they are given back one by one, the most important first, and those that fit
		// in stay.
		profile.Preempter.Order(lower, state)
		v := framework.Victims{}
		for _, u := range lower {
			mark(u, false)
			if fits(state, profile, pod, n.Name, gone) {
				continue
			}
			// Without this unit gone the pod doesn't fit: it is a victim.
			mark(u, true)
			v.Pods = append(v.Pods, u.Pods...)
			v.Violations += u.Violations
		}
		if v.Pods == nil {
			return
		}
		profile.Preempter.Cost(&v)
		for _, p := range v.Pods {
			out[n.Name] = append(out[n.Name], p.Name())
		}
	})
	return out
}

// leavable returns what could leave a node for a pod of a priority: pods of lower priority, and whole
// groups of them where a member's group has disruptionMode all.
// A group counts by its most important member.
func leavable(state *cluster.State, n *cluster.Node, below int32) (out []framework.Unit) {
	known := map[cluster.PodGroupKey]bool{}
	for _, p := range n.Pods {
		priority, u := p.Priority, framework.Unit{Pods: []*cluster.Pod{p}}
		if p.Group != nil {
			if g := state.PodGroup(*p.Group); g != nil {
				priority = max(priority, cluster.GroupPriority(g))
			}
		}
		if key, whole := state.GoesWhole(p); whole {
			if known[key] {
				continue
			}
			// A group that goes whole is one unit, wherever its members are.
			known[key] = true
			u = framework.Unit{Group: true}
			state.Nodes(func(n *cluster.Node) {
				for _, m := range n.Pods {
					if m.Group != nil && *m.Group == key {
						u.Pods = append(u.Pods, m)
						priority = max(priority, m.Priority)
					}
				}
			})
		}
		if priority < below {
			out = append(out, u)
		}
	}
	return out
}

// rebuild copies a state object by object, but for some pods.
// Objects are shared; what the state derives from them is made anew.
func rebuild(s *cluster.State, gone map[*cluster.Pod]bool) *cluster.State {
	out := cluster.New(s.Schema)
	s.Nodes(func(n *cluster.Node) { out.SetNode(n.NodeInfo) })
	s.Nodes(func(n *cluster.Node) {
		for _, p := range n.Pods {
			if !gone[p] {
				out.Place(p, n.Name)
			}
		}
	})
	for _, w := range s.Workloads() {
		out.SetWorkload(w)
	}
	for _, o := range s.Objects() {
		out.SetObject(o)
	}
	for _, h := range s.Headrooms() {
		out.SetHeadroom(h)
	}
	for _, n := range s.Nominations() {
		out.Renominate(n.Pod, n)
	}
	return out
}
