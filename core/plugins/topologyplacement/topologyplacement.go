// Package topologyplacement keeps the members of a pod group in one domain of the topology that the
// group requires (KEP-5732, spec.schedulingConstraints.topology of a PodGroup): a member goes where
// the others are. kube-scheduler's plugin of this name chooses the domain as well; in Berth the
// decision about the group does (core/scheduler), and everything that asks where one member could
// be, now or in a what-if, asks this rule.
package topologyplacement

import (
	"fmt"
	"maps"

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
	label := cluster.RequiredTopology(state.PodGroup(*pod.Group))
	if label == "" {
		return
	}
	group.Str(label)
	for _, value := range state.MemberDomains(*pod.Group, label) {
		group.Str(value)
	}
}

// For implements framework.Plugin. Members that are in several domains leave no domain for others.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.Group == nil {
		return framework.Rules{}, nil
	}
	label := cluster.RequiredTopology(state.PodGroup(*pod.Group))
	if label == "" {
		return framework.Rules{}, nil
	}
	values := state.MemberDomains(*pod.Group, label)
	if len(values) > 1 {
		return framework.Rules{}, &framework.Reason{Plugin: Name, Final: true, OfPod: true, Messages: []string{
			fmt.Sprintf("cannot determine domain for already scheduled pods: more than 1 domain found for pod group: %s, %s", values[0], values[1])}}
	}
	r := rule{label: label, topology: state.HoldTopology(label)}
	if len(values) == 1 {
		return framework.Rules{Group: &inDomain{r, values[0]}}, nil
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

// rule is what both rules have for the members of a group with a required topology.
type rule struct {
	label    string
	topology *cluster.Topology // held
}

// TopologyKeys implements framework.GroupRule.
func (r *rule) TopologyKeys() []string { return []string{r.label} }

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
func (r *rule) Release(s *cluster.State) { s.ReleaseTopology(r.topology) }

// inAny implements framework.GroupRule while no member is on a node: each node will do that is in some
// domain.
type inAny struct{ rule }

// Filter implements framework.GroupRule.
func (*inAny) Filter(g *framework.Groups, out []framework.Code) {
	for i, d := range g.Domains[0] {
		out[i] = framework.OK
		if d == cluster.NoDomain {
			out[i] = framework.Final
		}
	}
}

// Explain implements framework.GroupRule.
func (r *inAny) Explain(*framework.Groups, int) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{fmt.Sprintf("node(s) didn't have the label %s that the pod group requires", r.label)}, Final: true}
}

// inDomain implements framework.GroupRule once members are on nodes.
type inDomain struct {
	rule
	value string // of the label of their nodes
}

// Filter implements framework.GroupRule.
func (r *inDomain) Filter(g *framework.Groups, out []framework.Code) {
	wanted := r.topology.Named(r.value)
	for i, d := range g.Domains[0] {
		out[i] = framework.OK
		if d != wanted || d == cluster.NoDomain {
			out[i] = framework.Final
		}
	}
}

// Explain implements framework.GroupRule.
func (r *inDomain) Explain(*framework.Groups, int) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{fmt.Sprintf("node(s) weren't in the pod group's domain %s=%s", r.label, r.value)}, Final: true}
}

// Count implements framework.Counter: a node of the domain takes any number of members.
func (r *inDomain) Count(n *cluster.Node) int {
	if value, ok := n.Object.Labels[r.label]; ok && value == r.value {
		return framework.Unlimited
	}
	return 0
}

var (
	_ framework.GroupRule = (*inAny)(nil)
	_ framework.GroupRule = (*inDomain)(nil)
	_ framework.Counter   = (*inDomain)(nil)
	_ framework.Hinter    = (*inDomain)(nil)
	_ framework.PodReader = (*inDomain)(nil)
	_ framework.Releaser  = (*inDomain)(nil)
)
