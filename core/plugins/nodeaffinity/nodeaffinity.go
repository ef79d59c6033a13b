// Package nodeaffinity keeps a pod to the nodes that its nodeSelector and
// required node affinity select, and prefers those of its preferred terms.
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
	added          *nodeaffinity.NodeSelector // what every pod is required to be on besides
	addedPreferred *nodeaffinity.PreferredSchedulingTerms
}

// New returns the plugin with an affinity that every pod of the profile has
// besides its own (NodeAffinityArgs.addedAffinity), nil for none. What of it
// doesn't parse is left out; the configuration lets nothing such in.
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

// Sign implements framework.Plugin.
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
	for _, k := range slices.Sorted(maps.Keys(selector)) {
		sig.Str(k)
		sig.Str(selector[k])
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

func requiredSelector(pod *cluster.Pod) *v1.NodeSelector {
	if a := pod.Object.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func preferredTerms(pod *cluster.Pod) []v1.PreferredSchedulingTerm {
	if a := pod.Object.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// Restricts tells whether the pod's required affinity leaves out any node.
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
		// A term that doesn't parse can't come through the API server; the
		// others still count.
		if parsed, err := nodeaffinity.NewPreferredSchedulingTerms(terms); err == nil {
			rules.Group = &preferred{terms: parsed, added: p.addedPreferred}
		}
	}
	return rules, nil
}

// namedNodes returns the nodes that metadata.name terms narrow the pod to;
// named is false when some term leaves the name open.
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

type required struct {
	added    *nodeaffinity.NodeSelector
	affinity nodeaffinity.RequiredNodeAffinity
	names    map[string]bool // nil when names don't matter
}

func (*required) Reads() framework.Aspects { return framework.ReadsObject }

// Narrows implements framework.Narrower.
func (r *required) Narrows(n *cluster.NodeInfo) bool { return r.names != nil && !r.names[n.Name] }

func (r *required) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if r.Narrows(n.NodeInfo) {
		return framework.Final, 0
	}
	if !r.admits(n) {
		return framework.Final, 0
	}
	// As upstream, a selector that doesn't parse matches what it says to.
	if ok, _ := r.affinity.Match(n.Object); !ok {
		return framework.Final, 0
	}
	return framework.OK, 0
}

func (r *required) admits(n *cluster.Node) bool {
	if r.added == nil {
		return true
	}
	return r.added.Match(n.Object)
}

func (r *required) Explain(n *cluster.Node) *framework.Reason {
	msg := "node(s) didn't match Pod's node affinity/selector"
	if !r.admits(n) {
		msg = "node(s) didn't match scheduler-enforced node affinity"
	}
	if r.Narrows(n.NodeInfo) {
		msg = fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", Name)
	}
	return &framework.Reason{Plugin: Name, Messages: []string{msg}, Final: true}
}

// preferred sums the weights of the matching terms.
type preferred struct {
	framework.StaticScore
	terms *nodeaffinity.PreferredSchedulingTerms
	added *nodeaffinity.PreferredSchedulingTerms
}

func (p *preferred) StaticKey(n *cluster.NodeInfo) int32 {
	score := p.terms.Score(n.Object)
	if p.added != nil {
		score += p.added.Score(n.Object)
	}
	return int32(score)
}

// Explain is never asked: the group part rejects nothing.
func (p *preferred) Explain(*framework.Groups, int) *framework.Reason { return nil }
