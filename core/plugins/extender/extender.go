// Package extender makes every pod that an HTTP extender is asked about a class
// of its own: nobody knows what the extender reads of it.
package extender

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is what reasons name.
const Name = "Extender"

// Plugin implements framework.Plugin.
type Plugin struct{ Extenders []framework.Extender }

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// Sign implements framework.Plugin.
func (p Plugin) Sign(pod *cluster.Pod, _ *cluster.State, _, group *framework.Signature) {
	profile := framework.Profile{Extenders: p.Extenders}
	if profile.Consults(pod.Object) {
		group.Str(string(pod.UID))
	}
}

// For implements framework.Plugin: what the extender says isn't a rule.
func (Plugin) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{}, nil
}
