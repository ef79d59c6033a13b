package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/sim/scenario"
)

// This file plays the scenario's faults: those that hit calls or instances, and events.
// What must hold: a fault with a rate is drawn by the name of what it may hit, so that a
// call's or an instance's luck doesn't depend on what happened before it. Events come at
// their times, or as a Poisson process; what an event happens to is drawn by its number.

// faults are the scenario's faults, and what of them is in force.
type faults struct {
	byKind  map[string][]*scenario.Fault
	stalled time.Duration // until when nothing arrives by a watch
	serial  int           // of the last event; names what it draws
}

// hits reports whether a fault of a kind is in force for a group ("" for calls that concern
// none) and hits what is named: a call, an instance, a pod or a controller.
func (f *faults) hits(w *World, kind, group string, name ...string) bool {
	return f.thatHits(w, kind, group, name...) != nil
}

// thatHits returns the fault by which hits is true, nil if it isn't.
func (f *faults) thatHits(w *World, kind, group string, name ...string) *scenario.Fault {
	for _, x := range f.byKind[kind] {
		if inForce(x, w.now, group) && seeded.Float(w.seed, append([]string{kind}, name...)...) < x.Rate {
			return x
		}
	}
	return nil
}

// anyInForce reports whether a fault without a rate is in force for a group.
func (f *faults) anyInForce(w *World, kind, group string) bool {
	return slices.ContainsFunc(f.byKind[kind], func(x *scenario.Fault) bool { return inForce(x, w.now, group) })
}

// inForce reports whether a fault is in force at a time, from From to before Until, for a
// group.
func inForce(x *scenario.Fault, now time.Duration, group string) bool {
	return now >= x.From.Duration && (x.Until.Duration == 0 || now < x.Until.Duration) && (x.Group == "" || x.Group == group)
}

// startFaults puts the events of the whole run into the clock's queue. Those that come
// PerHour don't keep the run going.
func (w *World) startFaults() {
	w.faults.byKind = map[string][]*scenario.Fault{}
	for i := range w.run.Spec.Faults {
		x := &w.run.Spec.Faults[i]
		w.faults.byKind[x.Kind] = append(w.faults.byKind[x.Kind], x)
		if x.Until.Duration > 0 {
			// Its end is a change: what was refused may succeed from then on.
			w.after(x.Until.Duration, phaseWorld, func() { w.faultEnds(x) })
		}
		for _, at := range x.At {
			w.after(at.Duration, phaseWorld, func() { w.runEvent(x) })
		}
		if x.PerHour > 0 {
			w.afterInBackground(x.From.Duration, phaseWorld, func() { w.repeatEvent(x, i, 0) })
		}
	}
}

// faultEnds makes up for what a fault has kept from happening, once it is no longer in force.
func (w *World) faultEnds(x *scenario.Fault) {
	w.noteChange()
	if x.Kind == scenario.ControllerStalls {
		w.reconcileAll()
	}
}

// repeatEvent runs the n-th occurrence of fault i after a random time, and then the next.
func (w *World) repeatEvent(x *scenario.Fault, i, n int) {
	mean := time.Duration(min(float64(time.Hour)/x.PerHour, math.MaxInt64/4))
	w.afterInBackground(seeded.Exp(mean, w.seed, "recur", fmt.Sprint(i), fmt.Sprint(n)), phaseWorld, func() {
		if x.Until.Duration == 0 || w.now < x.Until.Duration {
			w.runEvent(x)
			w.repeatEvent(x, i, n+1)
		}
	})
}

// runEvent does what an event stands for, or nothing if there is nothing that it could
// happen to.
func (w *World) runEvent(x *scenario.Fault) {
	f := &w.faults
	f.serial++
	pick := func(n int) int {
		return int(seeded.Uint64(w.seed, "happen", x.Kind, fmt.Sprint(f.serial)) % uint64(n))
	}
	switch x.Kind {
	case scenario.CrashBerth:
		w.berth.crash(cmp.Or(x.For.Duration, crashTime))
	case scenario.WatchStall:
		f.stalled = max(f.stalled, w.now+cmp.Or(x.For.Duration, 30*time.Second))
	case scenario.NodeMoves:
		w.moveNode(x.Group, pick)
	case scenario.GroupRenamed:
		w.renameGroup(x, pick)
	case scenario.SpotReplaced:
		w.replaceInstance(x, pick)
	case scenario.DevicesWithdrawn:
		w.withdrawDevices(x, pick)
	case scenario.DevicesChanged:
		w.changeDevices(x, pick)
	case scenario.DeviceTainted:
		w.taintDevice(x, resourcev1.DeviceTaintEffectNoSchedule, pick)
	case scenario.DeviceFailed:
		w.taintDevice(x, resourcev1.DeviceTaintEffectNoExecute, pick)
	case scenario.ClaimEdited:
		w.editClaim(pick)
	case scenario.TaintNode:
		w.taintNode(x, pick)
	case scenario.SpotReclaim:
		_ = w.reclaimInstance(x.Group, pick, func(*instance) bool { return true })
	case scenario.SpotWarning:
		w.warnOfReclaim(x, pick)
	case scenario.ReclaimDraining:
		_ = w.reclaimInstance(x.Group, pick, (*instance).draining)
	case scenario.ForbidEvictions:
		w.forbidEvictions(x, pick)
	case scenario.DeletePod, scenario.EvictPod:
		w.disruptPod(x, pick)
	case scenario.Cordon:
		w.cordonNode(x, pick)
	case scenario.Relabel:
		w.relabelNode(x, pick)
	}
}

// disruptPod deletes an active pod, or evicts one that is on a node.
func (w *World) disruptPod(x *scenario.Fault, pick func(int) int) {
	list := slices.DeleteFunc(w.sortedPods(), func(p *pod) bool { return !p.active() || x.Kind == scenario.EvictPod && p.node == nil })
	if len(list) == 0 {
		return
	}
	if p := list[pick(len(list))]; x.Kind == scenario.EvictPod {
		w.evict(p, nil)
	} else {
		w.deletePod(p)
	}
}

// cordonNode cordons a node for a while, as an administrator does it.
func (w *World) cordonNode(x *scenario.Fault, pick func(int) int) {
	n := w.anyNode(x.Group, pick)
	if n == nil {
		return
	}
	w.changeNode(n, func(o *v1.Node) { o.Spec.Unschedulable = true })
	w.after(cmp.Or(x.For.Duration, 10*time.Minute), phaseWorld, func() {
		if !n.dead {
			w.changeNode(n, func(o *v1.Node) { o.Spec.Unschedulable = false })
		}
	})
}

// relabelNode gives a node another zone: rules have to follow a node that changes under its pods.
func (w *World) relabelNode(x *scenario.Fault, pick func(int) int) {
	n := w.anyNode(x.Group, pick)
	if n == nil {
		return
	}
	zones := []string{"a", "b", "c"}
	zone := zones[pick(len(zones))]
	w.changeNode(n, func(o *v1.Node) {
		o.Labels = maps.Clone(o.Labels)
		metav1.SetMetaDataLabel(&o.ObjectMeta, v1.LabelTopologyZone, zone)
	})
}

// reclaimInstance makes the cloud take back an instance of a group, or with "" of any, for
// which which is true, and returns it; nil when there is none. One that was only ordered isn't
// there to be taken.
func (w *World) reclaimInstance(group string, pick func(int) int, which func(*instance) bool) *instance {
	var list []*instance
	for _, g := range w.groups {
		if group == "" || g.cfg.Name == group {
			list = append(list, slices.DeleteFunc(slices.Clone(g.instances), func(m *instance) bool { return m.state == ordered || !which(m) })...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	m := list[pick(len(list))]
	m.group.lastReclaim = w.now
	w.terminate(m, false)
	return m
}

// anyNode returns a node of a group, or with "" of all; nil if there is none. pick returns
// a number from 0 to below its argument.
func (w *World) anyNode(group string, pick func(int) int) *node {
	list := slices.DeleteFunc(w.sortedNodes(), func(n *node) bool { return group != "" && n.configured() != group || n.lingers })
	if len(list) == 0 {
		return nil
	}
	return list[pick(len(list))]
}
