// Package tainttoleration keeps pods off nodes with NoSchedule and NoExecute taints
// that they don't tolerate, which is a local rule, and prefers nodes with fewer
// PreferNoSchedule taints that they don't tolerate: their number is a node's raw
// score, and a group rule normalises it. Other plugins ask Tolerated.
package tainttoleration

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "TaintToleration"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a node loses the taints that it does not tolerate, or a node without them is added"
}

// Sign implements framework.Plugin. tolerationSeconds counts once the pod runs.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Int(int64(len(pod.Object.Spec.Tolerations)))
	for i := range pod.Object.Spec.Tolerations {
		t := &pod.Object.Spec.Tolerations[i]
		local.Str(t.Key)
		local.Str(string(t.Operator))
		local.Str(t.Value)
		local.Str(string(t.Effect))
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	r := &rule{all: pod.Object.Spec.Tolerations}
	for _, t := range r.all { // the others tolerate no PreferNoSchedule taint
		if t.Effect == "" || t.Effect == v1.TaintEffectPreferNoSchedule {
			r.prefer = append(r.prefer, t)
		}
	}
	return framework.Rules{Local: r, Group: prefer{framework.StaticScore{Reverse: true}, r}}, nil
}

// rule implements framework.LocalRule for the pods of one class.
type rule struct {
	all    []v1.Toleration // of the pod
	prefer []v1.Toleration // those of them that may tolerate PreferNoSchedule taints
}

// Reads implements framework.LocalRule.
func (*rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule. NoExecute counts like NoSchedule: the pod would be
// evicted, at once or after its tolerationSeconds (Filter of kube-scheduler's TaintToleration).
func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if !n.Tainted {
		return framework.OK, 0
	}
	for i := range n.Taints {
		t := &n.Taints[i]
		if t.Effect != v1.TaintEffectNoSchedule && t.Effect != v1.TaintEffectNoExecute {
			continue
		}
		if !Tolerated(r.all, t) {
			return framework.Final, 0
		}
	}
	return framework.OK, 0
}

// EvalNodes implements framework.ManyNodesRule.
func (r *rule) EvalNodes(nodes []*cluster.Node, _ int32, _ []int32, rejected []bool) {
	for i, n := range nodes {
		if n.Tainted && !rejected[i] {
			code, _ := r.EvalNode(n)
			rejected[i] = code != framework.OK
		}
	}
}

// Explain implements framework.LocalRule.
func (*rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) had untolerated taint(s)"}, Final: true}
}

// prefer implements framework.GroupRule for the pods of one class: the node with the
// most untolerated taints scores 0, one without any 100.
type prefer struct {
	framework.StaticScore
	*rule
}

// StaticKey implements framework.GroupRule: how many PreferNoSchedule taints of the
// node the pod doesn't tolerate.
func (p prefer) StaticKey(n *cluster.NodeBasics) int32 {
	if !n.Tainted {
		return 0
	}
	var untolerated int32
	for i := range n.Taints {
		t := &n.Taints[i]
		if t.Effect == v1.TaintEffectPreferNoSchedule && !Tolerated(p.rule.prefer, t) {
			untolerated++
		}
	}
	return untolerated
}

// StaticKeys implements framework.ManyStaticKeys.
func (p prefer) StaticKeys(nodes []*cluster.Node, out []int32) {
	for i, n := range nodes {
		if out[i] = 0; n.Tainted {
			out[i] = p.StaticKey(&n.NodeBasics)
		}
	}
}

// Explain is never asked: preferences reject nothing.
func (p prefer) Explain(*framework.Groups, int) *framework.Reason { return nil }

// Tolerated reports whether one of the tolerations tolerates the taint, as v1.Toleration
// documents it: an empty effect is every effect, an empty key with Exists every key.
// The operators Lt and Gt are behind a feature gate that is off in 1.36 and 1.37
// (TaintTolerationComparisonOperators), and tolerate nothing.
func Tolerated(tolerations []v1.Toleration, taint *v1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case "", v1.TolerationOpEqual:
			if t.Value == taint.Value {
				return true
			}
		case v1.TolerationOpExists:
			return true
		}
	}
	return false
}
