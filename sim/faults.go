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
		if on(x, w.now, group) && seeded.Float(w.seed, append([]string{kind}, name...)...) < x.Rate {
			return true
		}
	}
	return false
}

// lasts tells whether a fault without a rate is on.
func (f *faults) lasts(w *World, kind, group string) bool {
	return slices.ContainsFunc(f.byKind[kind], func(x *scenario.Fault) bool { return on(x, w.now, group) })
}

func on(x *scenario.Fault, now time.Duration, group string) bool {
	return now >= x.From.Duration && (x.Until.Duration == 0 || now < x.Until.Duration) && (x.Group == "" || x.Group == group)
}

// startFaults sets off the events.
func (w *World) startFaults() {
	w.faults.byKind = map[string][]*scenario.Fault{}
	for i := range w.run.Spec.Faults {
		x := &w.run.Spec.Faults[i]
		w.faults.byKind[x.Kind] = append(w.faults.byKind[x.Kind], x)
		if x.Until.Duration > 0 {
			w.after(x.Until.Duration, moves, w.touch) // its end is a change
		}
		for _, at := range x.At {
			w.after(at.Duration, moves, func() { w.happen(x) })
		}
		if x.PerHour > 0 {
			w.idly(x.From.Duration, moves, func() { w.recur(x, i, 0) })
		}
	}
}

// recur has an event come again and again, at random.
func (w *World) recur(x *scenario.Fault, i, n int) {
	mean := time.Duration(float64(time.Hour) / x.PerHour)
	w.idly(seeded.Exp(mean, w.seed, "recur", fmt.Sprint(i), fmt.Sprint(n)), moves, func() {
		if x.Until.Duration == 0 || w.now < x.Until.Duration {
			w.happen(x)
			w.recur(x, i, n+1)
		}
	})
}

func (f *faults) lasting(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// happen has an event come about.
func (w *World) happen(x *scenario.Fault) {
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
		var list []*machine
		for _, g := range w.groups {
			if x.Group == "" || g.cfg.Name == x.Group {
				for _, m := range g.machines {
					if m.state != ordered {
						list = append(list, m)
					}
				}
			}
		}
		if len(list) > 0 {
			m := list[pick(len(list))]
			m.group.taken = w.now
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
			w.after(f.lasting(x.For.Duration, 10*time.Minute), moves, func() {
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
