// Package interpodaffinity places pods near to or apart from other pods: by the
// required and preferred pod affinity and anti-affinity terms of the pod to place,
// and by those of the pods that are placed already.
//
// For each term the state keeps a fact: how many pods in a topology domain meet
// the term (of the pod's own terms), or own it (of others' terms).
//
//	term of the pod to place    fact per domain            says of a node
//	required affinity           pods that meet all terms   Final, when there are none in some term's domain
//	required anti-affinity      pods that meet the term    Reject, when there is one in the domain
//	preferred affinity          pods that meet the term    + weight each
//	preferred anti-affinity     pods that meet the term    − weight each
//
//	term of placed pods that the pod meets
//	required anti-affinity      owners of the term         Reject, when there is one in the domain
//	required affinity           owners of the term         + HardPodAffinityWeight each
//	preferred affinity          weights of its owners      + the sum
//	preferred anti-affinity     weights of its owners      − the sum
package interpodaffinity

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "InterPodAffinity"

// DefaultHardPodAffinityWeight is what a required affinity term of a placed pod
// counts for in the score of a pod that meets it.
const DefaultHardPodAffinityWeight = 1

// Args are the plugin's arguments (InterPodAffinityArgs).
type Args struct {
	HardPodAffinityWeight int32 // 0 to 100; 0 leaves those terms out
	// IgnorePreferredTermsOfExistingPods leaves placed pods' terms out of the score
	// of pods that have no preferred terms of their own.
	IgnorePreferredTermsOfExistingPods bool
}

// Plugin implements framework.Plugin.
type Plugin struct {
	args         Args
	onlyRequired bool // terms that only score don't count
}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Packer       = Plugin{}
	_ framework.TermReader   = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// New returns the plugin with arguments.
func New(args Args) Plugin { return Plugin{args: args} }

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "pods that its affinity or anti-affinity terms select are added or deleted, or nodes in other domains are added"
}

// Packing implements framework.Packer: preferred terms, and required affinity of placed pods,
// only score.
func (p Plugin) Packing() framework.Weighted {
	p.onlyRequired = true
	return framework.Weighted{Plugin: p}
}

// Sign implements framework.Plugin. Of the pod's labels it signs those only that
// a term of some placed pod reads, and of its own terms only whether the pod meets
// them, so that the pods of a StatefulSet or an indexed Job are one class. The
// state says when a new term makes it sign more (State.SignatureVersion).
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
		if t.NamespaceSelector != nil { // which namespaces it selects may change
			m := t.In(state)
			group.Bool(m.Namespaces == nil)
			group.Str(strings.Join(m.Namespaces, ","))
		}
	}
	if len(state.Terms()) == 0 {
		return
	}
	group.Int(int64(state.TermsRead())) // which keys the values below are of
	group.Str(pod.Object.Namespace)
	for _, key := range state.TermLabelKeys() {
		value, ok := pod.Object.Labels[key]
		group.OptStr(value, ok)
	}
	if keys := state.TermNamespaceKeys(); len(keys) > 0 {
		labels := state.NamespaceLabels(pod.Object.Namespace)
		for _, key := range keys {
			value, ok := labels[key]
			group.OptStr(value, ok)
		}
	}
}

// Reclassifies implements framework.Reclassifier: when the labels of a namespace change, those
// pods are signed again of which a term selects the namespace now and didn't before, or the
// other way round; and the pods in it, when terms of placed pods read one of the labels.
func (Plugin) Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool {
	if c.Op != cluster.ObjectSet {
		return nil
	}
	old, was := c.Object.Old.(*v1.Namespace)
	now, is := c.Object.New.(*v1.Namespace)
	if !was && !is {
		return nil
	}
	var name string
	var before, after labels.Set
	if was {
		name, before = old.Name, old.Labels
	}
	if is {
		name, after = now.Name, now.Labels
	}
	if was && is && maps.Equal(before, after) {
		return nil
	}
	read := slices.ContainsFunc(state.TermNamespaceKeys(), func(key string) bool {
		value, had := before[key]
		other, has := after[key]
		return had != has || value != other
	})
	return func(pod *cluster.Pod) bool {
		return read && pod.Object.Namespace == name || slices.ContainsFunc(pod.Terms, func(t cluster.OwnedTerm) bool {
			selector := t.NamespaceSelector
			return selector != nil && (was && selector.Matches(before)) != (is && selector.Matches(after))
		})
	}
}

// requiresOnHost reports whether a required affinity term is over the hostname:
// StaticKey then tells nodes without that label apart.
func requiresOnHost(pod *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Terms, func(t cluster.OwnedTerm) bool {
		return t.Kind == cluster.RequiredAffinity && t.TopologyKey == v1.LabelHostname
	})
}

// selectsItself reports whether the pod meets all its own required affinity terms,
// so that the first pod of a kind needn't wait for another one.
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
	return p.readsKind(pod, t.Kind) && t.Selects(pod, state.NamespaceLabels(pod.Object.Namespace))
}

// readsKind reports whether placed pods' terms of a kind say something about the
// pod.
func (p Plugin) readsKind(pod *cluster.Pod, kind cluster.TermKind) bool {
	if p.onlyRequired {
		return kind == cluster.RequiredAntiAffinity
	}
	switch kind {
	case cluster.RequiredAntiAffinity:
		return true
	case cluster.RequiredAffinity:
		if p.args.HardPodAffinityWeight == 0 {
			return false
		}
	}
	return !p.args.IgnorePreferredTermsOfExistingPods || hasPreferredTerm(pod)
}

func hasPreferredTerm(pod *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Terms, func(t cluster.OwnedTerm) bool { return t.Preferred() })
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.TermProblem != "" {
		return framework.Rules{}, &framework.Reason{Plugin: Name, Messages: []string{"parsing pod: " + pod.TermProblem}, Final: true, OfPod: true}
	}
	r := &rule{selectsItself: selectsItself(pod, state), requiresOnHost: requiresOnHost(pod)}
	r.addRequiredAffinity(pod, state)
	for i := range pod.Terms {
		t := &pod.Terms[i]
		if p.onlyRequired && t.Preferred() {
			continue
		}
		switch t.Kind {
		case cluster.RequiredAntiAffinity:
			r.add(state, &r.filters, t.TopologyKey, meeting(t.TopologyKey, t.In(state)), ownAntiAffinity)
		case cluster.PreferredAffinity:
			r.add(state, &r.scores, t.TopologyKey, meeting(t.TopologyKey, t.In(state)), t.Weight)
		case cluster.PreferredAntiAffinity:
			r.add(state, &r.scores, t.TopologyKey, meeting(t.TopologyKey, t.In(state)), -t.Weight)
		}
	}
	for _, t := range state.TermsSelecting(pod) {
		if !p.readsKind(pod, t.Kind) {
			continue
		}
		owners := cluster.FactSpec{Key: "owners|" + t.OwnerKey, Topology: t.TopologyKey, Owners: t.OwnerKey}
		switch t.Kind {
		case cluster.RequiredAntiAffinity:
			r.add(state, &r.filters, t.TopologyKey, owners, othersAntiAffinity)
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
	if r.ofHostsOnly() {
		return framework.Rules{Group: hostRule{r, r.anyFilter(func(f *counted) bool { return f.Counts(pod) })}}, nil
	}
	return framework.Rules{Group: r}, nil
}

// meeting is the fact of pods that meet all the demands.
func meeting(topology string, demands ...cluster.PodMatch) cluster.FactSpec {
	var b strings.Builder
	b.WriteString("matching|")
	b.WriteString(topology)
	for _, m := range demands {
		b.WriteByte('|')
		if m.Namespaces == nil {
			b.WriteByte('*') // every namespace, not none
		}
		b.WriteString(strings.Join(m.Namespaces, ","))
		b.WriteByte('|')
		b.WriteString(cluster.SelectorText(m.Selector))
	}
	return cluster.FactSpec{Key: b.String(), Topology: topology, Match: demands}
}

// addRequiredAffinity adds one fact for each topology key of the required
// affinity terms. A pod counts for every key if it meets all of the terms, for
// none otherwise.
func (r *rule) addRequiredAffinity(pod *cluster.Pod, state *cluster.State) {
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
		r.add(state, &r.affinity, key, meeting(key, demands...), 0)
	}
}
