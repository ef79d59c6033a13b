// Package topologyplacement keeps the members of a pod group in one domain of each topology that the
// group requires (KEP-5732, spec.schedulingConstraints.topology of a PodGroup, and Berth's annotation for
// further levels): a member goes where the others are. kube-scheduler's plugin of this name chooses the domain as well; in Berth the
// decision about the group does (core/scheduler), and everything that asks where one member could
// be, now or in a what-if, asks this rule.
package topologyplacement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the name of kube-scheduler's plugin.
const Name = "TopologyPlacementGenerator"

// Plugin implements framework.Plugin and framework.Reclassifier.
type Plugin struct{}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Reclassifier = Plugin{}
	_ framework.Waker        = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a node of the pod group's topology domain takes the pod, or no member is on a node any more"
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, _, group *framework.Signature) {
	if pod.Group == nil {
		return
	}
	for _, label := range cluster.RequiredTopologies(state.PodGroup(*pod.Group)) {
		values := state.MemberDomains(*pod.Group, label)
		group.Str(label)
		group.Int(int64(len(values)))
		for _, value := range values {
			group.Str(value)
		}
	}
}

// For implements framework.Plugin. Members that are in several domains leave no domain for others.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.Group == nil {
		return framework.Rules{}, nil
	}
	labels := cluster.RequiredTopologies(state.PodGroup(*pod.Group))
	if len(labels) == 0 {
		return framework.Rules{}, nil
	}
	values := make([]string, len(labels))
	fixed := false
	for i, label := range labels {
		switch in := state.MemberDomains(*pod.Group, label); {
		case len(in) > 1:
			return framework.Rules{}, &framework.Reason{Plugin: Name, Final: true, OfPod: true, Messages: []string{
				fmt.Sprintf("cannot determine domain for already scheduled pods: more than 1 domain found for pod group: %s, %s", in[0], in[1])}}
		case len(in) == 1:
			values[i], fixed = in[0], true
		}
	}
	r := rule{labels: labels}
	for _, label := range labels {
		r.topologies = append(r.topologies, state.HoldTopology(label))
	}
	if fixed {
		return framework.Rules{Group: &inDomain{r, values}}, nil
	}
	return framework.Rules{Group: &inAny{r}}, nil
}

// Reclassifies implements framework.Reclassifier: the domain is where members are.
func (Plugin) Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved:
		if c.Pod.Group == nil || cluster.RequiredTopology(state.PodGroup(*c.Pod.Group)) == "" {
			return nil
		}
		return memberOf(*c.Pod.Group)
	case cluster.ObjectSet:
		if key, ok := c.Object.PodGroup(); ok {
			return memberOf(key)
		}
	case cluster.NodeUpdated:
		if state.AnyMemberOn(c.Node) && !maps.Equal(c.Info.Object.Labels, c.Old.Object.Labels) {
			return func(pod *cluster.Pod) bool { return pod.Group != nil }
		}
	}
	return nil
}

// memberOf reports whether a pod is a member of a group.
func memberOf(key cluster.PodGroupKey) func(*cluster.Pod) bool {
	return func(pod *cluster.Pod) bool { return pod.Group != nil && *pod.Group == key }
}

// rule is what both rules have for the members of a group with required topologies.
type rule struct {
	labels     []string            // outermost first
	topologies []*cluster.Topology // of the labels, held
}

// TopologyKeys implements framework.GroupRule.
func (r *rule) TopologyKeys() []string { return r.labels }

// StaticKey implements framework.GroupRule.
func (*rule) StaticKey(*cluster.NodeBasics) int32 { return 0 }

// HostFacts implements framework.GroupRule.
func (*rule) HostFacts() []*cluster.Fact { return nil }

// HostKey implements framework.GroupRule.
func (*rule) HostKey(cluster.NodeIndex) int32 { return 0 }

// Score implements framework.GroupRule.
func (*rule) Score(*framework.Groups, int64, []int64) {}

// Hint implements framework.Hinter: which domain a class needs is signed, and a node changes its
// domain only when it is touched.
func (*rule) Hint(*cluster.Change) bool { return false }

// ReadsPod implements framework.PodReader.
func (*rule) ReadsPod(*cluster.Pod) bool { return false }

// Release implements framework.Releaser.
func (r *rule) Release(s *cluster.State) {
	for _, t := range r.topologies {
		s.ReleaseTopology(t)
	}
}

// inAny implements framework.GroupRule while no member is on a node: each node will do that is in some
// domain of each topology.
type inAny struct{ rule }

// Filter implements framework.GroupRule.
func (*inAny) Filter(g *framework.Groups, out []framework.Code) {
	for i := range out {
		out[i] = framework.OK
		for k := range g.Domains {
			if g.Domains[k][i] == cluster.NoDomain {
				out[i] = framework.Final
			}
		}
	}
}

// Explain implements framework.GroupRule.
func (r *inAny) Explain(g *framework.Groups, i int) *framework.Reason {
	missing := slices.IndexFunc(g.Domains, func(of []cluster.Domain) bool { return of[i] == cluster.NoDomain })
	return &framework.Reason{Plugin: Name, Messages: []string{fmt.Sprintf("node(s) didn't have the label %s that the pod group requires", r.labels[max(missing, 0)])}, Final: true}
}

// inDomain implements framework.GroupRule once members are on nodes. A level on which none of these nodes
// has the label rejects all others.
type inDomain struct {
	rule
	values []string // of the labels of their nodes
}

// wrong returns the first level on which a group of nodes isn't in the domain, -1 for none.
func (r *inDomain) wrong(g *framework.Groups, i int) int {
	for k, t := range r.topologies {
		if d := g.Domains[k][i]; d == cluster.NoDomain || d != t.Named(r.values[k]) {
			return k
		}
	}
	return -1
}

// Filter implements framework.GroupRule.
func (r *inDomain) Filter(g *framework.Groups, out []framework.Code) {
	for i := range out {
		out[i] = framework.OK
		if r.wrong(g, i) >= 0 {
			out[i] = framework.Final
		}
	}
}

// Explain implements framework.GroupRule.
func (r *inDomain) Explain(g *framework.Groups, i int) *framework.Reason {
	k := max(r.wrong(g, i), 0)
	return &framework.Reason{Plugin: Name, Messages: []string{fmt.Sprintf("node(s) weren't in the pod group's domain %s=%s", r.labels[k], r.values[k])}, Final: true}
}

// Count implements framework.Counter: a node of the domain takes any number of members.
func (r *inDomain) Count(n *cluster.Node) int {
	for k, label := range r.labels {
		if value, ok := n.Object.Labels[label]; !ok || value != r.values[k] {
			return 0
		}
	}
	return framework.Unlimited
}

var (
	_ framework.GroupRule = (*inAny)(nil)
	_ framework.GroupRule = (*inDomain)(nil)
	_ framework.Counter   = (*inDomain)(nil)
	_ framework.Hinter    = (*inDomain)(nil)
	_ framework.PodReader = (*inDomain)(nil)
	_ framework.Releaser  = (*inDomain)(nil)
)
