// Package podtopologyspread keeps pods like the one to place spread over
// topology domains: a pod's own constraints, or else defaults for pods that a
// Service, ReplicaSet, StatefulSet or ReplicationController selects. Hard
// constraints reject nodes, soft ones score them.
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
	// List is defaultingType List: Constraints stand in for pods without any of
	// their own. Otherwise the system defaults do.
	List        bool
	Constraints []v1.TopologySpreadConstraint // without selectors
}

// Plugin implements framework.Plugin.
type Plugin struct{ args Args }

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// New returns the plugin with arguments.
func New(args Args) Plugin { return Plugin{args} }

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "pods that it is spread among come or go, or nodes in other domains come"
}

// Sign implements framework.Plugin.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	c := p.of(pod, state)
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
		group.Int(int64(c.maxSkew))
		group.Str(cluster.SelectorText(c.selector))
		group.Bool(c.honorAffinity)
		group.Bool(c.honorTaints)
	}
	for i := range c.soft {
		sign(&c.soft[i])
	}
	for i := range c.hard {
		sign(&c.hard[i])
		group.Int(int64(c.hard[i].minDomains))
		group.Bool(c.hard[i].selector.Matches(labels.Set(pod.Object.Labels)))
	}
}

// Reclassifies implements framework.Rereader: which pods default constraints are
// for depends on what selects them. For soft ones that makes no difference to a
// pod that waits.
func (p Plugin) Reclassifies(c *cluster.Change, _ *cluster.State) func(*cluster.Pod) bool {
	hard := func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule }
	if c.Op != cluster.WorkloadSet || !p.args.List || !slices.ContainsFunc(p.args.Constraints, hard) {
		return nil
	}
	return func(pod *cluster.Pod) bool { return len(pod.Object.Spec.TopologySpreadConstraints) == 0 }
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	c := p.of(pod, state)
	if c.problem != "" {
		return framework.Rules{}, &framework.Reason{Plugin: Name, Messages: []string{"parsing pod: " + c.problem}, Final: true, OfPod: true}
	}
	if c.none() {
		return framework.Rules{}, nil
	}
	r := &rule{requireAll: c.requireAll}
	for i := range c.soft {
		r.softKeys = append(r.softKeys, c.soft[i].key)
	}
	required := r.softKeys
	if !c.requireAll {
		required = nil
	}
	for i := range c.soft {
		x := &c.soft[i]
		part := part{maxSkew: x.maxSkew}
		if x.key == v1.LabelHostname {
			// Upstream scores by a node's own pods, whatever the policies say.
			part.fact = state.Fact(count(pod, x, cluster.PerNode, nil, false))
			part.host = r.addHost(part.fact)
		} else {
			key := x.key
			if !c.requireAll { // nodes without the key are a domain, and aren't scored for it
				key = cluster.OrEmpty(key)
				part.missing = missing << i
			}
			part.host, part.domain = -1, r.topologies.Index(key)
			part.fact = state.Fact(count(pod, x, key, required, false))
		}
		r.soft = append(r.soft, part)
	}
	required = keysOf(c.hard)
	for i := range c.hard {
		x := &c.hard[i]
		part := part{maxSkew: x.maxSkew, minDomains: x.minDomains, host: -1}
		if x.selector.Matches(labels.Set(pod.Object.Labels)) {
			part.self = 1
		}
		part.fact = state.Fact(count(pod, x, x.key, required, true))
		if x.key == v1.LabelHostname {
			part.host = r.addHost(part.fact)
			r.hardHost = true
		} else {
			part.domain = r.topologies.Index(x.key)
		}
		r.hard = append(r.hard, part)
	}
	return framework.Rules{Group: r}, nil
}

// count is the fact of a constraint: matching pods by domain. That of a hard
// constraint knows the lowest count.
func count(pod *cluster.Pod, c *constraint, topology string, required []string, lowest bool) cluster.FactSpec {
	match := cluster.PodMatch{Namespaces: []string{pod.Object.Namespace}, Selector: c.selector}
	if c.selector.Empty() {
		match.Selector = labels.Nothing() // upstream: an empty selector counts nobody
	}
	spec := cluster.FactSpec{Topology: topology, Match: []cluster.PodMatch{match}, SkipTerminating: true, Lowest: lowest}
	filter := ""
	if topology != cluster.PerNode {
		spec.NodeFilter, filter = inclusion(pod, c, required)
	}
	kind := "spread"
	if lowest {
		kind = "spread, lowest"
	}
	spec.Key = fmt.Sprintf("%s|%s|%s|%s|%s", kind, topology, pod.Object.Namespace, cluster.SelectorText(match.Selector), filter)
	return spec
}

// part is one constraint of a rule.
type part struct {
	fact       *cluster.Fact
	maxSkew    int32
	minDomains int32 // of hard ones
	self       int32 // of hard ones: 1 when the pod counts itself
	host       int   // place among the rule's host facts, -1 for other keys
	domain     int   // place among the rule's topology keys, for other keys
	missing    int32 // bit of StaticKey: the node lacks the key and is in a domain all the same
}

type rule struct {
	softKeys   []string
	topologies framework.TopologyKeys // without the hostname
	soft, hard []part
	hosts      []*cluster.Fact
	hostKeys   framework.HostKeys
	requireAll bool
	hardHost   bool     // some hard constraint is over the hostname
	seen       []uint64 // by domain plus one: the last pass that met it
	serial     uint64
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.Hinter    = (*rule)(nil)
)

func (r *rule) addHost(f *cluster.Fact) int {
	r.hosts = append(r.hosts, f)
	return len(r.hosts) - 1
}

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	for _, list := range [][]part{r.soft, r.hard} {
		for i := range list {
			state.DropFact(list[i].fact)
		}
	}
}

func (r *rule) TopologyKeys() []string { return r.topologies }

// What StaticKey says: the node lacks the hostname label; the key of a soft
// constraint, so that all of them ignore it (when all keys are required); or one
// key, of which the constraint alone ignores it (when they aren't).
const (
	noHostname = 1 << iota
	ignored
	missing // shifted by the place of the soft constraint
)

func (r *rule) StaticKey(n *cluster.NodeInfo) int32 {
	var key int32
	if r.hardHost {
		if _, ok := n.Object.Labels[v1.LabelHostname]; !ok {
			key |= noHostname
		}
	}
	for i, k := range r.softKeys {
		if _, ok := n.Object.Labels[k]; ok {
			continue
		}
		if !r.requireAll && k != v1.LabelHostname {
			key |= missing << i
		}
		if k == v1.LabelHostname {
			key |= noHostname
		}
		if r.requireAll {
			key |= ignored
		}
	}
	return key
}

func (r *rule) HostFacts() []*cluster.Fact { return r.hosts }

func (r *rule) HostKey(n cluster.NodeIndex) int32 { return r.hostKeys.Key(r.hosts, n) }

// count is the number of matching pods that a constraint sees in a group, ok is
// false when the group's nodes lack its key.
func (r *rule) count(p *part, g *framework.Groups, i int) (n int32, ok bool) {
	if p.host >= 0 {
		return r.hostKeys.Count(g.Host[i], p.host, len(r.hosts)), g.Static[i]&noHostname == 0
	}
	d := g.Domains[p.domain][i]
	return p.fact.Count(d), d != cluster.NoDomain && g.Static[i]&p.missing == 0
}

// Hint implements framework.Hinter: counts fall and rise with matching pods,
// and nodes make and unmake the domains that are compared.
func (r *rule) Hint(c *cluster.Change) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved:
		for i := range r.hard {
			if r.hard[i].fact.Counts(c.Pod) {
				return true
			}
		}
	case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved:
		return true
	}
	return false
}
