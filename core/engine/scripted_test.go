package engine_test

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/testkit"
)

// Plugins whose answers a test writes down, for tests of what the engine does
// with answers: what it evaluates, adds up, keeps and forgets.

// scripted is a plugin that gives every class the same rules.
type scripted struct {
	name  string
	rules framework.Rules
	sign  func(pod *cluster.Pod, local, group *framework.Signature) // nil signs nothing
	why   *framework.Reason                                         // rejects every class everywhere
}

func (p *scripted) Name() string { return p.name }

func (p *scripted) Sign(pod *cluster.Pod, _ *cluster.State, local, group *framework.Signature) {
	if p.sign != nil {
		p.sign(pod, local, group)
	}
}

func (p *scripted) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return p.rules, p.why
}

// localScript is a local rule by node name: nodes in scores get their score,
// others are rejected; nil scores every node 0.
type localScript struct {
	reads       framework.Aspects
	scores      map[string]int64
	evaluations []string // names of the nodes evaluated since the test last cleared it
}

func (r *localScript) Reads() framework.Aspects { return r.reads }

func (r *localScript) EvalNode(n *cluster.Node) (framework.Code, int64) {
	r.evaluations = append(r.evaluations, n.Name)
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

// groupScript is a group rule over the domains of one topology key: it scores
// and rejects domains by their label value.
type groupScript struct {
	framework.StaticScore // the parts of the contract that the script doesn't need
	state                 *cluster.State
	key                   string
	scores                map[string]int64 // by label value, unweighted
	rejects               map[string]bool  // by label value
}

func (r *groupScript) TopologyKeys() []string { return []string{r.key} }

func (r *groupScript) StaticKey(*cluster.NodeInfo) int32 { return 0 }

func (r *groupScript) NeverFilters() bool { return len(r.rejects) == 0 }

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

func weighted(weight int64, p framework.Plugin) framework.Weighted {
	return framework.Weighted{Plugin: p, Weight: weight}
}
