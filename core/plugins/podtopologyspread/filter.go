package podtopologyspread

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// verdict is what hard constraints say of a group.
type verdict uint8

const (
	fits verdict = iota
	skewed
	missingLabel
)

// judge follows Filter of kube-scheduler 1.36: the first constraint that is
// not met decides.
func (r *rule) judge(g *framework.Groups, i int) verdict {
	for k := range r.hard {
		p := &r.hard[k]
		n, ok := r.count(p, g, i)
		if !ok {
			return missingLabel
		}
		lowest, domains := p.fact.Lowest()
		if domains < p.minDomains {
			lowest = 0
		}
		if n+p.self-lowest > p.maxSkew {
			return skewed
		}
	}
	return fits
}

// NeverFilters implements framework.NeverFilters.
func (r *rule) NeverFilters() bool { return len(r.hard) == 0 }

// Filter implements framework.GroupRule. It says what judge says, one
// constraint after the other over all groups.
func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	clear(out)
	for k := range r.hard {
		p := &r.hard[k]
		lowest, domains := p.fact.Lowest()
		if domains < p.minDomains {
			lowest = 0
		}
		most := p.maxSkew - p.self + lowest
		if p.host >= 0 {
			for i, n := range g.Nodes {
				if n == 0 || out[i] != framework.OK {
					continue
				}
				if count, ok := r.count(p, g, i); !ok {
					out[i] = framework.Final
				} else if count > most {
					out[i] = framework.Reject
				}
			}
			continue
		}
		for i, d := range g.Domains[p.domain] {
			switch {
			case g.Nodes[i] == 0 || out[i] != framework.OK:
			case d == cluster.NoDomain:
				out[i] = framework.Final
			case p.fact.Count(d) > most:
				out[i] = framework.Reject
			}
		}
	}
}

// Explain implements framework.GroupRule.
func (r *rule) Explain(g *framework.Groups, i int) *framework.Reason {
	const message = "node(s) didn't match pod topology spread constraints"
	if r.judge(g, i) == missingLabel {
		return &framework.Reason{Plugin: Name, Messages: []string{message + " (missing required label)"}, Final: true}
	}
	reason := &framework.Reason{Plugin: Name, Messages: []string{message}}
	for k := range r.hard {
		p := &r.hard[k]
		n, _ := r.count(p, g, i)
		lowest, domains := p.fact.Lowest()
		if domains < p.minDomains {
			lowest = 0
		}
		if skew := n + p.self - lowest; skew > p.maxSkew {
			reason.Deficits = []framework.Deficit{{Resource: "skew over " + p.fact.Spec().Topology, Needed: int64(skew), Available: int64(p.maxSkew)}}
			break // the one that rejected the node
		}
	}
	return reason
}
