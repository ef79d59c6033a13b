package scaledown_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has what histories of clusters with devices have more: nodes have devices of their own, and
// there are some that all nodes can use. Pods have claims of their own, and share others.

// allocator takes devices in the primary as a scheduler would.
var allocator = dynamicresources.New(dynamicresources.DefaultSteps)

// furnishDevices draws whether the history is about devices.
func (h *history) furnishDevices() {
	if h.devices = testkit.Uniform(h.t, 3, "about devices") == 0; !h.devices {
		return
	}
	h.State.SetObject(testkit.DeviceClass("gpus", "example.com/gpu", `device.driver == "gpu.example"`))
	h.State.SetObject(testkit.DeviceClass("nics", "", `device.driver == "nic.example"`))
	h.State.SetObject(testkit.ResourceSlice("fabric", "nic.example", "fabric").Everywhere().Devices(testkit.NamedDevices("a", "b")...).Obj())
	for _, name := range h.Nodes {
		h.publish(name)
	}
	for i := range 3 {
		h.State.SetObject(testkit.ResourceClaim(fmt.Sprint("shared", i), h.request()).Obj())
	}
}

// publish sets the devices of a node.
func (h *history) publish(node string) {
	slice := testkit.NodeSlice("gpu.example", node).Devices(testkit.NamedDevices("g0", "g1", "g2")[:1+testkit.Uniform(h.t, 3, "devices")]...)
	h.log = append(h.log, fmt.Sprintf("%s has %d devices", node, len(slice.Spec.Devices)))
	h.State.SetObject(slice.Obj())
}

func (h *history) request() *testkit.RequestBuilder {
	return testkit.Request("r", []string{"gpus", "gpus", "nics"}[testkit.Uniform(h.t, 3, "class")])
}

// claims gives a pod that is to be placed claims, of its own or shared ones, or an extended resource.
func (h *history) claims(p *testkit.PodBuilder) {
	if !h.devices {
		return
	}
	switch testkit.Uniform(h.t, 6, "claims") {
	case 0, 1:
		h.State.SetObject(testkit.ResourceClaim(p.Name+"-own", h.request()).MadeFor(p.Name).Obj())
		p.TemplateClaim("own", p.Name+"-own")
	case 2:
		p.Claims(fmt.Sprint("shared", testkit.Uniform(h.t, 3, "which")))
	case 3:
		p.Req("example.com/gpu", "1")
	}
}

// allocate takes the devices for a pod that was placed. A pod for which there are none goes again.
func (h *history) allocate(pod *cluster.Pod, node string) {
	n := h.State.NodeByName(node)
	switch {
	case !h.devices:
		return
	case n == nil: // and nobody knows what it has
		h.end(pod)
		return
	}
	allocator.Assume(pod, n, h.State)
	for _, c := range h.State.ClaimsOf(pod) {
		if !h.hasDevices(c, pod, n) {
			h.log = append(h.log, "no devices for it")
			h.end(pod)
			return
		}
	}
}

// hasDevices reports whether a pod may use the devices of a claim on a node.
func (h *history) hasDevices(c *resourcev1.ResourceClaim, pod *cluster.Pod, n *cluster.Node) bool {
	a := c.Status.Allocation
	if a == nil {
		return false
	}
	return a.NodeSelector == nil || a.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] == n.Name
}

// end removes a pod with what it has.
func (h *history) end(pod *cluster.Pod) {
	h.log = append(h.log, fmt.Sprintf("pod %s has ended", pod.UID))
	h.State.Remove(pod.UID)
	leave(h.State, pod)
	h.State.RemoveObject(cluster.ResourceClaimKind, "default", pod.Object.Name+"-own")
}

// changeDevices changes a node's devices, or one of its pods ends.
func (h *history) changeDevices(node string) {
	n := h.State.NodeByName(node)
	if n != nil && len(n.Pods) > 0 && testkit.Uniform(h.t, 2, "a pod") == 0 {
		h.end(n.Pods[testkit.Uniform(h.t, len(n.Pods), "whose end")])
		return
	}
	h.publish(node)
}

// leave gives back what a pod has, as the controller does when it has ended: the slow twin of Release.
func leave(state *cluster.State, pod *cluster.Pod) {
	for _, o := range state.Objects() {
		c, ok := o.(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		var left []resourcev1.ResourceClaimConsumerReference
		for _, r := range c.Status.ReservedFor {
			if r.UID != pod.UID {
				left = append(left, r)
			}
		}
		if len(left) == len(c.Status.ReservedFor) {
			continue
		}
		if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			state.RemoveObject(cluster.ResourceClaimKind, c.Namespace, c.Name)
			continue
		}
		out := c.DeepCopy()
		if out.Status.ReservedFor = left; len(left) == 0 {
			out.Status.Allocation = nil
		}
		state.SetObject(out)
	}
}

// devicesTakenOnce checks that no device has two claims where pods have moved, and that pods have the
// devices that they claim on their nodes.
func (h *history) devicesTakenOnce() {
	world, taken := h.sim.World(), map[string]string{}
	for _, o := range world.Objects() {
		c, ok := o.(*resourcev1.ResourceClaim)
		if !ok || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			at := r.Pool + "/" + r.Device
			if taken[at] != "" {
				h.fail("device %s has been given to %s and to %s", at, taken[at], c.Name)
			}
			taken[at] = c.Name
		}
	}
	world.Pods(func(p *cluster.Pod) {
		if len(p.Object.Spec.ResourceClaims) == 0 {
			return
		}
		for _, c := range world.ClaimsOf(p) {
			n := world.NodeOf(p.UID)
			if n != nil && !h.hasDevices(c, p, n) {
				h.fail("pod %s on %s can't use the devices of its claim %s", p.Name(), n.Name, c.Name)
			}
		}
	})
}

// pending returns a pod without a node, which may have claims.
func (h *history) pending(name string) *cluster.Pod {
	p := testkit.Pod(name).Req("cpu", "1")
	p.UID = types.UID("pod-" + name)
	h.claims(p)
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	return h.State.Schema.ParsePod(p.Obj())
}
