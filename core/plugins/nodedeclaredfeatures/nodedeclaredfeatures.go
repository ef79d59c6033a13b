// Package nodedeclaredfeatures keeps a pod off nodes whose kubelet doesn't declare the
// features that the pod needs (status.declaredFeatures, KEP-5328). Which fields of a
// pod need which feature is said by k8s.io/component-helpers.
package nodedeclaredfeatures

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeDeclaredFeatures"

// target is the version whose rules Berth follows: features that every node of
// it has needn't be declared.
var target = version.MajorMinor(1, 36)

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a node declares the features that it requires"
}

// needs returns the names of the features that the pod needs, sorted.
func needs(pod *cluster.Pod) []string {
	set, err := ndf.DefaultFramework.InferForPodScheduling(&types.PodInfo{Spec: &pod.Object.Spec}, target)
	if err != nil || set.IsEmpty() { // the error is for a missing version
		return nil
	}
	names, err := ndf.DefaultFramework.Unmap(set)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Str(strings.Join(needs(pod), ","))
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	list := needs(pod)
	if len(list) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: rule(list)}, nil
}

// rule implements framework.LocalRule for pods that need these features.
type rule []string

// Reads implements framework.LocalRule.
func (rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (r rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	for _, f := range r {
		if !slices.Contains(n.Features, f) {
			return framework.Final, 0
		}
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match Pod's required features"}, Final: true}
}
