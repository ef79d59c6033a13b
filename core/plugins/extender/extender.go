// Package extender makes every pod that an HTTP extender filters or scores a class of
// its own: nobody knows what the extender reads of a pod. The calls are made at the
// edge, and their answers aren't rules. The plugin is part of profiles that have
// extenders, and has no counterpart in kube-scheduler.
package extender

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name.
const Name = "Extender"

// Plugin implements framework.Plugin.
type Plugin struct{ Extenders []framework.Extender }

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// Sign implements framework.Plugin: the UID of a pod that an extender is asked about.
func (p Plugin) Sign(pod *cluster.Pod, _ *cluster.State, _, group *framework.Signature) {
	profile := framework.Profile{Extenders: p.Extenders}
	if profile.Consults(pod.Object) {
		group.Str(string(pod.UID))
	}
}

// For implements framework.Plugin: there are no rules.
func (Plugin) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{}, nil
}
