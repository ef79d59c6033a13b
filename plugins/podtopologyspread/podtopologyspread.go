// Package podtopologyspread prefers nodes in topology domains with fewer pods
// like the one to place: a pod's soft constraints, or else the system defaults
// for pods that a Service, ReplicaSet, StatefulSet or ReplicationController
// selects. Hard constraints are not judged yet; package unsupported says so.
package podtopologyspread

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

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

// constraint is a soft constraint, resolved for one pod.
type constraint struct {
	key           string
	maxSkew       int32
	selector      labels.Selector
	honorAffinity bool
	honorTaints   bool
}

// constraints returns the pod's soft constraints. With system defaults, nodes
// without a key count too (requireAll is false).
func constraints(pod *cluster.Pod, state *cluster.State) (list []constraint, requireAll bool) {
	own := pod.Object.Spec.TopologySpreadConstraints
	for i := range own {
		if own[i].WhenUnsatisfiable == v1.ScheduleAnyway {
			list = append(list, explicit(pod, &own[i]))
		}
	}
	if len(own) > 0 {
		return list, true
	}
	selector := defaultSelector(pod, state)
	if selector.Empty() {
		return nil, false
	}
	return []constraint{
		{key: v1.LabelHostname, maxSkew: 3, selector: selector, honorAffinity: true},
		{key: v1.LabelTopologyZone, maxSkew: 5, selector: selector, honorAffinity: true},
	}, false
}

func explicit(pod *cluster.Pod, c *v1.TopologySpreadConstraint) constraint {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		selector = labels.Nothing() // the API server lets none in
	}
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Object.Labels[key]; ok {
			if r, err := labels.NewRequirement(key, "in", []string{value}); err == nil {
				selector = selector.Add(*r)
			}
		}
	}
	return constraint{
		key: c.TopologyKey, maxSkew: c.MaxSkew, selector: selector,
		honorAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
		honorTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
	}
}

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
		score += float64(count)*tp[k] + float64(p.maxSkew-1)
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

// inclusion returns which nodes count (KEP-3094), nil for all, and a text that
// tells filters apart.
func inclusion(pod *cluster.Pod, c *constraint, list []constraint, requireAll bool) (cluster.NodeFilter, string) {
	f := &filter{}
	var sig framework.Signature
	if requireAll {
		for i := range list {
			f.keys = append(f.keys, list[i].key)
			sig.Str(list[i].key)
		}
	}
	if c.honorAffinity && nodeaffinityrule.Restricts(pod) {
		f.byAffinity = true
		f.affinity = nodeaffinity.GetRequiredNodeAffinity(pod.Object)
		sig.Bool(true)
		nodeaffinityrule.SignRequired(pod, &sig)
	}
	if c.honorTaints {
		f.byTaints = true
		f.tolerations = pod.Object.Spec.Tolerations
		sig.Bool(false)
		tainttoleration.Plugin{}.Sign(pod, nil, &sig, nil)
	}
	if len(f.keys) == 0 && !f.byAffinity && !f.byTaints {
		return nil, ""
	}
	return f, string(sig.Bytes())
}

type filter struct {
	keys        []string
	affinity    nodeaffinity.RequiredNodeAffinity
	byAffinity  bool
	tolerations []v1.Toleration
	byTaints    bool
}

func (f *filter) Match(n *cluster.NodeInfo) bool {
	for _, k := range f.keys {
		if _, ok := n.Object.Labels[k]; !ok {
			return false
		}
	}
	if f.byAffinity {
		if ok, _ := f.affinity.Match(n.Object); !ok {
			return false
		}
	}
	if f.byTaints {
		for i := range n.Object.Spec.Taints {
			t := &n.Object.Spec.Taints[i]
			if t.Effect != v1.TaintEffectPreferNoSchedule && !tainttoleration.Tolerated(f.tolerations, t) {
				return false
			}
		}
	}
	return true
}

// defaultSelector merges the selectors of what selects the pod, as
// kube-scheduler's helper.DefaultSelector does.
func defaultSelector(pod *cluster.Pod, state *cluster.State) labels.Selector {
	set := labels.Set{}
	namespace := pod.Object.Namespace
	for _, service := range state.Services(namespace) {
		if service.Set != nil && selects(service.Set, pod.Object.Labels) {
			set = labels.Merge(set, service.Set)
		}
	}
	selector := set.AsSelector()
	owner := metav1.GetControllerOfNoCopy(pod.Object)
	if owner == nil {
		return selector
	}
	switch {
	case owner.Kind == string(cluster.ReplicationController) && owner.APIVersion == "v1":
		if w := state.Workload(cluster.ReplicationController, namespace, owner.Name); w != nil {
			return labels.Merge(set, w.Set).AsSelector()
		}
	case (owner.Kind == string(cluster.ReplicaSet) || owner.Kind == string(cluster.StatefulSet)) && owner.APIVersion == "apps/v1":
		if w := state.Workload(cluster.WorkloadKind(owner.Kind), namespace, owner.Name); w != nil {
			if reqs, ok := w.Selector.Requirements(); ok {
				return selector.Add(reqs...)
			}
		}
	}
	return selector
}

func selects(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
