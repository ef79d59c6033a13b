// Package podtopologyspread keeps the pods of one kind spread over topology
// domains (KEP-895): a pod's own constraints, or else default ones for pods that a
// Service, ReplicaSet, StatefulSet or ReplicationController selects. Hard
// constraints (DoNotSchedule) reject nodes, soft ones (ScheduleAnyway) score them.
//
// Matching pods are counted by domain in facts that the state keeps, so a
// decision reads one count per domain and constraint. A fact is one constraint
// over one topology key and the nodes that count for it:
//
//	constraint    key        counts pods            on nodes
//	hard          any        by label value         with all keys of hard constraints, policies applied
//	soft          hostname   of the node itself     all, whatever the policies say
//	soft          other      by label value         with all keys of soft constraints, policies applied
//	soft default  other      by label value or ""   all, policies applied
package podtopologyspread

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	nodeaffinityrule "github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "PodTopologySpread"

// Args are the plugin's arguments (PodTopologySpreadArgs).
type Args struct {
	// List is defaultingType List: Constraints hold for pods without any of their
	// own. Otherwise the system defaults do.
	List        bool
	Constraints []v1.TopologySpreadConstraint // without selectors
}

// Plugin implements framework.Plugin.
type Plugin struct {
	args    Args
	packing bool // soft constraints count only where a pod has them itself
}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Packer       = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// New returns the plugin with arguments.
func New(args Args) Plugin { return Plugin{args: args} }

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "pods that its spread constraints select are added or deleted, or nodes in other domains are added"
}

// Packing implements framework.Packer. Soft constraints that a pod has itself count as much
// as in the default profile, so that a cluster that shrinks keeps such pods as even as they
// ask for. By default constraints all pods would be spread over all nodes.
func (p Plugin) Packing() framework.Weighted {
	p.packing = true
	return framework.Weighted{Plugin: p, Weight: 2}
}

// Sign implements framework.Plugin. The local part has what TopologyKeys and
// StaticKey read: the keys. Affinity and tolerations decide which nodes count,
// also when no policy asks for it: signing them then only makes classes finer.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	c := p.constraintsOf(pod, state)
	local.Bool(c.requireAll)
	for _, list := range [][]constraint{c.hard, c.soft} {
		local.Int(int64(len(list)))
		for i := range list {
			local.Str(list[i].key)
		}
	}
	if c.none() {
		return
	}
	group.Str(c.problem)
	group.Str(pod.Object.Namespace)
	nodeaffinityrule.SignRequired(pod, group)
	tainttoleration.Plugin{}.Sign(pod, state, group, nil)
	sign := func(c *constraint) {
		group.Int(c.maxSkew)
		group.Str(c.text)
		group.Bool(c.honorAffinity)
		group.Bool(c.honorTaints)
	}
	for i := range c.soft {
		sign(&c.soft[i])
	}
	for i := range c.hard {
		sign(&c.hard[i])
		group.Int(int64(c.hard[i].minDomains))
		group.Bool(matchesItself(pod, &c.hard[i]))
	}
}

// matchesItself reports whether the pod counts for its own constraint once it is
// placed.
func matchesItself(pod *cluster.Pod, c *constraint) bool {
	return c.selector.Matches(labels.Set(pod.Object.Labels))
}

// Reclassifies implements framework.Reclassifier: which pods default constraints hold for
// depends on what selects them, so a new workload may give constraints to pods
// that had none. Soft ones let no pod in or out: for them alone a pod isn't signed
// again, and is scored by what selected it when it was signed last.
func (p Plugin) Reclassifies(c *cluster.Change, _ *cluster.State) func(*cluster.Pod) bool {
	if c.Op != cluster.WorkloadSet || !p.hardDefaults() {
		return nil
	}
	return func(pod *cluster.Pod) bool { return len(pod.Object.Spec.TopologySpreadConstraints) == 0 }
}

// hardDefaults reports whether some default constraint rejects nodes.
func (p Plugin) hardDefaults() bool {
	return p.args.List && slices.ContainsFunc(p.args.Constraints, func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule })
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	c := p.constraintsOf(pod, state)
	if c.problem != "" {
		return framework.Rules{}, &framework.Reason{Plugin: Name, Messages: []string{"parsing pod: " + c.problem}, Final: true, OfPod: true}
	}
	if c.none() {
		return framework.Rules{}, nil
	}
	r := &rule{requireAll: c.requireAll, softKeys: keysOf(c.soft)}
	for i := range c.soft {
		r.addSoft(pod, state, i, &c.soft[i])
	}
	required := keysOf(c.hard)
	for i := range c.hard {
		r.addHard(pod, state, &c.hard[i], required)
	}
	return framework.Rules{Group: r}, nil
}

// addSoft adds the i-th soft constraint.
func (r *rule) addSoft(pod *cluster.Pod, state *cluster.State, i int, c *constraint) {
	x := counted{maxSkew: c.maxSkew, host: -1}
	if c.key == v1.LabelHostname {
		// kube-scheduler's Score counts the pods of the node itself, whatever the
		// policies say and whether or not the node has the label.
		x.fact = state.Fact(spec(pod, c, cluster.PerNode, nil))
		x.host = r.addHost(x.fact)
		r.soft = append(r.soft, x)
		return
	}
	key, required := c.key, r.softKeys
	if !r.requireAll { // nodes without the key are a domain, and aren't scored for it
		key, required = cluster.OrEmpty(key), nil
		x.missing = missing << i
	}
	x.domain = r.topologies.Index(key)
	x.fact = state.Fact(spec(pod, c, key, required))
	r.soft = append(r.soft, x)
}

// addHard adds a hard constraint; required are the keys of all hard ones.
func (r *rule) addHard(pod *cluster.Pod, state *cluster.State, c *constraint, required []string) {
	x := counted{maxSkew: c.maxSkew, minDomains: c.minDomains, host: -1}
	if matchesItself(pod, c) {
		x.self = 1
	}
	fact := spec(pod, c, c.key, required)
	fact.Lowest = true // what others are compared with
	fact.Key += "|lowest"
	x.fact = state.Fact(fact)
	if c.key == v1.LabelHostname {
		x.host = r.addHost(x.fact)
	} else {
		x.domain = r.topologies.Index(c.key)
	}
	r.hard = append(r.hard, x)
}

// spec is what the fact of a constraint counts: matching pods by domain. Pods
// that are being deleted don't count (kubernetes issue 87621).
func spec(pod *cluster.Pod, c *constraint, topology string, required []string) cluster.FactSpec {
	match := cluster.PodMatch{Namespaces: []string{pod.Object.Namespace}, Selector: c.selector}
	if c.selector.Empty() {
		match.Selector = labels.Nothing()
	}
	out := cluster.FactSpec{Topology: topology, Match: []cluster.PodMatch{match}, SkipTerminating: true}
	if topology != cluster.PerNode {
		out.NodeFilter, out.FilterKey = inclusion(pod, c, required)
	}
	out.Key = fmt.Sprintf("spread|%s|%s|%s|%s", topology, pod.Object.Namespace, cluster.SelectorText(match.Selector), out.FilterKey)
	return out
}
