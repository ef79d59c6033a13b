// Package interpodaffinity keeps pods apart that say so by required pod
// anti-affinity: the pod's own terms against pods that are placed, and the
// terms of placed pods against the pod. Required affinity is not judged yet
// (package unsupported says so), nor do preferred terms score.
package interpodaffinity

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "InterPodAffinity"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// Sign implements framework.Plugin. Of the pod's labels it reads those that a
// term of some placed pod reads.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, _, group *framework.Signature) {
	group.Int(int64(len(pod.AntiAffinity)))
	for _, t := range pod.AntiAffinity {
		group.Str(t.Key)
	}
	if len(state.AntiAffinityTerms()) == 0 {
		return
	}
	group.Str(pod.Object.Namespace)
	for _, key := range state.InterestKeys() {
		value, ok := pod.Object.Labels[key]
		group.OptStr(value, ok)
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	r := &rule{}
	for _, t := range pod.AntiAffinity {
		r.add(state, t, true, cluster.FactSpec{
			Key: "matching|" + t.Key, Namespaces: t.Namespaces, Selector: t.Selector,
		})
	}
	for _, t := range state.AntiAffinityTerms() {
		if t.Matches(pod) {
			r.add(state, t, false, cluster.FactSpec{Key: "owners|" + t.Key, Owners: t.Key})
		}
	}
	if len(r.facts) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Group: r}, nil
}

// The verdicts, as bits of a host key.
const (
	ownTerm = 1 << iota
	othersTerm
)

type fact struct {
	*cluster.Fact
	bit    int32
	domain int // index among the rule's topology keys; -1 for the hostname
}

type rule struct {
	topologies []string
	facts      []fact
	host       []*cluster.Fact
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.Hinter    = (*rule)(nil)
)

func (r *rule) add(state *cluster.State, t *cluster.AffinityTerm, own bool, spec cluster.FactSpec) {
	spec.Topology = t.TopologyKey
	f := fact{Fact: state.Fact(spec), bit: othersTerm, domain: -1}
	if own {
		f.bit = ownTerm
	}
	if t.TopologyKey == v1.LabelHostname {
		r.host = append(r.host, f.Fact)
	} else {
		f.domain = len(r.topologies)
		r.topologies = append(r.topologies, t.TopologyKey)
	}
	r.facts = append(r.facts, f)
}

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	for i := range r.facts {
		state.DropFact(r.facts[i].Fact)
	}
}

func (r *rule) TopologyKeys() []string { return r.topologies }

func (r *rule) StaticKey(*cluster.NodeInfo) int32 { return 0 }

func (r *rule) HostFacts() []*cluster.Fact { return r.host }

func (r *rule) HostKey(n cluster.NodeIndex) int32 {
	var key int32
	for i := range r.facts {
		if f := &r.facts[i]; f.domain < 0 && f.CountAt(n) > 0 {
			key |= f.bit
		}
	}
	return key
}

// verdict returns the bits of the terms that keep the pod off a group.
func (r *rule) verdict(g *framework.Groups, i int) int32 {
	bits := g.Host[i]
	for k := range r.facts {
		if f := &r.facts[k]; f.domain >= 0 && f.Count(g.Domains[f.domain][i]) > 0 {
			bits |= f.bit
		}
	}
	return bits
}

func (r *rule) Filter(g *framework.Groups, out []framework.Code) {
	for i := range out {
		out[i] = framework.OK
		if r.verdict(g, i) != 0 {
			out[i] = framework.Reject
		}
	}
}

// Score implements framework.GroupRule: required terms don't score.
func (r *rule) Score(*framework.Groups, int64, []int64) {}

func (r *rule) Explain(g *framework.Groups, i int) *framework.Reason {
	msg := "node(s) didn't satisfy existing pods anti-affinity rules"
	if r.verdict(g, i)&ownTerm != 0 {
		msg = "node(s) didn't match pod anti-affinity rules"
	}
	return &framework.Reason{Plugin: Name, Messages: []string{msg}}
}

// Hint implements framework.Hinter: counts fall when pods leave (those of a
// removed node leave first) or move with their node to another domain.
func (r *rule) Hint(c *cluster.Change) bool {
	switch c.Op {
	case cluster.PodRemoved:
		return r.counts(c.Pod)
	case cluster.NodeUpdated:
		for i := range r.facts {
			key := r.facts[i].Topology().Key
			was, had := c.Old.Object.Labels[key]
			is, has := c.Info.Object.Labels[key]
			if was != is || had != has {
				return true
			}
		}
	}
	return false
}

// counts tells whether the pod is counted in one of the rule's facts.
func (r *rule) counts(p *cluster.Pod) bool {
	for i := range r.facts {
		if r.facts[i].Counts(p) {
			return true
		}
	}
	return false
}
