package interpodaffinity

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file has what required terms say (Filter of kube-scheduler): first the
// pod's affinity, then its anti-affinity, then others' anti-affinity; the first
// that isn't met decides on code and message.

// affinityMet reports whether a group meets the required affinity: its nodes have
// all the topology keys, and in each domain there is a pod that meets all terms. A
// pod that meets its own terms goes anywhere that has the keys as long as no pod
// in the cluster meets them: the first of a kind would wait forever otherwise.
func (r *rule) affinityMet(g *framework.Groups, i int) bool {
	here, anywhere := true, false
	for k := range r.affinity {
		c := &r.affinity[k]
		anywhere = anywhere || c.Nonzero() > 0
		if c.domain < 0 {
			if g.Static[i] != 0 { // no hostname
				return false
			}
			here = here && g.Host[i]&hostAffinity != 0
			continue
		}
		d := g.Domains[c.domain][i]
		if d == cluster.NoDomain {
			return false
		}
		here = here && c.Count(d) > 0
	}
	return here || !anywhere && r.selectsItself
}

// antiAffinity returns whose anti-affinity keeps the class off a group, as bits:
// ownAntiAffinity, othersAntiAffinity. A node without a term's key is in no domain
// that the term could keep it off.
func (r *rule) antiAffinity(g *framework.Groups, i int) int32 {
	bits := g.Host[i] & (ownAntiAffinity | othersAntiAffinity)
	for k := range r.filters {
		if c := &r.filters[k]; c.domain >= 0 && c.Count(g.Domains[c.domain][i]) > 0 {
			bits |= c.amount
		}
	}
	return bits
}

// NeverFilters implements framework.NeverFilters.
func (r *rule) NeverFilters() bool { return len(r.affinity)+len(r.filters) == 0 }

// Filter implements framework.GroupRule, in O(groups × terms).
func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	clear(out)
	if len(r.affinity) > 0 {
		for i := range out {
			if g.Nodes[i] != 0 && !r.affinityMet(g, i) {
				out[i] = framework.Final
			}
		}
	}
	if len(r.filters) == 0 {
		return
	}
	for i := range out {
		if g.Nodes[i] != 0 && out[i] == framework.OK && r.antiAffinity(g, i) != 0 {
			out[i] = framework.Reject
		}
	}
}

// Explain implements framework.GroupRule.
func (r *rule) Explain(g *framework.Groups, i int) *framework.Reason {
	switch {
	case !r.affinityMet(g, i):
		return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match pod affinity rules"}, Final: true}
	case r.antiAffinity(g, i)&ownAntiAffinity != 0:
		return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match pod anti-affinity rules"}}
	}
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't satisfy existing pods anti-affinity rules"}}
}
