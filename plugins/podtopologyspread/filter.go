package podtopologyspread

import "github.com/berthproject/berth/framework"

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

// Filter implements framework.GroupRule.
func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	if len(r.hard) == 0 {
		clear(out)
		return
	}
	for i := range out {
		switch r.judge(g, i) {
		case fits:
			out[i] = framework.OK
		case skewed:
			out[i] = framework.Reject
		case missingLabel:
			out[i] = framework.Final
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
			reason.Deficits = append(reason.Deficits, framework.Deficit{
				Resource: "skew over " + p.fact.Spec().Topology, Needed: int64(skew), Available: int64(p.maxSkew)})
		}
	}
	return reason
}
