package podtopologyspread

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// rule implements framework.GroupRule for the pods of one class. It holds no
// counts: these are in the facts, so that what-ifs see theirs. A constraint over
// the hostname is counted by host fact, since each node is a domain of its own.
type rule struct {
	softKeys   []string               // keys of the soft constraints
	topologies framework.TopologyKeys // keys of all constraints, without the hostname
	soft, hard []counted
	hosts      []*cluster.Fact // facts of constraints over the hostname
	hostKeys   framework.HostKeys
	requireAll bool     // see constraints
	seen       []uint64 // by domain plus one: the pass of size that last met it
	serial     uint64   // passes of size so far
}

// counted is a constraint with the fact that counts its pods.
type counted struct {
	fact       *cluster.Fact
	maxSkew    int64 // up to 2^31-1: sums with it don't fit in an int32
	minDomains int32 // of hard constraints
	self       int32 // of hard constraints: 1 when the pod counts for itself
	host       int   // position in rule.hosts, -1 for keys other than the hostname
	domain     int   // position in rule.topologies, where host is -1
	missing    int32 // bit of StaticKey: the node lacks the key and is in the domain "" all the same
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.Hinter    = (*rule)(nil)
	_ framework.PodReader = (*rule)(nil)
	_ framework.RawScorer = (*rule)(nil)

	_ framework.ManyStaticKeys = (*rule)(nil)
)

// addHost adds a fact that is counted by host and returns its position.
func (r *rule) addHost(f *cluster.Fact) int {
	r.hosts = append(r.hosts, f)
	return len(r.hosts) - 1
}

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	for _, list := range [][]counted{r.soft, r.hard} {
		for i := range list {
			state.DropFact(list[i].fact)
		}
	}
}

// TopologyKeys implements framework.GroupRule.
func (r *rule) TopologyKeys() []string { return r.topologies }

// The bits of StaticKey.
const (
	// noHostname: the node has no hostname label, and some constraint is over it.
	noHostname = 1 << iota
	// ignored: the node lacks the key of some soft constraint, and all keys are
	// required: it counts for no soft constraint and isn't scored.
	ignored
	// missing, shifted by the position of a soft constraint: the node lacks its key
	// and all keys aren't required: that constraint alone doesn't score the node.
	missing
)

// StaticKey implements framework.GroupRule: which keys the node lacks.
func (r *rule) StaticKey(n *cluster.NodeBasics) int32 {
	var key int32
	if len(r.hosts) > 0 && !n.HasLabel(v1.LabelHostname) {
		key = noHostname
	}
	for i, k := range r.softKeys {
		if n.HasLabel(k) {
			continue
		}
		switch {
		case r.requireAll:
			key |= ignored
		case k != v1.LabelHostname:
			key |= missing << i
		}
	}
	return key
}

// StaticKeys implements framework.ManyStaticKeys: 0 for nodes that have all keys that there may be.
func (r *rule) StaticKeys(nodes []*cluster.Node, out []int32) {
	usual := !slices.ContainsFunc(r.softKeys, func(key string) bool { return key != v1.LabelHostname && key != v1.LabelTopologyZone })
	for i, n := range nodes {
		if out[i] = 0; !usual || !n.HasHostnameAndZone() {
			out[i] = r.StaticKey(&n.NodeBasics)
		}
	}
}

// HostFacts implements framework.GroupRule.
func (r *rule) HostFacts() []*cluster.Fact { return r.hosts }

// HostKey implements framework.GroupRule: the counts of all host facts in one.
func (r *rule) HostKey(n cluster.NodeIndex) int32 { return r.hostKeys.Key(r.hosts, n) }

// count returns the number of matching pods in the group's domain; ok is false
// when the nodes of the group lack the constraint's key.
func (r *rule) count(c *counted, g *framework.Groups, i int) (n int32, ok bool) {
	if c.host >= 0 {
		return r.hostKeys.Count(g.Host[i], c.host, len(r.hosts)), g.Static[i]&noHostname == 0
	}
	d := g.Domains[c.domain][i]
	return c.fact.Count(d), d != cluster.NoDomain && g.Static[i]&c.missing == 0
}

// ReadsPod implements framework.PodReader: pods that match a hard constraint.
func (r *rule) ReadsPod(p *cluster.Pod) bool {
	for i := range r.hard {
		if r.hard[i].fact.Counts(p) {
			return true
		}
	}
	return false
}

// Hint implements framework.Hinter. Matching pods that come raise the lowest
// count, those that go lower a count; nodes make and unmake the domains that are
// compared. Pods that match no hard constraint change nothing.
func (r *rule) Hint(c *cluster.Change) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved:
		return r.ReadsPod(c.Pod)
	case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved:
		return true
	}
	return false
}
