// Package dynamicresources stands in for dynamic resource allocation (KEP-4381): it
// rejects pods with resource claims on all nodes, since Berth can't allocate these, so
// that such a pod waits with a clear reason instead of being placed where it can't
// start.
package dynamicresources

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "DynamicResources"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "the pod itself changes"
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, _, group *framework.Signature) {
	group.Bool(len(pod.Object.Spec.ResourceClaims) > 0)
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Object.Spec.ResourceClaims) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{}, &framework.Reason{
		Plugin:   Name,
		Messages: []string{"this version of Berth cannot place pods that use resource claims"},
		Final:    true,
		OfPod:    true,
	}
}
