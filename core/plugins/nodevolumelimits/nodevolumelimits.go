// Package nodevolumelimits keeps nodes from having more volumes of a CSI driver than
// the driver says it can attach there (CSINode, KEP-554).
//
// What is attached to a node is counted in disks (cluster.Disk): those of its pods,
// each once, and those that are attached according to a VolumeAttachment though no pod
// has them any more. A disk that one of the node's pods has already takes no further
// place.
//
// The plugin may also keep pods off nodes where the driver of a disk isn't installed, if its
// CSIDriver demands that (KEP-5030).
package nodevolumelimits

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/volumes"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeVolumeLimits"

// Plugin implements framework.Plugin. The zero value knows limits only.
type Plugin struct {
	volumes.Reclassifier
	// NeedsDrivers says that a node without the CSI driver of a disk is rejected if the CSIDriver has
	// preventPodSchedulingIfMissing.
	NeedsDrivers bool
}

var (
	_ framework.Plugin       = Plugin{}
	_ framework.Reclassifier = Plugin{}
	_ framework.PartsNeeder  = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (p Plugin) WakesWhen() string {
	if p.NeedsDrivers {
		return "a node can attach more volumes: a pod with volumes is deleted, a limit is raised, or a CSI driver is installed"
	}
	return "a node can attach more volumes: a pod with volumes is deleted, or a limit is raised"
}

// NeedsParts implements framework.PartsNeeder.
func (p Plugin) NeedsParts() cluster.NodeParts {
	if p.NeedsDrivers {
		return cluster.CSIDrivers
	}
	return 0
}

// disk is one that the pod needs.
type disk struct {
	cluster.Disk
	// mayBeThere says that the disk may be on some node already: another pod uses the
	// claim, or has the disk otherwise. The name of any other disk says nothing,
	// and isn't signed, so that the pods of a StatefulSet are one class.
	mayBeThere bool
	// inTree says that only volumes of an in-tree plugin are the disk. They count as the driver's on
	// nodes with a CSINode.
	inTree bool
}

// disksOf returns the disks that the pod needs, each once. why is kube-scheduler's
// message of Filter when they aren't known, "" otherwise.
func disksOf(pod *cluster.Pod, state *cluster.State) (out []disk, why string) {
	add := func(d disk) {
		if i := slices.IndexFunc(out, func(o disk) bool { return o.Disk == d.Disk }); i >= 0 {
			out[i].inTree = out[i].inTree && d.inTree
			return
		}
		out = append(out, d)
	}
	for _, ref := range pod.Claims {
		claim := state.Claim(pod.Object.Namespace, ref.Name)
		if claim == nil {
			return nil, fmt.Sprintf("looking up PVC %s/%s: %s", pod.Object.Namespace, ref.Name, volumes.ClaimNotFound(ref.Name))
		}
		if ref.Ephemeral {
			if err := volumes.CheckOwner(pod, claim); err != nil {
				return nil, err.Error()
			}
		}
		d, ok := volumes.DiskOf(claim, state)
		if !ok {
			continue
		}
		mayBeThere := state.ClaimInUse(cluster.ClaimKey{Namespace: claim.Namespace, Name: claim.Name})
		if pv := state.Volume(claim.Spec.VolumeName); pv != nil {
			mayBeThere = mayBeThere || state.VolumeShared(pv)
		}
		add(disk{d, mayBeThere, volumes.InTree(claim, state)})
	}
	for _, d := range pod.Disks {
		add(disk{d, true, true})
	}
	return out, ""
}

// Sign implements framework.Plugin. A disk that can't be on a node yet is as good as
// another one of its driver.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, _ *framework.Signature) {
	if !volumes.Has(pod) {
		return
	}
	list, why := disksOf(pod, state)
	local.Str(why)
	local.Int(int64(len(list)))
	for i := range list {
		local.Str(list[i].Driver)
		local.OptStr(list[i].Name, list[i].mayBeThere)
		local.Bool(p.NeedsDrivers && list[i].inTree)
	}
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	if !volumes.Has(pod) {
		return framework.Rules{}, nil
	}
	list, why := disksOf(pod, state)
	switch {
	case why != "":
		return framework.Rules{Local: unknown(why)}, nil
	case len(list) == 0:
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: &rule{state, list, p.NeedsDrivers}}, nil
}

// unknown implements framework.LocalRule for pods whose disks aren't known: it
// rejects every node, with this message. It isn't a reason of For's, since in
// kube-scheduler it is Filter that says so, after the PreFilter of all plugins.
type unknown string

// Reads implements framework.LocalRule.
func (unknown) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (unknown) EvalNode(*cluster.Node) (framework.Code, int64) { return framework.Final, 0 }

// Explain implements framework.LocalRule.
func (u unknown) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{string(u)}, Final: true}
}

// rule implements framework.LocalRule for the pods of one class.
type rule struct {
	state *cluster.State
	disks []disk // that the pod needs
	needs bool   // Plugin.NeedsDrivers
}

// Reads implements framework.LocalRule. What claims and attachments say about the
// disks on a node touches the node when it changes.
func (*rule) Reads() framework.Aspects { return framework.ReadsPods }

// EvalNode implements framework.LocalRule, in O(volumes of the node's pods) where a
// driver of the pod's disks has a limit.
func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if r.lacking(n) != "" {
		return framework.Reject, 0
	}
	if driver, _, _ := r.exceeded(n); driver != "" {
		return framework.Reject, 0
	}
	return framework.OK, 0
}

// lacking returns the driver of the first disk that isn't installed on the node and has to be, ""
// when there is none. A change of a CSIDriver touches every node.
func (r *rule) lacking(n *cluster.Node) string {
	if !r.needs {
		return ""
	}
	csi := r.state.CSINode(n.Name)
	for i := range r.disks {
		x := &r.disks[i]
		if csi == nil && x.inTree || !cluster.DriverDemanded(r.state.CSIDriver(x.Driver)) || cluster.DriverInstalled(csi, x.Driver) {
			continue
		}
		return x.Driver
	}
	return ""
}

// exceeded returns the first driver, in the order of the CSINode, of which the node
// would have too many disks with the pod: how many, and how many it may have. The
// driver is "" when there is none.
func (r *rule) exceeded(n *cluster.Node) (driver string, needed, limit int64) {
	csi := r.state.CSINode(n.Name)
	if csi == nil {
		return "", 0, 0
	}
	var there map[string]string // see attached; made when some driver has a limit
	for i := range csi.Spec.Drivers {
		d := &csi.Spec.Drivers[i]
		if d.Allocatable == nil || d.Allocatable.Count == nil ||
			!slices.ContainsFunc(r.disks, func(x disk) bool { return x.Driver == d.Name }) {
			continue
		}
		if there == nil {
			there = r.attached(n)
		}
		added := int64(0) // disks that the node doesn't have yet
		for _, x := range r.disks {
			if _, ok := there[x.Name]; x.Driver == d.Name && (!x.mayBeThere || !ok) {
				added++
			}
		}
		total := int64(0)
		for _, name := range there {
			if name == d.Name {
				total++
			}
		}
		total += r.onlyAttached(n, d.Name, there)
		if added > 0 && total+added > int64(*d.Allocatable.Count) {
			return d.Name, total + added, int64(*d.Allocatable.Count)
		}
	}
	return "", 0, 0
}

// attached returns the drivers of the disks that the pods on a node have, by the
// disk's name.
func (r *rule) attached(n *cluster.Node) map[string]string {
	out := map[string]string{}
	for _, p := range n.Pods {
		for _, ref := range p.Claims {
			if claim := r.state.Claim(p.Object.Namespace, ref.Name); claim != nil {
				if d, ok := volumes.DiskOf(claim, r.state); ok {
					out[d.Name] = d.Driver
				}
			}
		}
		for _, d := range p.Disks {
			out[d.Name] = d.Driver
		}
	}
	return out
}

// onlyAttached returns how many disks of a driver are attached to a node though no
// pod there has them.
func (r *rule) onlyAttached(n *cluster.Node, driver string, there map[string]string) int64 {
	seen := map[string]bool{}
	for _, a := range r.state.Attachments(n.Name) {
		if a.Spec.Attacher != driver || a.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		pv := r.state.Volume(*a.Spec.Source.PersistentVolumeName)
		if pv == nil || pv.Spec.CSI == nil {
			continue
		}
		name := driver + "/" + pv.Spec.CSI.VolumeHandle
		if _, ok := there[name]; !ok {
			seen[name] = true
		}
	}
	return int64(len(seen))
}

// Explain implements framework.LocalRule.
func (r *rule) Explain(n *cluster.Node) *framework.Reason {
	if driver := r.lacking(n); driver != "" {
		return &framework.Reason{Plugin: Name, Messages: []string{driver + " CSI driver is not installed on the node"}}
	}
	reason := &framework.Reason{Plugin: Name, Messages: []string{"node(s) exceed max volume count"}}
	if driver, needed, limit := r.exceeded(n); driver != "" {
		reason.Deficits = []framework.Deficit{{Resource: "volumes of " + driver, Needed: needed, Available: limit}}
	}
	return reason
}
