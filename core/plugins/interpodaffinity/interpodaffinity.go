// Package interpodaffinity places pods near to or apart from others that say
// so, or of which others say so: required and preferred pod affinity and
// anti-affinity of the pod to place, and of the pods that are placed.
package interpodaffinity

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "InterPodAffinity"

// DefaultHardPodAffinityWeight is what a required affinity term of a placed
// pod counts for in the score of a pod that it selects.
const DefaultHardPodAffinityWeight = 1

// Args are the plugin's arguments (InterPodAffinityArgs).
type Args struct {
	HardPodAffinityWeight              int32
	IgnorePreferredTermsOfExistingPods bool
}

// Plugin implements framework.Plugin.
type Plugin struct{ args Args }

var (
	_ framework.Plugin     = Plugin{}
	_ framework.TermReader = Plugin{}
)

// New returns the plugin with arguments.
func New(args Args) Plugin { return Plugin{args} }

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "pods that it is to be with or apart from come or go, or nodes in other domains come"
}

// Sign implements framework.Plugin. Of the pod's labels it reads those that a
// term of some placed pod reads, and those that its own terms do.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	group.Str(pod.TermProblem)
	local.Bool(requiresOnHost(pod))
	group.Int(int64(len(pod.Terms)))
	if len(pod.Terms) > 0 {
		group.Bool(selectsItself(pod, state))
	}
	for i := range pod.Terms {
		t := &pod.Terms[i]
		group.Int(int64(t.Kind))
		group.Int(int64(t.Weight))
		group.Str(t.Key)
		if t.NamespaceSelector != nil {
			m := t.In(state)
			group.Bool(m.Namespaces == nil)
			group.Str(strings.Join(m.Namespaces, ","))
		}
	}
	if len(state.Terms()) == 0 {
		return
	}
	group.Str(pod.Object.Namespace)
	for _, key := range state.InterestKeys() {
		value, ok := pod.Object.Labels[key]
		group.OptStr(value, ok)
	}
	if state.NamespacesByLabels() {
		labels := state.NamespaceLabels(pod.Object.Namespace)
		group.Int(int64(len(labels)))
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			group.Str(k)
			group.Str(labels[k])
		}
	}
}

// requiresOnHost tells whether a required affinity term is over the hostname:
// then nodes without that label are told apart.
func requiresOnHost(pod *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Terms, func(t cluster.OwnedTerm) bool {
		return t.Kind == cluster.RequiredAffinity && t.TopologyKey == v1.LabelHostname
	})
}

// selectsItself tells whether the pod meets all its own required affinity, so
// that the first of a kind needn't wait for another.
func selectsItself(pod *cluster.Pod, state *cluster.State) bool {
	for i := range pod.Terms {
		if t := &pod.Terms[i]; t.Kind == cluster.RequiredAffinity {
			if m := t.In(state); !m.Matches(pod) {
				return false
			}
		}
	}
	return true
}

// ReadsTerm implements framework.TermReader.
func (p Plugin) ReadsTerm(pod *cluster.Pod, state *cluster.State, t *cluster.Term) bool {
	return p.counts(pod, t.Kind) && t.Selects(pod, state.NamespaceLabels(pod.Object.Namespace))
}

// counts tells whether terms of placed pods matter to the pod.
func (p Plugin) counts(pod *cluster.Pod, kind cluster.TermKind) bool {
	switch kind {
	case cluster.RequiredAntiAffinity:
		return true
	case cluster.RequiredAffinity:
		if p.args.HardPodAffinityWeight == 0 {
			return false
		}
	}
	return !p.args.IgnorePreferredTermsOfExistingPods || prefers(pod)
}

func prefers(pod *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Terms, func(t cluster.OwnedTerm) bool {
		return t.Kind == cluster.PreferredAffinity || t.Kind == cluster.PreferredAntiAffinity
	})
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.TermProblem != "" {
		return framework.Rules{}, &framework.Reason{Plugin: Name, Messages: []string{"parsing pod: " + pod.TermProblem}, Final: true, OfPod: true}
	}
	r := &rule{self: selectsItself(pod, state), requiresOnHost: requiresOnHost(pod)}
	r.requireAffinity(pod, state)
	for i := range pod.Terms {
		t := &pod.Terms[i]
		switch t.Kind {
		case cluster.RequiredAntiAffinity:
			r.add(state, &r.filters, t.TopologyKey, matching(t.TopologyKey, t.In(state)), ownAnti)
		case cluster.PreferredAffinity:
			r.add(state, &r.scores, t.TopologyKey, matching(t.TopologyKey, t.In(state)), t.Weight)
		case cluster.PreferredAntiAffinity:
			r.add(state, &r.scores, t.TopologyKey, matching(t.TopologyKey, t.In(state)), -t.Weight)
		}
	}
	for _, t := range state.TermsSelecting(pod) {
		if !p.counts(pod, t.Kind) {
			continue
		}
		owners := cluster.FactSpec{Key: "owners|" + t.OwnerKey, Topology: t.TopologyKey, Owners: t.OwnerKey}
		switch t.Kind {
		case cluster.RequiredAntiAffinity:
			r.add(state, &r.filters, t.TopologyKey, owners, othersAnti)
		case cluster.RequiredAffinity:
			r.add(state, &r.scores, t.TopologyKey, owners, p.args.HardPodAffinityWeight)
		case cluster.PreferredAffinity:
			r.add(state, &r.scores, t.TopologyKey, owners, 1)
		case cluster.PreferredAntiAffinity:
			r.add(state, &r.scores, t.TopologyKey, owners, -1)
		}
	}
	if len(r.affinity)+len(r.filters)+len(r.scores) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Group: r}, nil
}

// matching is the fact of pods that meet all the demands.
func matching(topology string, demands ...cluster.PodMatch) cluster.FactSpec {
	var b strings.Builder
	b.WriteString("matching|")
	b.WriteString(topology)
	for _, m := range demands {
		b.WriteByte('|')
		if m.Namespaces == nil {
			b.WriteByte('*')
		}
		b.WriteString(strings.Join(m.Namespaces, ","))
		b.WriteByte('|')
		b.WriteString(cluster.SelectorText(m.Selector))
	}
	return cluster.FactSpec{Key: b.String(), Topology: topology, Match: demands}
}

// requireAffinity adds the facts of the required affinity terms. A pod counts
// for each of their topology keys if it meets all of the terms.
func (r *rule) requireAffinity(pod *cluster.Pod, state *cluster.State) {
	var demands []cluster.PodMatch
	var keys []string
	for i := range pod.Terms {
		if t := &pod.Terms[i]; t.Kind == cluster.RequiredAffinity {
			demands = append(demands, t.In(state))
			if !slices.Contains(keys, t.TopologyKey) {
				keys = append(keys, t.TopologyKey)
			}
		}
	}
	for _, key := range keys {
		r.add(state, &r.affinity, key, matching(key, demands...), 0)
	}
}
