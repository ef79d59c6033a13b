// Package dynamicresources keeps a pod to the nodes where its resource claims have devices, or can get
// some (dynamic resource allocation, KEP-4381), and where its extended resources can be had of a
// DeviceClass if the node's allocatable lacks them (KEP-5004). What can be allocated is for
// core/devices to say, which asks the allocator that kube-scheduler uses; this package says what a pod
// claims (demand.go, extended.go), tells nodes apart by it (rule.go), and takes the devices for a pod
// that gets a node (assume.go).
//
// Pods whose claims ask for the same are one class: of claims without an allocation the content is
// signed, and of others where the devices are.
package dynamicresources

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "DynamicResources"

// DefaultSteps is how many devices may be tried for one pod on one node: what kube-scheduler's default
// filterTimeout of 10 s lets it try on a busy machine.
const DefaultSteps = 10 * StepsPerSecond

// StepsPerSecond is for how many steps a second of filterTimeout stands.
const StepsPerSecond = 5000

// MinSteps is how many steps a filterTimeout stands for at least, which is 20 ms: enough to look at the devices of an
// ordinary node once.
const MinSteps = 100

// Plugin implements framework.Plugin.
type Plugin struct {
	steps    int
	strategy Strategy
	yields   bool
}

// New returns the plugin. For one pod and node the allocator may try so many devices.
func New(steps int) Plugin { return Plugin{steps: steps} }

// Yielding returns the plugin with preemption for devices: pods may preempt others that have devices
// which they need, and the devices that nominated pods will get are kept for them.
func (p Plugin) Yielding() Plugin {
	p.yields = true
	return p
}

// Yields implements framework.Yielder.
func (p Plugin) Yields() bool { return p.yields }

// With returns the plugin with a strategy.
func (p Plugin) With(s Strategy) Plugin {
	p.strategy = s
	return p
}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Yielder      = Plugin{}
	_ framework.Claimer      = Plugin{}
	_ framework.PreEnqueuer  = Plugin{}
	_ framework.Reclassifier = Plugin{}
	_ framework.Packer       = Plugin{}
	_ framework.PartsNeeder  = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// NeedsParts implements framework.PartsNeeder.
func (Plugin) NeedsParts() cluster.NodeParts { return cluster.Devices }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a claim of it changes, a device is published or becomes free, or its device class is added"
}

// Sign implements framework.Plugin. Of most pods, which claim nothing, it signs nothing locally, unless
// they are scored by what they take of nodes with devices.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, group *framework.Signature) {
	claims := state.ClaimsDevices(pod)
	group.Bool(claims)
	if claims {
		d := demandOf(pod, state)
		d.sign(state, local)
		group.Str(d.problem)
		if p.yields {
			d.signShared(group)
		}
	}
	if p.strategy == LeastFragmentation {
		local.Int(pod.Request.At(cluster.CPU))
		local.Int(pod.Request.At(cluster.Memory))
	}
}

// PreEnqueue implements framework.PreEnqueuer: a pod whose claims aren't all there isn't tried.
func (Plugin) PreEnqueue(pod *cluster.Pod, state *cluster.State) *framework.Reason {
	if _, problem := claimsOf(pod, state); problem != "" {
		return &framework.Reason{Plugin: Name, Messages: []string{problem}, Final: true}
	}
	return nil
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	keep := p.keeperFor(pod, state)
	if !state.ClaimsDevices(pod) {
		return keep.alone(), nil
	}
	d := demandOf(pod, state)
	switch {
	case d.problem != "":
		return framework.Rules{}, &framework.Reason{Plugin: Name, Messages: []string{d.problem}, Final: true, OfPod: true}
	case d.empty():
		return keep.alone(), nil
	}
	r := newRule(d, state, p, keep)
	out := framework.Rules{Local: r}
	if len(d.had) == 0 && !d.named {
		out.Local = ownRule{r}
	}
	if d.scores() {
		out.Group = alternatives{rule: r}
	}
	return out, nil
}

// Reclassifies implements framework.Reclassifier:
//
//	what changed    whose signature may change
//	a claim         pods that use it, or that it was made for
//	a device class  all that claim devices: they may name it, or request its resource
func (Plugin) Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool {
	if c.Op != cluster.ObjectSet {
		return nil
	}
	switch o := c.Object.One().(type) {
	case *resourcev1.ResourceClaim:
		return func(p *cluster.Pod) bool { return uses(p, o) }
	case *resourcev1.DeviceClass:
		return func(p *cluster.Pod) bool {
			return len(p.Object.Spec.ResourceClaims) > 0 || slices.ContainsFunc(extendedOf(p), func(id cluster.ResourceID) bool {
				return o.Spec.ExtendedResourceName == nil || string(id.Name()) == *o.Spec.ExtendedResourceName || isImplicit(id)
			})
		}
	}
	return nil
}
