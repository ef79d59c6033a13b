package interpodaffinity

import (
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// What keeps a pod off a node, as bits of a filter's amount and of a host key.
const (
	ownAnti = 1 << iota
	othersAnti
	near // the hostname part of required affinity is met

	hostBits = 3 // the score of a host key is above them
)

// fact is a count with what it means to the class: for scores what one pod
// adds, for filters what a pod keeps the class off for.
type fact struct {
	*cluster.Fact
	amount int32
	domain int // place among the rule's topology keys; -1 for the hostname
}

type rule struct {
	topologies     framework.TopologyKeys
	affinity       []fact // one for each topology key
	filters        []fact
	scores         []fact
	host           []*cluster.Fact
	self           bool // the pod meets its own required affinity
	requiresOnHost bool
	raws           []int64 // of the decision at hand
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.Hinter    = (*rule)(nil)
)

func (r *rule) add(state *cluster.State, to *[]fact, key string, spec cluster.FactSpec, amount int32) {
	f := fact{Fact: state.Fact(spec), amount: amount, domain: -1}
	if key == v1.LabelHostname {
		r.host = append(r.host, f.Fact)
	} else {
		f.domain = r.topologies.Index(key)
	}
	*to = append(*to, f)
}

func (r *rule) each(f func(*fact) bool) {
	for _, list := range [][]fact{r.affinity, r.filters, r.scores} {
		for i := range list {
			if !f(&list[i]) {
				return
			}
		}
	}
}

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	r.each(func(f *fact) bool { state.DropFact(f.Fact); return true })
}

func (r *rule) TopologyKeys() []string { return r.topologies }

// StaticKey is 1 for nodes without the hostname that required affinity is
// over.
func (r *rule) StaticKey(n *cluster.NodeInfo) int32 {
	if r.requiresOnHost {
		if _, ok := n.Object.Labels[v1.LabelHostname]; !ok {
			return 1
		}
	}
	return 0
}

func (r *rule) HostFacts() []*cluster.Fact { return r.host }

// HostKey is the raw score that the hostname adds, above the bits of what it
// says of the node.
func (r *rule) HostKey(n cluster.NodeIndex) int32 {
	var key int32
	for i := range r.scores {
		if f := &r.scores[i]; f.domain < 0 {
			key += f.amount * f.CountAt(n)
		}
	}
	key <<= hostBits
	for i := range r.filters {
		if f := &r.filters[i]; f.domain < 0 && f.CountAt(n) > 0 {
			key |= f.amount
		}
	}
	for i := range r.affinity {
		if f := &r.affinity[i]; f.domain < 0 && f.CountAt(n) > 0 {
			key |= near
		}
	}
	return key
}

// met tells whether a group meets the required affinity. The first pod of a
// kind that wants to be together goes anywhere that has the labels.
func (r *rule) met(g *framework.Groups, i int) bool {
	here, anywhere := true, false
	for k := range r.affinity {
		f := &r.affinity[k]
		anywhere = anywhere || f.Nonzero() > 0
		if f.domain < 0 {
			if g.Static[i] != 0 {
				return false
			}
			here = here && g.Host[i]&near != 0
			continue
		}
		d := g.Domains[f.domain][i]
		if d == cluster.NoDomain {
			return false
		}
		here = here && f.Count(d) > 0
	}
	return here || !anywhere && r.self
}

// apart returns the bits of the anti-affinity that keeps the pod off a group.
func (r *rule) apart(g *framework.Groups, i int) int32 {
	bits := g.Host[i] & (ownAnti | othersAnti)
	for k := range r.filters {
		if f := &r.filters[k]; f.domain >= 0 && f.Count(g.Domains[f.domain][i]) > 0 {
			bits |= f.amount
		}
	}
	return bits
}

// NeverFilters implements framework.NeverFilters.
func (r *rule) NeverFilters() bool { return len(r.affinity)+len(r.filters) == 0 }

// Filter implements framework.GroupRule.
func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	clear(out)
	if len(r.affinity) > 0 {
		for i := range out {
			if g.Nodes[i] != 0 && !r.met(g, i) {
				out[i] = framework.Final
			}
		}
	}
	if len(r.filters) == 0 {
		return
	}
	for i := range out {
		if g.Nodes[i] != 0 && out[i] == framework.OK && r.apart(g, i) != 0 {
			out[i] = framework.Reject
		}
	}
}

// Explain implements framework.GroupRule.
func (r *rule) Explain(g *framework.Groups, i int) *framework.Reason {
	switch {
	case !r.met(g, i):
		return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match pod affinity rules"}, Final: true}
	case r.apart(g, i)&ownAnti != 0:
		return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match pod anti-affinity rules"}}
	}
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't satisfy existing pods anti-affinity rules"}}
}

// raw is the score of a group before normalising.
func (r *rule) raw(g *framework.Groups, i int) int64 {
	score := int64(g.Host[i] >> hostBits)
	for k := range r.scores {
		if f := &r.scores[k]; f.domain >= 0 {
			score += int64(f.amount) * int64(f.Count(g.Domains[f.domain][i]))
		}
	}
	return score
}

// Score follows NormalizeScore of kube-scheduler 1.36, in its order of
// floating-point operations.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	if len(r.scores) == 0 {
		return
	}
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	r.raws = r.raws[:0]
	for i, n := range g.Nodes {
		if n == 0 {
			r.raws = append(r.raws, 0)
			continue
		}
		s := r.raw(g, i)
		r.raws = append(r.raws, s)
		lowest, highest = min(lowest, s), max(highest, s)
	}
	if highest <= lowest {
		return
	}
	span := float64(highest - lowest)
	for i, s := range r.raws {
		if g.Nodes[i] != 0 {
			out[i] += weight * int64(framework.MaxScore*(float64(s-lowest)/span))
		}
	}
}

// Raw implements framework.RawScorer.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	for i := range out {
		out[i] = r.raw(g, i)
	}
}

// Hint implements framework.Hinter: counts change when pods come and go (those
// of a removed node leave first) or move with their node to another domain.
func (r *rule) Hint(c *cluster.Change) (mayHelp bool) {
	switch c.Op {
	case cluster.PodAdded, cluster.PodRemoved:
		r.rejecting(func(f *fact) bool { mayHelp = f.Counts(c.Pod); return !mayHelp })
	case cluster.NodeUpdated:
		r.rejecting(func(f *fact) bool {
			key := f.Topology().Key
			was, had := c.Old.Object.Labels[key]
			is, has := c.Info.Object.Labels[key]
			mayHelp = was != is || had != has
			return !mayHelp
		})
	}
	return mayHelp
}

// rejecting goes through the facts that can reject a node, until f says to
// stop.
func (r *rule) rejecting(f func(*fact) bool) {
	for _, list := range [][]fact{r.affinity, r.filters} {
		for i := range list {
			if !f(&list[i]) {
				return
			}
		}
	}
}
