package sim

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/sim/scenario"
)

// faults is what goes wrong.
type faults struct {
	byKind  map[string][]*scenario.Fault
	stalled time.Duration // until when watches are
	serial  int
}

// hits tells whether a fault of a kind hits the thing named.
func (f *faults) hits(w *World, kind, group string, name ...string) bool {
	for _, x := range f.byKind[kind] {
		if inForce(x, w.now, group) && seeded.Float(w.seed, append([]string{kind}, name...)...) < x.Rate {
			return true
		}
	}
	return false
}

// anyInForce tells whether a fault without a rate is on.
func (f *faults) anyInForce(w *World, kind, group string) bool {
	return slices.ContainsFunc(f.byKind[kind], func(x *scenario.Fault) bool { return inForce(x, w.now, group) })
}

func inForce(x *scenario.Fault, now time.Duration, group string) bool {
	return now >= x.From.Duration && (x.Until.Duration == 0 || now < x.Until.Duration) && (x.Group == "" || x.Group == group)
}

// startFaults sets off the events.
func (w *World) startFaults() {
	w.faults.byKind = map[string][]*scenario.Fault{}
	for i := range w.run.Spec.Faults {
		x := &w.run.Spec.Faults[i]
		w.faults.byKind[x.Kind] = append(w.faults.byKind[x.Kind], x)
		if x.Until.Duration > 0 {
			w.after(x.Until.Duration, phaseWorld, w.noteChange) // its end is a change
		}
		for _, at := range x.At {
			w.after(at.Duration, phaseWorld, func() { w.runEvent(x) })
		}
		if x.PerHour > 0 {
			w.afterInBackground(x.From.Duration, phaseWorld, func() { w.repeatEvent(x, i, 0) })
		}
	}
}

// repeatEvent has an event come again and again, at random.
func (w *World) repeatEvent(x *scenario.Fault, i, n int) {
	mean := time.Duration(float64(time.Hour) / x.PerHour)
	w.afterInBackground(seeded.Exp(mean, w.seed, "recur", fmt.Sprint(i), fmt.Sprint(n)), phaseWorld, func() {
		if x.Until.Duration == 0 || w.now < x.Until.Duration {
			w.runEvent(x)
			w.repeatEvent(x, i, n+1)
		}
	})
}

func (f *faults) lasting(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// runEvent has an event come about.
func (w *World) runEvent(x *scenario.Fault) {
	f := &w.faults
	f.serial++
	pick := func(n int) int {
		return int(seeded.Uint64(w.seed, "happen", x.Kind, fmt.Sprint(f.serial)) % uint64(n))
	}
	switch x.Kind {
	case scenario.CrashBerth:
		w.berth.crash(f.lasting(x.For.Duration, 5*time.Second))
	case scenario.WatchStall:
		f.stalled = max(f.stalled, w.now+f.lasting(x.For.Duration, 30*time.Second))
	case scenario.SpotReclaim:
		var list []*instance
		for _, g := range w.groups {
			if x.Group == "" || g.cfg.Name == x.Group {
				for _, m := range g.instances {
					if m.state != ordered {
						list = append(list, m)
					}
				}
			}
		}
		if len(list) > 0 {
			m := list[pick(len(list))]
			m.group.lastReclaim = w.now
			w.terminate(m, false)
		}
	case scenario.DeletePod, scenario.EvictPod:
		list := slices.DeleteFunc(w.sortedPods(), func(p *pod) bool { return !p.active() || x.Kind == scenario.EvictPod && p.node == nil })
		if len(list) == 0 {
			return
		}
		if p := list[pick(len(list))]; x.Kind == scenario.EvictPod {
			w.evict(p)
		} else {
			w.deletePod(p)
		}
	case scenario.Cordon:
		if n := w.anyNode(x.Group, pick); n != nil {
			w.changeNode(n, func(o *v1.Node) { o.Spec.Unschedulable = true })
			w.after(f.lasting(x.For.Duration, 10*time.Minute), phaseWorld, func() {
				if !n.dead {
					w.changeNode(n, func(o *v1.Node) { o.Spec.Unschedulable = false })
				}
			})
		}
	case scenario.Relabel:
		if n := w.anyNode(x.Group, pick); n != nil {
			zones := []string{"a", "b", "c"}
			zone := zones[pick(len(zones))]
			w.changeNode(n, func(o *v1.Node) {
				fresh := map[string]string{v1.LabelTopologyZone: zone}
				for k, v := range o.Labels {
					if k != v1.LabelTopologyZone {
						fresh[k] = v
					}
				}
				o.Labels = fresh
			})
		}
	}
}

func (w *World) anyNode(group string, pick func(int) int) *node {
	list := slices.DeleteFunc(w.sortedNodes(), func(n *node) bool { return group != "" && n.group != group })
	if len(list) == 0 {
		return nil
	}
	return list[pick(len(list))]
}
