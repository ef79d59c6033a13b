// Package nodeaffinity keeps a pod to the nodes that its nodeSelector and required
// node affinity select, which is a local rule, and prefers those of its preferred
// terms: a node's raw score is the sum of the weights of the terms that it meets, and
// a group rule normalises it. Other plugins that depend on the same fields sign them
// with SignRequired and SignSelector.
package nodeaffinity

import (
	"fmt"
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
	return "a node has the labels that it asks for"
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

// Restricts tells whether the pod has a nodeSelector or required node affinity.
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
		rules.Local = &required{p.added, nodeaffinity.GetRequiredNodeAffinity(pod.Object), names}
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
// to: within a term all of them must agree, terms are alternatives. named is false
// when some term leaves the name open. It is PreFilter of kube-scheduler 1.36.
func namedNodes(sel *v1.NodeSelector) (names map[string]bool, named bool) {
	if sel == nil || len(sel.NodeSelectorTerms) == 0 {
		return nil, false
	}
	names = map[string]bool{}
	for i := range sel.NodeSelectorTerms {
		var term map[string]bool
		for _, r := range sel.NodeSelectorTerms[i].MatchFields {
			if r.Key != metav1.ObjectNameField || r.Operator != v1.NodeSelectorOpIn {
				continue
			}
			both := map[string]bool{}
			for _, v := range r.Values {
				if term == nil || term[v] {
					both[v] = true
				}
			}
			term = both
		}
		if term == nil {
			return nil, false
		}
		maps.Copy(names, term)
	}
	return names, true
}

// required implements framework.LocalRule for the pods of one class.
type required struct {
	added    *nodeaffinity.NodeSelector // of the profile, or nil
	affinity nodeaffinity.RequiredNodeAffinity
	names    map[string]bool // see namedNodes; nil when some term leaves the name open
}

// Reads implements framework.LocalRule.
func (*required) Reads() framework.Aspects { return framework.ReadsObject }

// Narrows implements framework.Narrower.
func (r *required) Narrows(n *cluster.NodeInfo) bool { return r.names != nil && !r.names[n.Name] }

// EvalNode implements framework.LocalRule.
func (r *required) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if r.Narrows(n.NodeInfo) || !r.meetsAdded(n) {
		return framework.Final, 0
	}
	// As in kube-scheduler, terms that can't be read count for nothing, and the node
	// may meet another one.
	if ok, _ := r.affinity.Match(n.Object); !ok {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// meetsAdded tells whether the node meets what the profile requires.
func (r *required) meetsAdded(n *cluster.Node) bool { return r.added == nil || r.added.Match(n.Object) }

// Explain implements framework.LocalRule. Nodes that names leave out come first: the
// engine tells their reason before any other rule's.
func (r *required) Explain(n *cluster.Node) *framework.Reason {
	msg := "node(s) didn't match Pod's node affinity/selector"
	if !r.meetsAdded(n) {
		msg = "node(s) didn't match scheduler-enforced node affinity"
	}
	if r.Narrows(n.NodeInfo) {
		msg = fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", Name)
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
func (p *preferred) StaticKey(n *cluster.NodeInfo) int32 {
	score := p.terms.Score(n.Object)
	if p.added != nil {
		score += p.added.Score(n.Object)
	}
	return int32(score)
}

// Explain is never asked: preferences reject nothing.
func (p *preferred) Explain(*framework.Groups, int) *framework.Reason { return nil }
