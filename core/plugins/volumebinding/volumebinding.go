// Package volumebinding keeps a pod to the nodes where its claims are or can be
// bound. Bound claims have a volume whose node affinity says where. Claims of a
// class with volumeBindingMode WaitForFirstConsumer (delayed claims) are bound for
// the node that their pod gets: to an available volume that the node admits, or
// otherwise to one that is provisioned for the node. Assume puts that choice into the
// state, so that the next pod doesn't take the same volume; whoever binds the pod
// writes it to the API before. The plugin may also score nodes by the storage that is
// left there (score.go).
package volumebinding

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "VolumeBinding"

// Plugin implements framework.Plugin. The zero value filters and doesn't score.
type Plugin struct {
	volumes.Reclassifier
	curve framework.Curve // by which nodes are scored; nil when they aren't
}

// NewScoring returns a plugin that also scores nodes, by a shape of at least one point.
func NewScoring(shape []framework.ShapePoint) Plugin {
	return Plugin{curve: framework.NewCurve(shape)}
}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Assumer      = Plugin{}
	_ framework.Reclassifier = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "its claims are bound, or a volume or storage capacity for them is added"
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Claims) == 0 {
		return framework.Rules{}, nil
	}
	c, why := resolve(pod, state)
	if why != "" {
		return framework.Rules{}, volumes.Rejected(Name, why)
	}
	c.readVolumes()
	return framework.Rules{Local: &rule{state, c, p.curve}}, nil
}

// rule implements framework.LocalRule for the pods of one class, by what the
// claims of one of them lead to. A change of the objects that it reads touches the
// nodes that they concern (cluster.State.SetObject).
type rule struct {
	state *cluster.State
	claims
	curve framework.Curve // Plugin.curve
}

// Reads implements framework.LocalRule.
func (*rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule. Pods that leave free no volume, so every
// rejection is final.
func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	f := r.find(r.state, n)
	switch {
	case !f.ok():
		return framework.Final, 0
	case r.curve == nil:
		return framework.OK, 0
	}
	return framework.OK, score(&f, r.curve)
}

// Explain implements framework.LocalRule.
func (r *rule) Explain(n *cluster.Node) *framework.Reason {
	f := r.find(r.state, n)
	return &framework.Reason{Plugin: Name, Messages: f.reasons(), Final: true}
}
