package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
)

// deletion is a node being removed. Who holds one takes the taint away again
// or sees the node go.
type deletion struct {
	phase    phase
	since    time.Time // of the phase
	group    string
	taint    v1.Taint
	why      string
	evicting map[types.UID]bool // evictions without an answer
	again    bool               // taking the taint away has failed
	// From deleting on the node is out of the state, so that nothing can be
	// placed there, whatever it tolerates; this is what it last looked like.
	info *cluster.NodeInfo
	// counted says that the group's assumed target is lower for it already.
	counted bool
	gone    bool // the API has shown that the node is gone
	// alive says of a departed node that the provider lists its machine.
	alive bool
}

type phase uint8

const (
	tainting  phase = iota // the taint is being written
	tainted                // waiting before the last look
	evicting               // daemon pods were asked to leave
	deleting               // the provider was asked
	doubtful               // it says that it failed; its list of machines will tell
	departed               // the provider has removed it; the API is yet to show it
	returning              // the node stays; the taint is being taken away
)

const (
	// untaintAgain is how long after a failure to take a taint away it is
	// tried again.
	untaintAgain = 5 * time.Second
	// lingering is how long after its removal a node is shown, and its machine
	// listed, before it is taken for alive.
	lingering = 2 * time.Minute
)

// out tells whether the node is kept out of the state.
func (d *deletion) out() bool { return deleting <= d.phase && d.phase <= departed }

// going counts, by group, the nodes being removed that the group's assumed
// target still includes.
func (c *Core) going() map[string]int {
	out := map[string]int{}
	for _, d := range c.scale.deletions {
		if d.phase < deleting {
			out[d.group]++
		}
	}
	return out
}

// leaving counts a group's nodes whose removal the assumed target takes for
// done though its outcome is open.
func (c *Core) leaving(group string) (n int) {
	for _, d := range c.scale.deletions {
		if d.counted && d.group == group {
			n++
		}
	}
	return n
}

func (c *Core) deletionTaint() v1.Taint {
	return v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: fmt.Sprint(c.now.Unix()), Effect: v1.TaintEffectNoSchedule}
}

// shown takes what the API shows of a node and returns how the state is to
// have it: what has been decided holds until the API shows it. Nil keeps the
// node out.
func (c *Core) shown(info *cluster.NodeInfo) *cluster.NodeInfo {
	if c.cfg.Autoscale == nil || c.following {
		return info
	}
	d := c.scale.deletions[info.Name]
	if d == nil {
		if d = c.removedMachine(info); d == nil {
			return c.resumed(info)
		}
		c.scale.deletions[info.Name] = d
	}
	switch {
	case d.out():
		d.info = info
		return nil
	case d.phase == returning:
		return info.WithoutTaint(d.taint.Key)
	}
	return info.WithTaint(d.taint)
}

// resumed takes over a node that carries the taint without our having put it
// there: we did before a restart. It is removed or given back.
func (c *Core) resumed(info *cluster.NodeInfo) *cluster.NodeInfo {
	for _, t := range info.Object.Spec.Taints {
		if t.Key == autoscaler.ToBeDeletedTaint {
			c.scale.deletions[info.Name] = &deletion{phase: tainted, since: c.now, group: info.Group, taint: t, why: "its removal had begun"}
		}
	}
	return info
}

// vanished takes note that the API shows a node no more.
func (c *Core) vanished(name string) {
	delete(c.scale.emptySince, name)
	if d := c.scale.deletions[name]; d != nil && (d.phase == deleting || d.phase == doubtful) {
		d.gone = true // its outcome is still to come
	} else {
		delete(c.scale.deletions, name)
	}
}

// beginRemoval taints a node that is to go.
func (c *Core) beginRemoval(n *cluster.Node, why string, r *step.Ready) {
	d := &deletion{since: c.now, group: n.Group, taint: c.deletionTaint(), why: why}
	c.scale.deletions[n.Name] = d
	r.Taints = append(r.Taints, step.Taint{Node: n.Name, Taint: d.taint})
	c.state.SetNode(n.NodeInfo.WithTaint(d.taint))
}

func (c *Core) taintDone(in step.TaintDone, r *step.Ready) {
	d := c.scale.deletions[in.Node]
	switch {
	case d == nil:
	case d.phase == returning && in.Err == nil:
		delete(c.scale.deletions, in.Node)
	case d.phase == returning:
		d.again, d.since = true, c.now
	case d.phase == tainting && in.Err != nil:
		c.giveBack(in.Node, fmt.Sprintf("the node could not be tainted: %v", in.Err), r)
	case d.phase == tainting:
		d.phase, d.since = tainted, c.now
	}
}

// due returns when the deletion goes on without an outcome; zero for never.
func (d *deletion) due(a *Autoscale) time.Time {
	switch {
	case d.phase == tainted:
		return d.since.Add(a.DeleteDelayAfterTaint)
	case d.phase == evicting && len(d.evicting) == 0:
		return d.since
	case d.phase == evicting:
		return d.since.Add(a.MaxPodEvictionTime)
	case d.phase == departed:
		return d.since.Add(lingering)
	case d.phase == returning && d.again:
		return d.since.Add(untaintAgain)
	}
	return time.Time{}
}

// advanceDeletions takes removals further whose time has come: it takes a last
// look at tainted nodes and asks the provider to remove those that are still
// empty.
func (c *Core) advanceDeletions(r *step.Ready) {
	s, a := &c.scale, c.cfg.Autoscale
	if len(s.deletions) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.deletions)) {
		d := s.deletions[name]
		if at := d.due(a); at.IsZero() || c.now.Before(at) {
			continue
		}
		switch d.phase {
		case departed:
			c.lingers(name, d)
		case returning:
			d.again = false
			r.Taints = append(r.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
		default:
			c.lastLook(name, d, r)
		}
	}
}

func (c *Core) lastLook(name string, d *deletion, r *step.Ready) {
	n := c.state.NodeByName(name)
	if n == nil {
		delete(c.scale.deletions, name)
		return
	}
	d.group = n.Group
	g := c.state.Group(n.Group)
	switch {
	case !c.scale.hasGroups: // the provider is yet to tell
	case g == nil:
		c.giveBack(name, "the node is in no node group", r)
	case !scaledown.Removable(n):
		c.giveBack(name, "the node is no longer empty", r)
	case g.Target-c.going()[g.ID] < g.Min:
		c.giveBack(name, "the node group is at its minimum", r)
	case d.phase == tainted && c.evictDaemons(d, n, r):
		d.phase, d.since = evicting, c.now
	default:
		d.phase, d.since, d.info, d.counted = deleting, c.now, n.NodeInfo, true
		r.NodeDeletions = append(r.NodeDeletions, step.NodeDeletion{Group: g.ID, Node: name, Instance: n.Object.Spec.ProviderID})
		c.decided(r, step.Decision{Kind: step.NodeRemoved, Node: name, Group: g.ID, Reason: d.why})
		r.Events = append(r.Events, nodeEvent(n.Object, false, "ScaleDown", "ScalingDown", "node removed by cluster autoscaler: "+d.why))
		c.scale.inFlight[g.ID]--
		c.retarget(g.ID, -1)
		c.state.RemoveNode(name)
	}
}

// lingers looks whether the API is late to show that a removed node is gone,
// or the node is alive: shown since, with its machine listed by the provider.
// Then its removal begins again. What is shown late may be old.
func (c *Core) lingers(name string, d *deletion) {
	if !d.alive {
		d.since = c.now
		return
	}
	d.phase, d.since, d.gone = tainted, c.now, false
	c.state.SetNode(d.info.WithTaint(d.taint))
	d.info = nil
}

// enableEviction is the annotation by which a daemon pod says whether it is to
// be evicted, whatever the flag.
const enableEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

// evictDaemons asks the node's daemon pods to leave, where that is wanted, and
// tells whether there were any. As in Cluster Autoscaler it is a courtesy: one
// that can't be evicted doesn't keep the node.
func (c *Core) evictDaemons(d *deletion, n *cluster.Node, r *step.Ready) bool {
	d.evicting = map[types.UID]bool{}
	for _, p := range n.Pods {
		wish := p.Object.Annotations[enableEviction]
		if !p.Daemon() || p.Mirror() || p.Object.DeletionTimestamp != nil || wish != "true" && (wish == "false" || !c.cfg.Autoscale.EvictDaemonPods) {
			continue
		}
		d.evicting[p.UID] = true
		c.decided(r, step.Decision{Kind: step.PodEvicted, Pod: podName(p.Object.Namespace, p.Object.Name), Node: n.Name})
		r.Evictions = append(r.Evictions, step.Eviction{UID: p.UID, Namespace: p.Object.Namespace, Name: p.Object.Name, Node: n.Name})
	}
	return len(d.evicting) > 0
}

func (c *Core) evictionDone(in step.EvictionDone, _ *step.Ready) {
	if d := c.scale.deletions[in.Node]; d != nil {
		delete(d.evicting, in.UID)
	}
}

// giveBack ends a deletion with the node staying: the taint goes, and the
// deletion is remembered until it has.
func (c *Core) giveBack(name, why string, r *step.Ready) {
	d := c.scale.deletions[name]
	d.phase, d.since = returning, c.now
	delete(c.scale.emptySince, name)
	c.decided(r, step.Decision{Kind: step.NodeKept, Node: name, Reason: why})
	r.Taints = append(r.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
	if n := c.state.NodeByName(name); n != nil {
		r.Events = append(r.Events, nodeEvent(n.Object, true, "ScaleDownFailed", "ScalingDown", why))
		c.state.SetNode(n.NodeInfo.WithoutTaint(d.taint.Key))
	}
}

func (c *Core) nodeDeletionDone(in step.NodeDeletionDone, r *step.Ready) {
	if c.machineDone(in, r) {
		return
	}
	if d := c.scale.deletions[in.Node]; d != nil && d.phase == deleting {
		c.deleted(in.Node, in.Err, r)
	}
}

// deleted takes the outcome of a node's removal.
func (c *Core) deleted(name string, err error, r *step.Ready) {
	d := c.scale.deletions[name]
	if err == nil {
		c.settled(d)
		d.phase, d.since, d.info = departed, c.now, nil
		if d.gone {
			delete(c.scale.deletions, name)
		}
		return
	}
	// Perhaps the node was removed and only the answer was lost. Nothing is
	// placed there before the provider's list says that the machine exists.
	d.phase, d.why = doubtful, fmt.Sprintf("the provider did not remove the node: %v", err)
}

// settled takes back what a removal under way makes of the group's target.
func (c *Core) settled(d *deletion) {
	if d.counted {
		c.scale.inFlight[d.group]++
		d.counted = false
	}
}

// resolveDoubts takes the provider's list for the outcome of removals that may
// have failed.
func (c *Core) resolveDoubts(groups []nodegroup.Group, r *step.Ready) {
	for _, name := range slices.Sorted(maps.Keys(c.scale.deletions)) {
		d := c.scale.deletions[name]
		if d.phase == departed {
			d.alive = d.info != nil && listed(groups, d)
		}
		if d.phase != doubtful {
			continue
		}
		c.settled(d)
		switch {
		case d.gone:
			delete(c.scale.deletions, name)
		case listed(groups, d):
			c.state.SetNode(d.info.WithTaint(d.taint))
			d.info = nil
			c.giveBack(name, d.why, r)
		default:
			d.phase, d.since, d.info = departed, c.now, nil
		}
	}
}

// listed tells whether the machine of a node that was to be removed exists. A
// provider that doesn't list machines is taken at its word: it failed.
func listed(groups []nodegroup.Group, d *deletion) bool {
	for i := range groups {
		if g := &groups[i]; g.ID == d.group {
			return g.Instances == nil || slices.ContainsFunc(g.Instances, func(x nodegroup.Instance) bool {
				return x.Node == d.info.Name || x.ID != "" && x.ID == d.info.Object.Spec.ProviderID
			})
		}
	}
	return true
}
