package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is the drivers of devices: they publish the ResourceSlices of a node some time after it is ready,
// change and withdraw them when a fault says so, and the garbage collector removes them after the node. What must
// hold: a driver writes its slices one after the other, so that a pool is incomplete in between; each writing
// has a generation of its own.

// slicesOf returns the slices of a node by name, those of other generations included.
func (w *World) slicesOf(node string) (out []*resourcev1.ResourceSlice) {
	for _, s := range objectsOf[*resourcev1.ResourceSlice](w) {
		if s.Spec.NodeName != nil && *s.Spec.NodeName == node {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// publishDevices has the drivers of a group's new node publish its devices, unless a fault delays them for longer.
func (w *World) publishDevices(n *node, after time.Duration) {
	if n.instance == nil || len(n.instance.group.cfg.Devices) == 0 {
		return
	}
	g := n.instance.group.cfg
	if f := w.faults.thatHits(w, scenario.DevicesLate, g.Name, n.obj.Name); f != nil {
		after += cmp.Or(f.For.Duration, 10*time.Minute)
	}
	w.after(after, phaseWorld, func() { w.writeSlices(n, simulateddevices.Slices(g.Devices, n.obj.Name, w.nextGeneration(n.obj.Name))) })
}

// devicesDelay returns how long after its becoming ready the devices of a group's node are published.
func (w *World) devicesDelay(g *group, node string) time.Duration {
	span := g.cfg.DevicesAfter
	if span == nil {
		span = &simulatedgroup.Span{}
		span.Min.Duration, span.Max.Duration = time.Second, 10*time.Second
	}
	return w.between(span, 0, 0, "devices", node)
}

// nextGeneration returns the generation of what the drivers of a node publish next.
func (w *World) nextGeneration(node string) int64 {
	w.generations[node]++
	newest := w.generations[node]
	for _, s := range w.slicesOf(node) {
		newest = max(newest, s.Spec.Pool.Generation+1)
	}
	w.generations[node] = newest
	return newest
}

// writeSlices has a node's drivers write slices, one after the other. A slice replaces the one of its name. Drivers
// that have begun to write newer ones don't go on: a pool of two generations would be incomplete for good.
func (w *World) writeSlices(n *node, list []*resourcev1.ResourceSlice) {
	if w.nodes[n.obj.Name] != n || len(list) == 0 || list[0].Spec.Pool.Generation < w.generations[n.obj.Name] {
		return
	}
	w.after(w.between(nil, 20, 2000, "slice", list[0].Name, fmt.Sprint(list[0].Spec.Pool.Generation)), phaseWorld, func() {
		w.storeObject(list[0])
		w.taintsChanged()
		w.noteChange()
		w.writeSlices(n, list[1:])
	})
}

// removeSlices removes the slices of a node.
func (w *World) removeSlices(node string) {
	for _, s := range w.slicesOf(node) {
		w.removeObject(s)
		w.noteChange()
	}
}

// slicesLost has the garbage collector remove the slices of a node that is gone.
func (w *World) slicesLost(n *node) {
	if len(w.slicesOf(n.obj.Name)) == 0 {
		return
	}
	w.after(w.between(nil, 1000, 15000, "slices gc", n.obj.Name, string(n.obj.UID)), phaseWorld, func() {
		if w.nodes[n.obj.Name] == nil {
			w.removeSlices(n.obj.Name)
		}
	})
}

// nodeWithDevices returns a node of a group, or with "" of any, that has devices; nil if there is none. One whose
// drivers are writing them isn't among these: what it has is not all that it had.
func (w *World) nodeWithDevices(group string, pick func(int) int) *node {
	list := slices.DeleteFunc(w.sortedNodes(), func(n *node) bool {
		return group != "" && n.configured() != group || n.lingers || !w.publishedWhole(n.obj.Name)
	})
	if len(list) == 0 {
		return nil
	}
	return list[pick(len(list))]
}

// publishedWhole reports whether a node has devices, and every pool of them has all slices of one generation.
func (w *World) publishedWhole(node string) bool {
	list := w.slicesOf(node)
	type pool struct{ driver, name string }
	left := map[pool]int64{}
	for _, s := range list {
		if s.Spec.Pool.Generation != list[0].Spec.Pool.Generation {
			return false
		}
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		if _, ok := left[p]; !ok {
			left[p] = s.Spec.Pool.ResourceSliceCount
		}
		left[p]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return len(list) > 0
}

// withdrawDevices has the drivers of a node withdraw what they publish, and publish it again later.
func (w *World) withdrawDevices(x *scenario.Fault, pick func(int) int) {
	n := w.nodeWithDevices(x.Group, pick)
	if n == nil {
		return
	}
	before := w.slicesOf(n.obj.Name)
	w.removeSlices(n.obj.Name)
	w.after(cmp.Or(x.For.Duration, 2*time.Minute), phaseWorld, func() { w.republish(n, before, func(*resourcev1.ResourceSlice) {}) })
}

// changeDevices has the drivers of a node publish it without the last device of each slice, and as before later. A device
// that takes counters stays: for the library one in use that isn't published takes none, and what it took would be given away.
func (w *World) changeDevices(x *scenario.Fault, pick func(int) int) {
	n := w.nodeWithDevices(x.Group, pick)
	if n == nil {
		return
	}
	before := w.slicesOf(n.obj.Name)
	w.republish(n, before, func(s *resourcev1.ResourceSlice) {
		if last := len(s.Spec.Devices) - 1; last > 0 && len(s.Spec.Devices[last].ConsumesCounters) == 0 {
			s.Spec.Devices = s.Spec.Devices[:last]
		}
	})
	w.after(cmp.Or(x.For.Duration, 5*time.Minute), phaseWorld, func() { w.republish(n, before, func(*resourcev1.ResourceSlice) {}) })
}

// republish has the drivers of a node write slices anew, each changed by a function.
func (w *World) republish(n *node, list []*resourcev1.ResourceSlice, change func(*resourcev1.ResourceSlice)) {
	if w.nodes[n.obj.Name] != n {
		return
	}
	generation := w.nextGeneration(n.obj.Name)
	var now []*resourcev1.ResourceSlice
	for _, s := range list {
		s = s.DeepCopy()
		s.Spec.Pool.Generation = generation
		change(s)
		now = append(now, s)
	}
	w.writeSlices(n, now)
}

// taintDevice has somebody taint a device of a node by a DeviceTaintRule, which is removed later.
func (w *World) taintDevice(x *scenario.Fault, effect resourcev1.DeviceTaintEffect, pick func(int) int) {
	n := w.nodeWithDevices(x.Group, pick)
	if n == nil {
		return
	}
	list := slices.DeleteFunc(w.slicesOf(n.obj.Name), func(s *resourcev1.ResourceSlice) bool { return len(s.Spec.Devices) == 0 })
	if len(list) == 0 {
		return
	}
	s := list[pick(len(list))]
	rule := &resourcev1.DeviceTaintRule{}
	rule.Name = fmt.Sprint("taint-", w.faults.serial)
	driver, pool, device := s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[pick(len(s.Spec.Devices))].Name
	rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &device}
	rule.Spec.Taint = resourcev1.DeviceTaint{Key: "example.com/unhealthy", Effect: effect, TimeAdded: ptr.To(w.stamp())}
	w.storeObject(rule)
	w.taintsChanged()
	w.noteChange()
	w.after(cmp.Or(x.For.Duration, 10*time.Minute), phaseWorld, func() {
		w.removeObject(rule)
		w.noteChange()
	})
}

// objectsOf returns the stored objects of a type, each once and in the order of their creation.
func objectsOf[O cluster.Object](w *World) (out []O) {
	seen := map[objectKey]bool{}
	for _, key := range w.stored {
		if o, ok := w.objects[key].(O); ok && !seen[key] {
			seen[key] = true
			out = append(out, o)
		}
	}
	return out
}
