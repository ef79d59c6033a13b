package ruletest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file calls a plugin's rules as the engine does, and checks the contract with each
// call: a filter of one node alone and among others, scores in groups and alone, aspects of
// a node that a local rule says it doesn't read, counts, reasons.
// A problem fails a case even if its answers are right: the engine relies on the contract
// for its caches.

// answers are the answers of a plugin's rules about the nodes of a cluster. Problems are
// violations of the contract.
type answers struct {
	c        *Cluster
	plugin   framework.Plugin
	rules    framework.Rules
	scores   bool // the local rule may score
	problems []string
}

// problem records a violation of the contract. The case goes on: its answers say more.
func (a *answers) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// filter returns why the rules reject one node, "" when they don't. The local rule comes
// first, as in the engine.
func (a *answers) filter(n *cluster.Node) string {
	if local := a.rules.Local; local != nil {
		code, score := local.EvalNode(n)
		if score != 0 && !a.scores {
			a.problem("%s: the local rule, which only filters, scores %d", n.Name, score)
		}
		a.checkAspects(n, code, score)
		a.checkCount(n, local, code)
		if a.leavesOut(local, n) {
			if code != framework.Final {
				a.problem("%s: the rule keeps the pod to other nodes, and EvalNode returns code %d", n.Name, code)
			}
			return a.text(framework.LeftOut(a.plugin.Name()))
		}
		if code != framework.OK {
			return a.reason(n, code, local.Explain(n))
		}
	}
	group := a.rules.Group
	if group == nil {
		return ""
	}
	g := a.groups([]*cluster.Node{n}, func(*cluster.Node) bool { return true })
	// A rule must set every code, so the slice begins with one that is wrong.
	codes := []framework.Code{framework.Final} // to be overwritten
	group.Filter(g.Groups, codes)
	// Counting by a group rule is of one node only where nodes don't share hostnames.
	if a.c.Topology(v1.LabelHostname).Unshared() {
		a.checkCount(n, group, codes[0])
	}
	if codes[0] == framework.OK {
		return ""
	}
	if neverFilters(group) {
		a.problem("%s: a rule that says NeverFilters rejects it", n.Name)
	}
	return a.reason(n, codes[0], group.Explain(g.Groups, 0))
}

// leavesOut reports whether a local rule names nodes to which it keeps the pod, and this isn't one.
// The contract wants the list sorted.
func (a *answers) leavesOut(local framework.LocalRule, n *cluster.Node) bool {
	narrower, ok := local.(framework.Narrower)
	if !ok || narrower.NarrowsTo() == nil {
		return false
	}
	names := narrower.NarrowsTo()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		a.problem("the rule keeps the pod to %q, which isn't sorted or has a name twice", names)
	}
	return !slices.Contains(names, n.Name)
}

// filterTogether lets the group rule filter all nodes at once, half of them as groups
// without candidates, and compares the codes with those of each node alone.
// With both halves in turn each node is once a candidate and once not.
func (a *answers) filterTogether() {
	if a.rules.Group == nil {
		return
	}
	var nodes []*cluster.Node
	a.c.Nodes(func(n *cluster.Node) { nodes = append(nodes, n) })
	for _, odd := range []cluster.NodeIndex{0, 1} {
		candidate := func(n *cluster.Node) bool { return n.Index%2 == odd }
		g := a.groups(nodes, candidate)
		codes := make([]framework.Code, len(nodes))
		for i := range codes {
			codes[i] = framework.Final // to be overwritten
		}
		a.rules.Group.Filter(g.Groups, codes)
		for i, n := range nodes {
			alone := []framework.Code{framework.Final}
			a.rules.Group.Filter(a.groups(nodes[i:i+1], candidate).Groups, alone)
			if candidate(n) && alone[0] != codes[i] {
				a.problem("%s: code %d alone, %d among others", n.Name, alone[0], codes[i])
			}
		}
	}
}

// neverFilters reports whether a rule says that it rejects nothing for this pod.
func neverFilters(g framework.GroupRule) bool {
	n, ok := g.(framework.NeverFilters)
	return ok && n.NeverFilters()
}

// checkAspects evaluates the node again without the parts that, by Reads, the local rule
// doesn't read: the answer must be the same.
// A rule that reads more than it says would give stale answers from the engine's columns.
func (a *answers) checkAspects(n *cluster.Node, code framework.Code, score int64) {
	without := *n
	reads := a.rules.Local.Reads()
	if reads&framework.ReadsObject == 0 {
		// An object with a name and nothing else; what is derived from it is empty, too.
		bare := cluster.NodeInfo{Name: n.Name, NodeBasics: cluster.NodeBasics{Object: &v1.Node{}}}
		bare.Object.Name = n.Name
		without.NodeInfo, without.NodeBasics = &bare, bare.NodeBasics
	}
	if reads&framework.ReadsPods == 0 {
		without.Pods, without.Ports, without.Requested, without.NonZero = nil, nil, cluster.Resources{}, [2]int64{}
	}
	if c, s := a.rules.Local.EvalNode(&without); c != code || s != score {
		a.problem("%s: the local rule reads more of the node than Reads says", n.Name)
	}
}

// checkCount asks a rule that can count how many pods the node takes, outside of its
// state: some if the rule's code is OK, otherwise none.
// Detached, because counting is done for nodes that don't exist.
func (a *answers) checkCount(n *cluster.Node, rule any, code framework.Code) {
	if counter, ok := rule.(framework.Counter); ok {
		if pods := counter.Count(n.Detached()); (pods > 0) != (code == framework.OK) {
			a.problem("%s: code %d, and Count %d", n.Name, code, pods)
		}
	}
}

// reason returns the text of a rejection as Want has it. The reason must agree with the
// code.
func (a *answers) reason(n *cluster.Node, code framework.Code, r *framework.Reason) string {
	if r == nil {
		a.problem("%s: rejected without a reason", n.Name)
		return "rejected"
	}
	if r.Final != (code == framework.Final) {
		a.problem("%s: code %d, and a reason with Final %v", n.Name, code, r.Final)
	}
	return a.text(r)
}

// text returns the text of a reason, "Reject: Insufficient cpu (cpu: needs 2000, has 500)",
// and checks what every plugin that rejects has to say.
func (a *answers) text(r *framework.Reason) string {
	if r.Plugin != a.plugin.Name() {
		a.problem("plugin %s gives its reason the plugin %q", a.plugin.Name(), r.Plugin)
	}
	// Without that a pod that it rejects would wait for ever.
	if w, ok := a.plugin.(framework.Waker); !ok || w.WakesWhen() == "" {
		a.problem("the plugin rejects pods and doesn't say what wakes them (WakesWhen)")
	}
	text := "Reject: "
	if r.Final {
		text = "Final: "
	}
	text += strings.Join(r.Messages, ", ")
	if len(r.Deficits) > 0 {
		var parts []string
		for _, d := range r.Deficits {
			parts = append(parts, fmt.Sprintf("%s: needs %d, has %d", d.Resource, d.Needed, d.Available))
		}
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	return text
}

// score returns the scores of the candidates, and those before normalising where
// the rule shows them (nil otherwise).
// Scores of the group rule and of the local one add up.
func (a *answers) score(nodes []*cluster.Node, candidate func(*cluster.Node) bool) (scores, raws []int64) {
	scores = make([]int64, len(nodes))
	group := a.rules.Group
	if group != nil {
		g := a.groups(nodes, candidate)
		alone := a.groupScores(g.Groups)
		merged := g.merge(func(n *cluster.Node) any { return group.HostKey(n.Index) })
		// A rule must give nodes that its keys don't tell apart the same score, alone or
		// together.
		together := a.groupScores(merged.Groups)
		for i := range nodes {
			scores[i] = alone[i]
			if candidate(nodes[i]) && together[merged.of[i]] != alone[i] {
				a.problem("%s: score %d in a group of its own, %d with the nodes that no key tells apart", nodes[i].Name, alone[i], together[merged.of[i]])
			}
		}
		if raw, ok := group.(framework.RawScorer); ok {
			raws = make([]int64, len(nodes))
			raw.Raw(g.Groups, raws)
		}
	}
	for i, n := range nodes {
		if a.rules.Local != nil && candidate(n) {
			_, s := a.rules.Local.EvalNode(n)
			scores[i] += s
		}
		// Before the weight each score is from 0 to MaxScore, as kube-scheduler wants it.
		if candidate(n) && (scores[i] < 0 || scores[i] > framework.MaxScore) {
			a.problem("%s: score %d is not within 0 and %d", n.Name, scores[i], framework.MaxScore)
		}
	}
	return scores, raws
}

// groupScores returns the group rule's scores. Score must add them, times the weight, to
// what out holds.
// A base that isn't 0 shows a rule that overwrites.
func (a *answers) groupScores(g *framework.Groups) []int64 {
	const weight, base = 3, 1000
	once, more := make([]int64, g.Len()), make([]int64, g.Len())
	for i := range more {
		more[i] = base
	}
	a.rules.Group.Score(g, 1, once)
	a.rules.Group.Score(g, weight, more)
	for i := range once {
		if g.Nodes[i] != 0 && more[i] != base+weight*once[i] {
			a.problem("Score adds %d with weight 1 and %d with weight %d", once[i], more[i]-base, weight)
		}
	}
	return once
}

// grouping is the nodes of a cluster in groups.
type grouping struct {
	*framework.Groups
	nodes []*cluster.Node
	of    []int // index of the group, by node
}

// groups puts every node into a group of its own. The group of a node that is no candidate
// counts no nodes, as in the engine.
// Keys are asked of the rule itself.
func (a *answers) groups(nodes []*cluster.Node, candidate func(*cluster.Node) bool) grouping {
	rule := a.rules.Group
	g := grouping{Groups: &framework.Groups{}, nodes: nodes}
	for i, n := range nodes {
		count := int32(0)
		if candidate(n) {
			count = 1
		}
		host := rule.HostKey(n.Index)
		counted := false
		for _, f := range rule.HostFacts() {
			counted = counted || f.CountAt(n.Index) != 0
		}
		// A host key says that the node differs by pods on it; without such pods it must be
		// 0.
		if host != 0 && !counted {
			a.problem("%s: HostKey %d though its host facts are 0", n.Name, host)
		}
		g.Nodes = append(g.Nodes, count)
		g.Static = append(g.Static, rule.StaticKey(&n.NodeBasics))
		g.Host = append(g.Host, host)
		g.of = append(g.of, i)
	}
	for _, key := range rule.TopologyKeys() {
		var domains []cluster.Domain
		for _, n := range nodes {
			domains = append(domains, a.c.Topology(key).Of(n.Index))
		}
		g.Domains = append(g.Domains, domains)
	}
	return g
}

// merge returns a grouping with one group for all nodes that no key tells apart.
// The order of groups is that of their first nodes.
func (g grouping) merge(host func(*cluster.Node) any) grouping {
	out := grouping{Groups: &framework.Groups{Domains: make([][]cluster.Domain, len(g.Domains))}, nodes: g.nodes}
	seen := map[string]int{}
	for i, n := range g.nodes {
		key := fmt.Sprint(g.Static[i], host(n))
		for k := range g.Domains {
			key += fmt.Sprint(" ", g.Domains[k][i])
		}
		at, ok := seen[key]
		if !ok {
			at = out.Len()
			seen[key] = at
			out.Nodes, out.Static, out.Host = append(out.Nodes, 0), append(out.Static, g.Static[i]), append(out.Host, g.Host[i])
			for k := range g.Domains {
				out.Domains[k] = append(out.Domains[k], g.Domains[k][i])
			}
		}
		out.Nodes[at] += g.Nodes[i]
		out.of = append(out.of, at)
	}
	return out
}
