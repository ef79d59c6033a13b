package nodedeletion

// This file holds the last look at a tainted node: DeleteDelayAfterTaint after the API has
// the taint, and again after daemon pods were asked to leave. The node goes if its group
// may shrink by it and it is still empty; else it stays, and its taint is taken off.
//
// Before the groups are known there is no last look: the node keeps the taint until then.

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// lastLook asks the provider to delete a tainted node, if it may still go; else the
// node stays. With daemon pods to evict, it asks those first and looks again after.
func (m *Machine) lastLook(t *lifecycle.Turn, name string, d *deletion) {
	n := t.State.NodeByName(name)
	d.group = n.Group // as it now is: the node may have been tainted by another process
	g := t.State.Group(n.Group)
	switch {
	case !m.groups.Known():
		return // without groups there is no telling; looked at again when they are known
	case g == nil:
		m.keep(t, name, d, "the node is in no node group")
		return
	case !scaledown.Removable(n):
		m.keep(t, name, d, "the node is no longer empty")
		return
	case g.Target-m.Planned(g.ID) < g.Min:
		m.keep(t, name, d, "the node group is at its minimum")
		return
	}
	if _, waited := d.state.(tainted); waited {
		if open := m.evictDaemons(t, n); len(open) > 0 {
			d.state = evicting{t.Now, open}
			return
		}
	}
	d.state = deleting{called{node: n.NodeInfo, lowered: true}}
	t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{Group: g.ID, Node: name, Instance: n.Object.Spec.ProviderID})
	t.Decide(step.Decision{Kind: step.NodeRemoved, Node: name, Group: g.ID, Reason: d.why})
	t.Emit(step.NodeEvent(n.Object, "ScaleDown", "ScalingDown", "node removed by cluster autoscaler: "+d.why))
	m.groups.Retarget(t, g.ID, -1)
	m.groups.ScaledDown(t.Now, g.ID)
	t.State.RemoveNode(name)
}

// keep ends a deletion with the node staying: the taint is taken off, and the entry
// remains until that has worked. The node's time of being unneeded starts anew.
func (m *Machine) keep(t *lifecycle.Turn, name string, d *deletion, why string) {
	d.state = untainting{}
	m.candidates.Forget(name)
	t.Decide(step.Decision{Kind: step.NodeKept, Node: name, Reason: why})
	t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
	n := t.State.NodeByName(name)
	t.Emit(step.NodeEvent(n.Object, "ScaleDownFailed", "ScalingDown", why).AsWarning())
	t.State.SetNode(n.NodeInfo.WithoutTaint(d.taint.Key))
}

// enableEviction is the annotation by which a daemon pod says whether it is to be
// evicted, whatever the flag says.
const enableEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

// evictDaemons asks the node's daemon pods to leave, where that is wanted, and returns
// which were asked. As in Cluster Autoscaler it is a courtesy: a pod that can't be
// evicted doesn't keep the node.
func (m *Machine) evictDaemons(t *lifecycle.Turn, n *cluster.Node) map[types.UID]bool {
	asked := map[types.UID]bool{}
	for _, pod := range n.Pods {
		obj := pod.Object
		wish := obj.Annotations[enableEviction]
		if !pod.Daemon() || pod.Mirror() || obj.DeletionTimestamp != nil || wish != "true" && (wish == "false" || !m.cfg.EvictDaemonPods) {
			continue
		}
		asked[pod.UID] = true
		t.Decide(step.Decision{Kind: step.PodEvicted, Pod: obj.Namespace + "/" + obj.Name, Node: n.Name})
		t.Ready.Evictions = append(t.Ready.Evictions, step.Eviction{UID: pod.UID, Namespace: obj.Namespace, Name: obj.Name, Node: n.Name})
	}
	return asked
}

// EvictionDone takes the outcome of an eviction. A pod that could not be evicted is no
// longer waited for.
func (m *Machine) EvictionDone(in step.EvictionDone) {
	if d := m.deletions[in.Node]; d != nil {
		if s, ok := d.state.(evicting); ok {
			delete(s.open, in.UID)
		}
	}
}
