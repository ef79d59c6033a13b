package engine_test

import (
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// Plugins whose answers a test writes down, for tests of what the engine does
// with answers: what it evaluates, adds up, keeps and forgets.

// scripted is a plugin that gives every class the same rules.
type scripted struct {
	name  string
	rules framework.Rules
	sign  func(pod *cluster.Pod, local, group *framework.Signature) // nil signs nothing
	why   *framework.Reason                                         // rejects every class everywhere
	made  int                                                       // how often it was asked for rules
}

func (p *scripted) Name() string { return p.name }

func (p *scripted) Sign(pod *cluster.Pod, _ *cluster.State, local, group *framework.Signature) {
	if p.sign != nil {
		p.sign(pod, local, group)
	}
}

func (p *scripted) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	p.made++
	return p.rules, p.why
}

// signsLabel signs a label of the pod as local or as group.
func signsLabel(label string, asLocal bool) func(pod *cluster.Pod, local, group *framework.Signature) {
	return func(pod *cluster.Pod, local, group *framework.Signature) {
		if asLocal {
			local.Str(pod.Object.Labels[label])
		} else {
			group.Str(pod.Object.Labels[label])
		}
	}
}

// filtering is a scripted plugin that filters: it says what wakes a pod.
type filtering struct{ scripted }

func (*filtering) WakesWhen() string { return "the script says so" }

// localScript is a local rule by node name: nodes in scores get their score,
// others are rejected; nil scores every node 0.
type localScript struct {
	reads  framework.Aspects
	scores map[string]int64
	limit  int      // if not 0, how many pods a node may have to take another
	asked  []string // names of the nodes evaluated, in order
}

func (r *localScript) Reads() framework.Aspects { return r.reads }

func (r *localScript) EvalNode(n *cluster.Node) (framework.Code, int64) {
	r.asked = append(r.asked, n.Name)
	if r.limit > 0 && len(n.Pods) >= r.limit {
		return framework.Reject, 0
	}
	if r.scores == nil {
		return framework.OK, 0
	}
	score, ok := r.scores[n.Name]
	if !ok {
		return framework.Reject, 0
	}
	return framework.OK, score
}

func (r *localScript) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Messages: []string{"not in the script"}}
}

// evaluated returns the nodes evaluated since it was called last: "n1 n2 n2", sorted.
func (r *localScript) evaluated() string {
	slices.Sort(r.asked)
	out := strings.Join(r.asked, " ")
	r.asked = nil
	return out
}

// groupScript is a group rule over the domains of one topology key: it scores
// and rejects domains by their label value.
type groupScript struct {
	framework.StaticScore // the parts of the contract that the script doesn't need
	state                 *cluster.State
	key                   string
	scores                map[string]int64 // by label value, unweighted
	rejects               map[string]bool  // by label value
	released              int
}

func (r *groupScript) TopologyKeys() []string { return []string{r.key} }

func (r *groupScript) StaticKey(*cluster.NodeBasics) int32 { return 0 }

func (r *groupScript) NeverFilters() bool { return len(r.rejects) == 0 }

func (r *groupScript) Release(*cluster.State) { r.released++ }

// value returns the label value of a domain, by asking one of its nodes.
func (r *groupScript) value(d cluster.Domain) (value string) {
	r.state.Topology(r.key).Members(d, func(n cluster.NodeIndex) { value = r.state.Node(n).Object.Labels[r.key] })
	return value
}

func (r *groupScript) Filter(g *framework.Groups, out []framework.Code) {
	for i, d := range g.Domains[0] {
		out[i] = framework.OK
		if g.Nodes[i] != 0 && r.rejects[r.value(d)] {
			out[i] = framework.Reject
		}
	}
}

func (r *groupScript) Score(g *framework.Groups, weight int64, out []int64) {
	for i, d := range g.Domains[0] {
		if g.Nodes[i] != 0 {
			out[i] += weight * r.scores[r.value(d)]
		}
	}
}

func (r *groupScript) Raw(g *framework.Groups, out []int64) {
	for i, d := range g.Domains[0] {
		out[i] = -r.scores[r.value(d)] // whatever tells it from the score
	}
}

func (r *groupScript) Explain(*framework.Groups, int) *framework.Reason {
	return &framework.Reason{Messages: []string{"domain not in the script"}}
}

// nodes returns a state of these nodes.
func nodes(builders ...*testkit.NodeBuilder) *cluster.State {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for _, b := range builders {
		s.SetNode(schema.ParseNode(b.Obj(), ""))
	}
	return s
}

// named returns a state of nodes without anything else to them.
func named(names ...string) *cluster.State {
	var builders []*testkit.NodeBuilder
	for _, name := range names {
		builders = append(builders, testkit.Node(name))
	}
	return nodes(builders...)
}

func weighted(weight int64, p framework.Plugin) framework.Weighted {
	return framework.Weighted{Plugin: p, Weight: weight}
}

// over returns an engine over a state with some plugins of weight 1.
func over(s *cluster.State, plugins ...framework.Plugin) *engine.Engine {
	profile := &framework.Profile{}
	for _, p := range plugins {
		profile.Plugins = append(profile.Plugins, weighted(1, p))
	}
	return testkit.Must(engine.New(s, profile, engine.Options{}))
}

// parsed returns a pod as rules see it.
func parsed(s *cluster.State, b *testkit.PodBuilder) *cluster.Pod { return s.Schema.ParsePod(b.Obj()) }

// nodeName returns the name of a node, "none" for NoNode.
func nodeName(s *cluster.State, i cluster.NodeIndex) string {
	if i == cluster.NoNode {
		return "none"
	}
	return s.Node(i).Name
}
