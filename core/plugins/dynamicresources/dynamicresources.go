// Package dynamicresources stands in for dynamic resource allocation (KEP-4381): Berth can't allocate
// devices, so a pod that needs some waits with a reason that says so, instead of being placed where it
// can't start. It rejects a pod with resource claims on all nodes, and a pod that requests an extended
// resource which a DeviceClass backs (KEP-5004) on the nodes whose allocatable lacks that resource;
// where a device plugin offers it, NodeResourcesFit counts it as any other.
package dynamicresources

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

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
	return "a node has the resource in its allocatable"
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, group *framework.Signature) {
	for id := range pod.Request.All() {
		if id.Scalar() {
			local.Str(string(id.Name()))
		}
	}
	group.Bool(len(pod.Object.Spec.ResourceClaims) > 0)
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Object.Spec.ResourceClaims) > 0 {
		return framework.Rules{}, &framework.Reason{
			Plugin:   Name,
			Messages: []string{"this version of Berth cannot place pods that use resource claims"},
			Final:    true,
			OfPod:    true,
		}
	}
	r := &rule{state: state}
	for id := range pod.Request.All() {
		if id.Scalar() {
			r.resources = append(r.resources, id)
		}
	}
	if r.resources == nil {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: r}, nil
}

// rule implements framework.LocalRule for pods that request these scalar resources. What it says
// changes when a DeviceClass does, which touches every node.
type rule struct {
	state     *cluster.State
	resources []cluster.ResourceID
}

// Reads implements framework.LocalRule.
func (*rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	for _, id := range r.resources {
		if r.needsDevices(n, id) {
			return framework.Final, 0
		}
	}
	return framework.OK, 0
}

// needsDevices reports whether a node could provide a resource only by devices of a DeviceClass.
func (r *rule) needsDevices(n *cluster.Node, id cluster.ResourceID) bool {
	return r.state.DeviceClassOf(id.Name()) != nil && n.Allocatable.At(id) <= 0 // few clusters have any such class
}

// Explain implements framework.LocalRule: a message for each such resource.
func (r *rule) Explain(n *cluster.Node) *framework.Reason {
	out := &framework.Reason{Plugin: Name, Final: true}
	for _, id := range r.resources {
		if r.needsDevices(n, id) {
			out.Messages = append(out.Messages, message(id.Name(), r.state.DeviceClassOf(id.Name()).Name))
		}
	}
	return out
}

// message says that a resource can't be had by devices of a class.
func message(resource v1.ResourceName, class string) string {
	return fmt.Sprintf("this version of Berth cannot allocate devices of DeviceClass %s for %s", class, resource)
}
