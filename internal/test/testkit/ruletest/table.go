package ruletest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file runs tables of filters and scores. What must hold: each case gives the same
// answers in a cluster where other pods of the table have rules, too, and when all rules
// are released, the state counts nothing any more.

// Table is a test of one plugin. Its plugin and nodes are those of every case that has none
// of its own.
type Table struct {
	Version compat.Version // 0 for the newest
	Plugin  Make
	Nodes   Nodes
	Objects Objects // besides those of a case
	// Scores says that the local rule scores. The score of any other local rule must be 0
	// with every code, since the engine adds it all the same.
	Scores bool
	Cases  []Case
}

// Case is a pod, a cluster, and the plugin's answer for every node.
type Case struct {
	Name    string
	Version compat.Version // where it isn't the table's
	Plugin  Make
	Pod     *testkit.PodBuilder
	Nodes   Nodes
	Objects Objects
	Pods    Pods
	// Elsewhere are nodes that other plugins reject: they don't take part in scoring.
	Elsewhere []string
	Want      Want
}

// Want is the answer by node. All stands for the nodes that aren't named.
//
// A filter's answer is OK or the reason in the form of
//
//	Reject: Insufficient cpu (cpu: needs 2000, has 500)
//
// with Final in place of Reject where taking pods away from the node wouldn't
// help. A score is a number, with the score before normalising where the plugin
// shows one: "66 raw 9".
type Want map[string]string

// What a Want has besides reasons and scores.
const (
	All = "*"
	OK  = "ok"
	// Skip is the answer of a plugin that has no rule for the pod.
	Skip = "skip"
	// OnlyScores is the answer to Filter where the pod's rules can reject
	// nothing, so that the engine needn't ask them.
	OnlyScores = "only scores"
)

// Everywhere is the answer of a plugin that rejects the pod on all nodes before
// it looks at any.
func Everywhere(message string) string { return "everywhere: " + message }

// Filter checks which nodes the plugin accepts and why it rejects the others.
func (x Table) Filter(t *testing.T) {
	t.Helper()
	x.run(t, func(a *answers, _ *Case) map[string]string {
		out := map[string]string{}
		a.scores = x.Scores
		a.filterTogether()
		a.c.Nodes(func(n *cluster.Node) {
			switch why := a.filter(n); {
			case why != "":
				out[n.Name] = why
			case a.rules.Local == nil && neverFilters(a.rules.Group):
				out[n.Name] = OnlyScores
			default:
				out[n.Name] = OK
			}
		})
		return out
	})
}

// Score checks the scores of the nodes that neither the plugin nor another rejects.
func (x Table) Score(t *testing.T) {
	t.Helper()
	x.run(t, func(a *answers, c *Case) map[string]string {
		out := map[string]string{}
		a.scores = true
		var nodes []*cluster.Node
		a.c.Nodes(func(n *cluster.Node) {
			nodes = append(nodes, n)
			if slices.Contains(c.Elsewhere, n.Name) {
				out[n.Name] = "elsewhere"
			} else if why := a.filter(n); why != "" {
				out[n.Name] = why
			}
		})
		scores, raws := a.score(nodes, func(n *cluster.Node) bool { return out[n.Name] == "" })
		for i, n := range nodes {
			if out[n.Name] != "" {
				continue
			}
			out[n.Name] = fmt.Sprint(scores[i])
			if raws != nil {
				out[n.Name] += fmt.Sprint(" raw ", raws[i])
			}
		}
		maps.DeleteFunc(out, func(_, answer string) bool { return answer == "elsewhere" })
		return out
	})
}

// run checks every case twice: in a cluster where the plugin has rules for this pod only,
// and in one where it has rules for the pods of all cases. Rules share the facts of the
// state, and must not disturb each other.
func (x Table) run(t *testing.T, ask func(*answers, *Case) map[string]string) {
	t.Helper()
	for i := range x.Cases {
		c := x.with(x.Cases[i])
		t.Run(c.Name, func(t *testing.T) {
			t.Helper()
			world, plugin := c.build(t)
			c.compare(t, c.answer(t, world, plugin, ask))
			var others []framework.GroupRule
			world, plugin = c.build(t)
			for _, o := range x.Cases {
				o = x.with(o)
				rules, _ := o.Plugin(world.Schema).For(world.Parse(o.Pod), world.State)
				others = append(others, rules.Group)
			}
			t.Log("with rules for the other pods of the table:")
			a, got := c.prepare(world, plugin)
			if got == nil {
				got = ask(a, &c)
			}
			c.compare(t, got)
			for _, g := range append(others, a.rules.Group) {
				release(g, world.State)
			}
			c.nothingLeft(t, world)
		})
	}
}

// answer returns the plugin's answer by node, in the form of Want.
func (c *Case) answer(t *testing.T, world *Cluster, plugin framework.Plugin, ask func(*answers, *Case) map[string]string) map[string]string {
	t.Helper()
	a, got := c.prepare(world, plugin)
	if got == nil {
		got = ask(a, c)
	}
	for _, p := range a.problems {
		t.Error(p)
	}
	release(a.rules.Group, world.State)
	c.nothingLeft(t, world)
	return got
}

// with returns a case with what the table says for all cases.
func (x Table) with(c Case) Case {
	if c.Version == 0 {
		c.Version = x.Version
	}
	if c.Plugin == nil {
		c.Plugin = x.Plugin
	}
	if c.Nodes == nil {
		c.Nodes = x.Nodes
	}
	c.Objects = slices.Concat(x.Objects, c.Objects)
	return c
}

// build returns the cluster of a case and its plugin.
func (c *Case) build(t testing.TB) (*Cluster, framework.Plugin) {
	world := NewClusterFor(t, c.Version, c.Nodes, c.Objects, c.Pods)
	return world, c.Plugin(world.Schema)
}

// prepare makes the rules for the pod. The second result is the answer for all nodes, where
// it is decided without looking at nodes, otherwise nil.
func (c *Case) prepare(world *Cluster, plugin framework.Plugin) (*answers, map[string]string) {
	a := &answers{c: world, plugin: plugin}
	rules, reason := plugin.For(world.Parse(c.Pod), world.State)
	a.rules = rules
	same := func(answer string) map[string]string {
		out := map[string]string{}
		world.Nodes(func(n *cluster.Node) { out[n.Name] = answer })
		return out
	}
	switch {
	case reason != nil:
		if rules.Local != nil || rules.Group != nil {
			a.problem("the plugin rejects the pod everywhere, and has rules for it")
		}
		if !reason.Final || !reason.OfPod {
			a.problem("rejected everywhere with Final %v, OfPod %v: pods that leave may help?", reason.Final, reason.OfPod)
		}
		a.text(reason)
		return a, same(Everywhere(reason.Messages[0]))
	case rules.Local == nil && rules.Group == nil:
		return a, same(Skip)
	}
	return a, nil
}

// release releases the facts of a rule.
func release(g framework.GroupRule, state *cluster.State) {
	if r, ok := g.(framework.Releaser); ok {
		r.Release(state)
	}
}

// nothingLeft checks that the state counts nothing for rules that were released.
func (c *Case) nothingLeft(t *testing.T, world *Cluster) {
	t.Helper()
	for _, f := range world.Facts() {
		t.Errorf("all rules were released, and the state still counts %s", f.Key())
	}
}

// compare reports each node with another answer than the wanted one.
func (c *Case) compare(t *testing.T, got map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		want, ok := c.Want[name]
		if !ok {
			want = c.Want[All]
		}
		if got[name] != want {
			t.Errorf("%s:\n got  %s\n want %s", name, got[name], want)
		}
	}
	for name := range c.Want {
		if _, ok := got[name]; !ok && name != All {
			t.Errorf("no answer for node %s", name)
		}
	}
}
