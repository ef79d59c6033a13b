package sim

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file checks the room that is kept for a gang that has waited for long: it ends in its time, also when it
// moves meanwhile, and no pod comes into it that would hold the gang up. What ends in time is counted anew, from the
// deadlines in the API.

// gangRoom is room that Berth keeps for a gang.
type gangRoom struct {
	group    string // namespace/name
	priority int32
	since    time.Duration      // the gang's turn began: room was first kept
	until    time.Time          // no pod ends later that was on these nodes and has a deadline
	kept     map[string]int64   // by node: milli-CPUs of the members' room
	before   map[types.UID]bool // the pods that were there
	longest  time.Duration      // for which room is kept in a turn
	after    time.Duration      // for which a gang waits before its next turn
}

// checkRoom checks what a Step has decided about room, and has bound into it.
func (w *World) checkRoom(r *step.Ready) {
	for i := range r.Decisions {
		switch d := &r.Decisions[i]; {
		case d.PodGroup == "": // room for other than a gang
		case d.Kind == step.RoomLost:
			w.room = nil
		case d.Kind == step.RoomKept:
			w.room = w.newRoom(d.PodGroup, r)
			w.checkTurn(w.room)
		case d.Kind == step.RoomMissing || d.Kind == step.GroupPlaced:
			delete(w.turns, d.PodGroup)
		}
	}
	x := w.room
	if x == nil {
		return
	}
	if w.now > x.since+x.longest {
		w.violation("room is kept for pod group %s since %s", x.group, x.since)
	}
	for _, b := range r.Binds {
		p := w.pods[b.UID]
		if p == nil || x.kept[b.Node] == 0 || x.before[b.UID] || !x.holdsUp(p, w.serverTime()) {
			continue
		}
		n := w.berth.core().State().NodeByName(b.Node)
		if n != nil && w.cameInto(x, n)+x.kept[b.Node] > n.Object.Status.Allocatable.Cpu().MilliValue() {
			w.violation("pod %s was placed on node %s in the room of pod group %s, and may not end in time", p.name, b.Node, x.group)
		}
	}
}

// cameInto returns the milli-CPUs of the pods on a node that came since room was kept and hold the gang up.
func (w *World) cameInto(x *gangRoom, n *cluster.Node) (sum int64) {
	for _, on := range n.Pods {
		if p := w.pods[on.UID]; p != nil && !x.before[on.UID] && x.holdsUp(p, w.serverTime()) {
			sum += milliCPU(p.obj)
		}
	}
	return sum
}

// checkTurn notes when the turn of a gang began. Room that is kept again within it is of the same turn, and the next
// turn begins after another wait.
func (w *World) checkTurn(x *gangRoom) {
	began, known := w.turns[x.group]
	switch {
	case known && w.now < began+x.longest:
		x.since = began
		return
	case known && w.now < began+x.longest+x.after:
		w.violation("room is kept for pod group %s again, whose turn ended at %s", x.group, began+x.longest)
	}
	w.turns[x.group] = x.since
}

// newRoom notes where room is kept for a group after a Step, as the stand-ins in Berth's state have it.
func (w *World) newRoom(group string, r *step.Ready) *gangRoom {
	state := w.berth.core().State()
	x := &gangRoom{group: group, since: w.now, until: w.serverTime(), kept: map[string]int64{}, before: map[types.UID]bool{}}
	bound := map[types.UID]bool{} // when the room was kept already
	for i := range r.Binds {
		bound[r.Binds[i].UID] = true
	}
	for _, n := range state.Nominations() {
		if strings.HasPrefix(string(n.Pod.UID), "podgroup/") && n.Node != cluster.NoNode {
			x.priority = n.Pod.Priority
			x.kept[state.Node(n.Node).Name] += milliCPU(n.Pod.Object)
		}
	}
	for node := range x.kept {
		for _, p := range state.NodeByName(node).Pods {
			if bound[p.UID] {
				continue
			}
			x.before[p.UID] = true
			if end, known := endOf(p, w.serverTime()); known && end.After(x.until) {
				x.until = end
			}
		}
	}
	for i := range w.run.Scheduler.Profiles {
		keep := w.run.Scheduler.Profiles[i].KeepRoom
		x.longest, x.after = max(x.longest, keep.For), max(x.after, keep.After)
	}
	return x
}

// endOf returns when a pod ends at the latest that runs now, or begins to.
func endOf(p *cluster.Pod, now time.Time) (end time.Time, known bool) {
	deadline, from := p.Object.Spec.ActiveDeadlineSeconds, now
	if deadline == nil {
		return end, false
	}
	if at := p.Object.Status.StartTime; at != nil {
		from = at.Time
	}
	return from.Add(time.Duration(*deadline) * time.Second), true
}

// holdsUp reports whether a pod that is placed in the room of a gang holds it up: it is no member, has the
// gang's priority, and no deadline by which it ends as early as the last pod that was there.
func (x *gangRoom) holdsUp(p *pod, now time.Time) bool {
	o := p.obj
	if g := o.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && o.Namespace+"/"+*g.PodGroupName == x.group || priority(p) != x.priority {
		return false
	}
	return o.Spec.ActiveDeadlineSeconds == nil || now.Add(time.Duration(*o.Spec.ActiveDeadlineSeconds)*time.Second).After(x.until)
}

func milliCPU(p *v1.Pod) (sum int64) {
	for i := range p.Spec.Containers {
		sum += p.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
	}
	return sum
}
