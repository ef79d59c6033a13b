package explain

// This file says which devices a pod has, and what nodes lack of which a plugin can tell more than
// kube-scheduler's message says: what is against the devices of each.

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// DeviceOf is a device that a pod has.
type DeviceOf struct {
	Claim   string `json:"claim"`   // in the pod's namespace
	Request string `json:"request"` // of the claim; with the alternative that was taken
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	// Share tells apart those who have a part of the device each.
	Share string `json:"share,omitempty"`
}

// Detail is what some nodes lack.
type Detail struct {
	Nodes int    `json:"nodes"`
	Group string `json:"group,omitempty"` // the node group that they are in
	Node  string `json:"node"`            // the first of them by name, as an example
	Text  string `json:"text"`
}

// maxDetails is how many details an explanation has.
const maxDetails = 10

// devicesOf returns the devices of the claims that are reserved for a pod.
func (v *View) devicesOf(pod *cluster.Pod) (out []DeviceOf) {
	for _, c := range v.State.ClaimsOf(pod) {
		mine := func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID }
		if c.Status.Allocation == nil || !slices.ContainsFunc(c.Status.ReservedFor, mine) {
			continue
		}
		for i := range c.Status.Allocation.Devices.Results {
			r := &c.Status.Allocation.Devices.Results[i]
			d := DeviceOf{Claim: c.Name, Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device}
			if r.ShareID != nil {
				d.Share = string(*r.ShareID)
			}
			out = append(out, d)
		}
	}
	return out
}

// details returns what the nodes lack that reject a class, those of one group that lack the same together.
func (v *View) details(e *engine.Engine, class *engine.Class) (out []Detail) {
	type key struct{ group, text string }
	at := map[key]int{}
	v.State.Nodes(func(n *cluster.Node) {
		text := e.Detail(class, n.Index)
		if text == "" {
			return
		}
		k := key{n.Group, text}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, Detail{Group: n.Group, Node: n.Name, Text: text})
		}
		out[i].Nodes++
		out[i].Node = min(out[i].Node, n.Name)
	})
	slices.SortFunc(out, func(a, b Detail) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Text, b.Text))
	})
	return out[:min(len(out), maxDetails)]
}
