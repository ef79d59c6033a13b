// Package unsupported refuses pods that ask for what no rule of Berth judges
// yet, so that such a pod waits with a clear reason instead of being placed
// wrongly. It goes when the last of them is judged.
package unsupported

import (
	"strings"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
)

// Name is what reasons name.
const Name = "Unsupported"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// needs returns what of the pod can't be judged, "" for nothing.
func needs(pod *cluster.Pod) string {
	var out []string
	spec := &pod.Object.Spec
	if len(spec.ResourceClaims) > 0 {
		out = append(out, "resource claims")
	}
	return strings.Join(out, ", ")
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, _, group *framework.Signature) {
	group.Str(needs(pod))
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	what := needs(pod)
	if what == "" {
		return framework.Rules{}, nil
	}
	return framework.Rules{}, &framework.Reason{
		Plugin:   Name,
		Messages: []string{"this version of Berth cannot place pods that use " + what},
		Final:    true,
		OfPod:    true,
	}
}
