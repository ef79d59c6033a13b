package nodefilters

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// NodeDeclaredFeatures is the name of ByFeatures in kube-scheduler configuration.
const NodeDeclaredFeatures = "NodeDeclaredFeatures"

// target is the version whose rules Berth follows: features that every node of
// it has needn't be declared.
var target = version.MajorMinor(1, 36)

// ByFeatures keeps a pod off nodes whose kubelet doesn't declare the
// features that the pod needs (status.declaredFeatures, KEP-5328). Which fields of a
// pod need which feature is said by k8s.io/component-helpers.
type ByFeatures struct{}

var _ framework.Plugin = ByFeatures{}

// Name implements framework.Plugin.
func (ByFeatures) Name() string { return NodeDeclaredFeatures }

// WakesWhen implements framework.Waker.
func (ByFeatures) WakesWhen() string {
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
func (ByFeatures) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Str(strings.Join(needs(pod), ","))
}

// For implements framework.Plugin.
func (ByFeatures) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	list := needs(pod)
	if len(list) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: declares(list)}, nil
}

// declares implements framework.LocalRule for pods that need these features.
type declares []string

// Reads implements framework.LocalRule.
func (declares) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (r declares) EvalNode(n *cluster.Node) (framework.Code, int64) {
	for _, f := range r {
		if !slices.Contains(n.Features, f) {
			return framework.Final, 0
		}
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (declares) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: NodeDeclaredFeatures, Messages: []string{"node(s) didn't match Pod's required features"}, Final: true}
}
