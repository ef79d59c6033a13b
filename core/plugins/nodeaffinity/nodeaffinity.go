// Package nodeaffinity keeps a pod to the nodes that its nodeSelector and required
// node affinity select, which is a local rule, and prefers those of its preferred
// terms: a node's raw score is the sum of the weights of the terms that it meets, and
// a group rule normalises it. Other plugins that depend on the same fields sign them
// with SignRequired and SignSelector.
package nodeaffinity

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeAffinity"

// Plugin implements framework.Plugin.
type Plugin struct {
	// What every pod of the profile requires and prefers besides its own; nil for
	// nothing.
	added          *nodeaffinity.NodeSelector
	addedPreferred *nodeaffinity.PreferredSchedulingTerms
}

// New returns the plugin with an affinity that every pod of the profile has
// besides its own (NodeAffinityArgs.addedAffinity), nil for none. What of it
// can't be read is left out; whoever reads the configuration refuses it.
func New(added *v1.NodeAffinity) Plugin {
	var p Plugin
	if added == nil {
		return p
	}
	if s := added.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
		p.added, _ = nodeaffinity.NewNodeSelector(s)
	}
	if terms := added.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		p.addedPreferred, _ = nodeaffinity.NewPreferredSchedulingTerms(terms)
	}
	return p
}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a node gets the labels that it requires"
}

// Sign implements framework.Plugin. The added affinity is the same for all pods of the
// profile.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	SignRequired(pod, local)
	terms := preferredTerms(pod)
	local.Int(int64(len(terms)))
	for i := range terms {
		local.Int(int64(terms[i].Weight))
		signTerm(&terms[i].Preference, local)
	}
}

// SignRequired signs what decides which nodes a pod is required to be on.
func SignRequired(pod *cluster.Pod, sig *framework.Signature) {
	selector := pod.Object.Spec.NodeSelector
	sig.Int(int64(len(selector)))
	if len(selector) > 0 { // sorting nothing allocates
		for _, k := range slices.Sorted(maps.Keys(selector)) {
			sig.Str(k)
			sig.Str(selector[k])
		}
	}
	required := requiredSelector(pod)
	sig.Bool(required != nil)
	if required == nil {
		return
	}
	SignSelector(required, sig)
}

// SignSelector signs a node selector.
func SignSelector(s *v1.NodeSelector, sig *framework.Signature) {
	sig.Int(int64(len(s.NodeSelectorTerms)))
	for i := range s.NodeSelectorTerms {
		signTerm(&s.NodeSelectorTerms[i], sig)
	}
}

func signTerm(t *v1.NodeSelectorTerm, sig *framework.Signature) {
	for _, list := range [][]v1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		sig.Int(int64(len(list)))
		for i := range list {
			sig.Str(list[i].Key)
			sig.Str(string(list[i].Operator))
			sig.Int(int64(len(list[i].Values)))
			for _, v := range list[i].Values {
				sig.Str(v)
			}
		}
	}
}

// requiredSelector returns the pod's required node affinity, or nil.
func requiredSelector(pod *cluster.Pod) *v1.NodeSelector {
	if a := pod.Object.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// preferredTerms returns the terms of the pod's preferred node affinity.
func preferredTerms(pod *cluster.Pod) []v1.PreferredSchedulingTerm {
	if a := pod.Object.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// Restricts reports whether the pod has a nodeSelector or required node affinity.
func Restricts(pod *cluster.Pod) bool {
	return len(pod.Object.Spec.NodeSelector) > 0 || requiredSelector(pod) != nil
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	var rules framework.Rules
	if Restricts(pod) || p.added != nil {
		names, named := namedNodes(requiredSelector(pod))
		if named && len(names) == 0 {
			return rules, &framework.Reason{Plugin: Name, Messages: []string{"pod affinity terms conflict"}, Final: true, OfPod: true}
		}
		rules.Local = newRequired(pod, p.added, names)
	}
	if terms := preferredTerms(pod); len(terms) > 0 || p.addedPreferred != nil {
		// With a term that can't be read nothing is scored; the API server lets no such
		// pod in.
		if parsed, err := nodeaffinity.NewPreferredSchedulingTerms(terms); err == nil {
			rules.Group = &preferred{terms: parsed, added: p.addedPreferred}
		}
	}
	return rules, nil
}

// namedNodes returns the nodes that terms with "metadata.name In …" narrow the pod
// to, sorted: within a term all of them must agree, terms are alternatives. named is false
// when some term leaves the name open. It is PreFilter of kube-scheduler.
func namedNodes(sel *v1.NodeSelector) (names []string, named bool) {
	if sel == nil || len(sel.NodeSelectorTerms) == 0 {
		return nil, false
	}
	names = []string{}
	for i := range sel.NodeSelectorTerms {
		from, open := len(names), true
		for _, r := range sel.NodeSelectorTerms[i].MatchFields {
			switch {
			case r.Key != metav1.ObjectNameField || r.Operator != v1.NodeSelectorOpIn:
			case open:
				names, open = append(names, r.Values...), false
			default:
				both := slices.DeleteFunc(names[from:], func(name string) bool { return !slices.Contains(r.Values, name) })
				names = names[:from+len(both)]
			}
		}
		if open {
			return nil, false
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// required implements framework.LocalRule for the pods of one class.
type required struct {
	added    *nodeaffinity.NodeSelector         // of the profile, or nil
	affinity *nodeaffinity.RequiredNodeAffinity // nil when the pod requires no more than the names
	names    []string                           // see namedNodes; nil when some term leaves the name open
}

// newRequired returns the rule of a pod; names are those of namedNodes.
func newRequired(pod *cluster.Pod, added *nodeaffinity.NodeSelector, names []string) *required {
	r := &required{added: added, names: names}
	if !requiresOnlyNames(pod) {
		affinity := nodeaffinity.GetRequiredNodeAffinity(pod.Object)
		r.affinity = &affinity
	}
	return r
}

// requiresOnlyNames reports whether the pod requires nothing of its node but the name, as pods of
// most DaemonSets do: each term has one name and nothing else.
func requiresOnlyNames(pod *cluster.Pod) bool {
	required := requiredSelector(pod)
	if len(pod.Object.Spec.NodeSelector) > 0 || required == nil || len(required.NodeSelectorTerms) == 0 {
		return false
	}
	for i := range required.NodeSelectorTerms {
		t := &required.NodeSelectorTerms[i]
		if len(t.MatchExpressions) > 0 || len(t.MatchFields) != 1 {
			return false
		}
		if f := &t.MatchFields[0]; f.Key != metav1.ObjectNameField || f.Operator != v1.NodeSelectorOpIn || len(f.Values) != 1 {
			return false
		}
	}
	return true
}

// Reads implements framework.LocalRule.
func (*required) Reads() framework.Aspects { return framework.ReadsObject }

// NarrowsTo implements framework.Narrower.
func (r *required) NarrowsTo() []string { return r.names }

// leavesOut reports whether the node isn't among those that the terms name.
func (r *required) leavesOut(n *cluster.Node) bool {
	if r.names == nil {
		return false
	}
	_, named := slices.BinarySearch(r.names, n.Name)
	return !named
}

// EvalNode implements framework.LocalRule.
func (r *required) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if r.leavesOut(n) || !r.meetsAdded(n) {
		return framework.Final, 0
	}
	if r.affinity == nil {
		return framework.OK, 0
	}
	// As in kube-scheduler, terms that can't be read count for nothing, and the node
	// may meet another one.
	if ok, _ := r.affinity.Match(n.Object); !ok {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// meetsAdded reports whether the node meets what the profile requires.
func (r *required) meetsAdded(n *cluster.Node) bool { return r.added == nil || r.added.Match(n.Object) }

// Explain implements framework.LocalRule. Of nodes that names leave out the engine says why.
func (r *required) Explain(n *cluster.Node) *framework.Reason {
	msg := "node(s) didn't match Pod's node affinity/selector"
	if !r.meetsAdded(n) {
		msg = "node(s) didn't match scheduler-enforced node affinity"
	}
	return &framework.Reason{Plugin: Name, Messages: []string{msg}, Final: true}
}

// preferred implements framework.GroupRule for the pods of one class.
type preferred struct {
	framework.StaticScore
	terms *nodeaffinity.PreferredSchedulingTerms
	added *nodeaffinity.PreferredSchedulingTerms // of the profile, or nil
}

// StaticKey implements framework.GroupRule: the sum of the weights of the terms that
// the node meets.
func (p *preferred) StaticKey(n *cluster.NodeBasics) int32 {
	score := p.terms.Score(n.Object)
	if p.added != nil {
		score += p.added.Score(n.Object)
	}
	return int32(score)
}

// Explain is never asked: preferences reject nothing.
func (p *preferred) Explain(*framework.Groups, int) *framework.Reason { return nil }
