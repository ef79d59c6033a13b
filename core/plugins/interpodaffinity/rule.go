package interpodaffinity

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// rule implements framework.GroupRule for the pods of one class. It holds no
// counts: these are in the facts, so that what-ifs see theirs. Terms over the
// hostname are counted by host fact, since each node is a domain of its own.
type rule struct {
	topologies     framework.TopologyKeys // keys of all terms, without the hostname
	affinity       []counted              // required affinity: one for each topology key
	filters        []counted              // required anti-affinity, the pod's own and others'
	scores         []counted              // everything that is scored
	host           []*cluster.Fact        // facts over the hostname
	selectsItself  bool                   // the pod meets its own required affinity
	requiresOnHost bool                   // a required affinity term is over the hostname
	raws           []int64                // of the call of Score that is going on
}

// counted is a fact with what its count means to the class.
type counted struct {
	*cluster.Fact
	// amount is what each pod adds to the score; of a filter, the bit that says
	// why a pod keeps the class away.
	amount int32
	domain int // position among rule.topologies; -1 for the hostname
}

// The bits of a host key below its score. The first two are also the amounts of
// filters.
const (
	ownAntiAffinity    = 1 << iota // a pod meets a required anti-affinity term of the class
	othersAntiAffinity             // a pod owns a required anti-affinity term that the class meets
	hostAffinity                   // the required affinity over the hostname is met

	hostBits = 3
)

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Excluder  = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.Hinter    = (*rule)(nil)
	_ framework.PodReader = (*rule)(nil)
	_ framework.RawScorer = (*rule)(nil)
)

// add adds a fact over a topology key to one of the lists.
func (r *rule) add(state *cluster.State, to *[]counted, key string, spec cluster.FactSpec, amount int32) {
	c := counted{Fact: state.Fact(spec), amount: amount, domain: -1}
	if key == v1.LabelHostname {
		r.host = append(r.host, c.Fact)
	} else {
		c.domain = r.topologies.Index(key)
	}
	*to = append(*to, c)
}

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	for _, list := range [][]counted{r.affinity, r.filters, r.scores} {
		for i := range list {
			state.DropFact(list[i].Fact)
		}
	}
}

// TopologyKeys implements framework.GroupRule.
func (r *rule) TopologyKeys() []string { return r.topologies }

// StaticKey implements framework.GroupRule: 1 for nodes without a hostname label
// that required affinity is over.
func (r *rule) StaticKey(n *cluster.NodeBasics) int32 {
	if r.requiresOnHost {
		if !n.HasLabel(v1.LabelHostname) {
			return 1
		}
	}
	return 0
}

// StaticKeys implements framework.ManyStaticKeys.
func (r *rule) StaticKeys(nodes []*cluster.Node, out []int32) {
	if !r.requiresOnHost {
		clear(out)
		return
	}
	for i, n := range nodes {
		out[i] = r.StaticKey(&n.NodeBasics)
	}
}

// HostFacts implements framework.GroupRule.
func (r *rule) HostFacts() []*cluster.Fact { return r.host }

// Excluding implements framework.Excluder: the facts of required anti-affinity.
func (r *rule) Excluding() (out []*cluster.Fact) {
	for i := range r.filters {
		if c := &r.filters[i]; c.domain < 0 {
			out = append(out, c.Fact)
		}
	}
	return out
}

// HostKey implements framework.GroupRule: the raw score of the terms over the
// hostname, above the bits that say what these mean for filtering.
func (r *rule) HostKey(n cluster.NodeIndex) int32 {
	var key int32
	for i := range r.scores {
		if c := &r.scores[i]; c.domain < 0 {
			key += c.amount * c.CountAt(n)
		}
	}
	key <<= hostBits
	for i := range r.filters {
		if c := &r.filters[i]; c.domain < 0 && c.CountAt(n) > 0 {
			key |= c.amount
		}
	}
	for i := range r.affinity {
		if c := &r.affinity[i]; c.domain < 0 && c.CountAt(n) > 0 {
			key |= hostAffinity
		}
	}
	return key
}

// ReadsPod implements framework.PodReader: pods that a required term counts, the class's own or
// another's.
func (r *rule) ReadsPod(p *cluster.Pod) bool {
	return r.anyFilter(func(f *counted) bool { return f.Counts(p) })
}

// Hint implements framework.Hinter: the counts that reject nodes change when pods
// come and go (those of a removed node are taken away first), and when a node moves
// to another domain of one of the keys.
func (r *rule) Hint(c *cluster.Change) bool {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved:
		return r.ReadsPod(c.Pod)
	case cluster.NodeUpdated:
		return r.anyFilter(func(f *counted) bool {
			key := f.Topology().Key
			was, had := c.Old.Object.Labels[key]
			is, has := c.Info.Object.Labels[key]
			return was != is || had != has
		})
	}
	return false
}

// anyFilter reports whether f holds for some fact that can reject a node.
func (r *rule) anyFilter(f func(*counted) bool) bool {
	for _, list := range [][]counted{r.affinity, r.filters} {
		for i := range list {
			if f(&list[i]) {
				return true
			}
		}
	}
	return false
}
