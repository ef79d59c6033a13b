// Package podtopologyspread prefers nodes in topology domains with fewer pods
// like the one to place: a pod's soft constraints, or else the system defaults
// for pods that a Service, ReplicaSet, StatefulSet or ReplicationController
// selects. Hard constraints are not judged yet; package unsupported says so.
package podtopologyspread

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
	nodeaffinityrule "github.com/berthproject/berth/plugins/nodeaffinity"
	"github.com/berthproject/berth/plugins/tainttoleration"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "PodTopologySpread"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	list, requireAll := constraints(pod, state)
	local.Bool(requireAll)
	local.Int(int64(len(list)))
	group.Int(int64(len(list)))
	if len(list) == 0 {
		return
	}
	group.Str(pod.Object.Namespace)
	nodeaffinityrule.SignRequired(pod, group)
	tainttoleration.Plugin{}.Sign(pod, state, group, nil)
	for i := range list {
		c := &list[i]
		local.Str(c.key)
		group.Int(int64(c.maxSkew))
		group.Str(text(c.selector))
		group.Bool(c.honorAffinity)
		group.Bool(c.honorTaints)
	}
}

// text tells selectors apart; String alone doesn't tell nothing from everything.
func text(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "<nothing>"
	}
	return s.String()
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	list, requireAll := constraints(pod, state)
	if len(list) == 0 {
		return framework.Rules{}, nil
	}
	r := &rule{requireAll: requireAll}
	for i := range list {
		c := &list[i]
		r.keys = append(r.keys, c.key)
		part := part{maxSkew: c.maxSkew, host: c.key == v1.LabelHostname}
		spec := cluster.FactSpec{
			Topology: c.key, Namespaces: []string{pod.Object.Namespace},
			Selector: c.selector, SkipTerminating: true,
		}
		filter := ""
		if part.host {
			// Upstream counts a node's own pods, whatever the policies say.
			spec.Topology = cluster.PerNode
		} else {
			part.domain = len(r.topologies)
			r.topologies = append(r.topologies, c.key)
			spec.NodeFilter, filter = inclusion(pod, c, list, requireAll)
		}
		if c.selector.Empty() {
			spec.Selector = labels.Nothing() // upstream: an empty selector counts nobody
		}
		spec.Key = fmt.Sprintf("spread|%s|%s|%s|%s", spec.Topology, pod.Object.Namespace, text(spec.Selector), filter)
		part.fact = state.Fact(spec)
		r.parts = append(r.parts, part)
	}
	return framework.Rules{Group: r}, nil
}

type part struct {
	fact    *cluster.Fact
	maxSkew int32
	host    bool
	domain  int // index among the rule's topology keys, when not host
}

type rule struct {
	keys       []string // of all constraints
	topologies []string // without the hostname
	parts      []part
	requireAll bool
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
)

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) {
	for i := range r.parts {
		state.DropFact(r.parts[i].fact)
	}
}

func (r *rule) TopologyKeys() []string { return r.topologies }

// What StaticKey says: the node lacks the hostname label, or (when all keys
// are required) some key, so that the rule ignores it.
const (
	noHostname = 1 << iota
	ignored
)

func (r *rule) StaticKey(n *cluster.NodeInfo) int32 {
	var key int32
	for _, k := range r.keys {
		if _, ok := n.Object.Labels[k]; ok {
			continue
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

func (r *rule) HostFacts() []*cluster.Fact {
	for i := range r.parts {
		if r.parts[i].host {
			return []*cluster.Fact{r.parts[i].fact}
		}
	}
	return nil
}

func (r *rule) HostKey(n cluster.NodeIndex) int32 {
	for i := range r.parts {
		if r.parts[i].host {
			return r.parts[i].fact.CountAt(n)
		}
	}
	return 0
}

// Filter implements framework.GroupRule: soft constraints reject nothing.
func (r *rule) Filter(_ *framework.Groups, out []framework.Code) { clear(out) }

func (r *rule) Explain(*framework.Groups, int) *framework.Reason { return nil }

// Score follows PreScore, Score and NormalizeScore of kube-scheduler 1.36, in
// its order of floating-point operations.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	var weights [8]float64
	tp := weights[:0]
	for i := range r.parts {
		tp = append(tp, math.Log(float64(r.size(g, &r.parts[i])+2)))
	}
	lowest, highest := int64(math.MaxInt64), int64(0)
	for i := range g.Nodes {
		if g.Static[i]&ignored != 0 {
			continue
		}
		s := r.raw(g, i, tp)
		lowest, highest = min(lowest, s), max(highest, s)
	}
	for i := range g.Nodes {
		switch {
		case g.Static[i]&ignored != 0:
		case highest == 0:
			out[i] += weight * framework.MaxScore
		default:
			out[i] += weight * (framework.MaxScore * (highest + lowest - r.raw(g, i, tp)) / highest)
		}
	}
}

// raw is the score before normalising: more pods, more points.
func (r *rule) raw(g *framework.Groups, i int, tp []float64) int64 {
	var score float64
	for k := range r.parts {
		p := &r.parts[k]
		var count int32
		if p.host {
			if g.Static[i]&noHostname != 0 {
				continue
			}
			count = g.Host[i]
		} else {
			d := g.Domains[p.domain][i]
			if d == cluster.NoDomain {
				continue
			}
			count = p.fact.Count(d)
		}
		// The conversion keeps a product from being fused with the sum, which
		// some machines do and others don't.
		score += float64(float64(count)*tp[k]) + float64(p.maxSkew-1)
	}
	return int64(math.Round(score))
}

// size is the number of domains among the feasible nodes; nodes without the
// key are a domain of their own when they aren't ignored.
func (r *rule) size(g *framework.Groups, p *part) int {
	size := 0
	if p.host {
		for i, n := range g.Nodes {
			if g.Static[i]&ignored == 0 {
				size += int(n)
			}
		}
		return size
	}
	domains := g.Domains[p.domain]
	if len(domains) > manyGroups {
		seen := make(map[cluster.Domain]struct{}, len(domains))
		for i, d := range domains {
			if g.Static[i]&ignored == 0 {
				seen[d] = struct{}{}
			}
		}
		return len(seen)
	}
	for i, d := range domains {
		if g.Static[i]&ignored == 0 && !seenBefore(g, domains, i, d) {
			size++
		}
	}
	return size
}

// manyGroups is where a map beats comparing each pair.
const manyGroups = 64

func seenBefore(g *framework.Groups, domains []cluster.Domain, i int, d cluster.Domain) bool {
	for j := range i {
		if domains[j] == d && g.Static[j]&ignored == 0 {
			return true
		}
	}
	return false
}
