package podtopologyspread

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file has what hard constraints say (Filter of kube-scheduler). A node
// takes the pod when for every hard constraint the node has the key, and the
// number of matching pods in its domain, with the pod, is at most maxSkew above
// the lowest such number of any domain. The first constraint that is not met
// decides on code and message.

// lowest returns the count that others are compared with: the lowest of any
// domain that counts, or 0 where there are fewer domains than minDomains.
func (c *counted) lowest() int32 {
	lowest, domains := c.fact.Lowest()
	if domains < c.minDomains {
		return 0
	}
	return lowest
}

// NeverFilters implements framework.NeverFilters.
func (r *rule) NeverFilters() bool { return len(r.hard) == 0 }

// Filter implements framework.GroupRule, in O(groups) for each hard constraint.
func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	clear(out)
	for k := range r.hard {
		c := &r.hard[k]
		maxCount := c.maxSkew - int64(c.self) + int64(c.lowest()) // of pods that may be there already
		if c.host >= 0 {
			for i, n := range g.Nodes {
				if n == 0 || out[i] != framework.OK {
					continue
				}
				if count, ok := r.count(c, g, i); !ok {
					out[i] = framework.Final
				} else if int64(count) > maxCount {
					out[i] = framework.Reject
				}
			}
			continue
		}
		for i, d := range g.Domains[c.domain] {
			switch {
			case g.Nodes[i] == 0 || out[i] != framework.OK:
			case d == cluster.NoDomain:
				out[i] = framework.Final
			case int64(c.fact.Count(d)) > maxCount:
				out[i] = framework.Reject
			}
		}
	}
}

// Explain implements framework.GroupRule. The deficit is the skew that there would
// be, in pods, against maxSkew.
func (r *rule) Explain(g *framework.Groups, i int) *framework.Reason {
	const message = "node(s) didn't match pod topology spread constraints"
	reason := &framework.Reason{Plugin: Name, Messages: []string{message}}
	for k := range r.hard {
		c := &r.hard[k]
		n, ok := r.count(c, g, i)
		if !ok {
			return &framework.Reason{Plugin: Name, Messages: []string{message + " (missing required label)"}, Final: true}
		}
		if skew := int64(n) + int64(c.self) - int64(c.lowest()); skew > c.maxSkew {
			reason.Deficits = []framework.Deficit{{Resource: "skew over " + c.fact.Spec().Topology, Needed: skew, Available: c.maxSkew}}
			break
		}
	}
	return reason
}
