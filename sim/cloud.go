package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is the cloud: groups with a target, and instances on their way to being
// nodes. What must hold: a group has at most as many instances as its target; it has
// fewer when instances vanish without the cloud's saying so (scenario.LaunchVanishes).
//
//	ordered ── the launch delay is over ──▶ booting ── has written its boot ──▶ registered ── startup ──▶ isReady
//	   └─ the launch fails: stays, with the reason       └─ NeverRegisters: stays     └─ NeverReady: stays
//
// An instance leaves from any state when Berth deletes it or the cloud takes it back.

// group is a node group as the cloud has it.
type group struct {
	id        string // its name, by which Berth knows it; the configured one unless it was renamed
	cfg       *scenario.NodeGroup
	target    int
	instances []*instance                // in the order in which they were ordered
	told      float64                    // what Berth is told that a node costs an hour, 0 for nothing
	template  *v1.Node                   // what new nodes look like, as the group's list has it
	devices   []resourcev1.ResourceSlice // those of new nodes, if the list has them
	// listed is what the last list said of instances; nil when it isn't true any more. It was
	// handed out, so it isn't changed.
	listed      []nodegroup.Instance
	nextLaunch  time.Duration   // not before this time, by launchesPerSecond
	serial      int             // of the last instance's name
	lastExtra   time.Duration   // when the group last got larger than Berth may take it for, 0 for never
	removals    []time.Duration // when Berth removed a node, of the last buyBackTime; those that were bought back left out
	lastReclaim time.Duration   // when the cloud last took an instance back, 0 for never
	unlisted    bool            // no list has told how the group is since one that didn't have it
	toldAt      time.Duration   // of when the last list is that this process of Berth's has got and that has the group; -1 for none
	taintedNew  bool            // Berth saw a node of it first with somebody's taint, and can't know that new ones lack it
	mixed       bool            // Berth doesn't know of a node that it came from another group, and may take new ones for like it
	vanished    []time.Duration // when the instances were ordered that the target counts and that were never made
	freed       []freed         // the names of instances that are gone, the first first
	last        nodegroup.Group // as the last list had it
	renamed     time.Duration   // when it got its name, 0 for from the beginning
}

// freed is the name of an instance that is gone.
type freed struct {
	name string
	at   time.Duration
}

type instanceState uint8

const (
	ordered instanceState = iota
	booting
	registered
	isReady
)

// price returns what a node of the group costs an hour: what Berth is told where the cloud has no price.
// Costs in reports are what the cloud charges, even if Berth isn't told.
func (g *group) price() float64 { return cmp.Or(g.cfg.PricePerHour, g.told) }

// instance is an instance of the cloud, a node or not.
type instance struct {
	id, name  string
	group     *group
	state     instanceState
	failed    string // why the launch failed, "" if it didn't
	cancelled bool   // Berth had it deleted since no pod needed it any more
	boot      *flow  // what it writes while it boots
	node      *node  // nil before it registers
	gone      bool
	made      time.Duration // when it was ordered
	billed    time.Duration // since when it costs, -1 for not yet
	listed    time.Duration // from when on a list has it
	asked     bool          // Berth has asked for its deletion
	used      bool          // a pod other than a daemon's has been on its node, or, in an atomic group, on one of the others'
	moved     time.Duration // when it came from another group, 0 for never
	lingers   time.Duration // how long its Node object stays when it is gone, 0 for as the faults say
}

// addGroup adds a node group; groups stay sorted by name, since their order reaches events.
func (w *World) addGroup(cfg *scenario.NodeGroup) {
	g := &group{id: cfg.Name, cfg: cfg, toldAt: -1, told: w.run.PriceTold(cfg), template: cfg.NewNode(cfg.Name + "-template")}
	if cfg.DevicesTold {
		g.devices = simulateddevices.Template(cfg.Devices)
	}
	w.groups = append(w.groups, g)
	w.sortGroups()
}

// sortGroups is called after a group was added or renamed.
func (w *World) sortGroups() {
	slices.SortFunc(w.groups, func(a, b *group) int { return strings.Compare(a.id, b.id) })
}

// group returns the group of a name, nil for none.
func (w *World) group(id string) *group {
	if i := slices.IndexFunc(w.groups, func(g *group) bool { return g.id == id }); i >= 0 {
		return w.groups[i]
	}
	return nil
}

// newInstance adds an instance that was ordered now. It doesn't change the group's target.
// The list that was handed out is stale from now on.
func (w *World) newInstance(g *group, name string) *instance {
	m := &instance{id: instanceID(g, name), name: name, group: g, made: w.now, billed: -1}
	g.instances, g.listed = append(g.instances, m), nil
	w.stats.dirty = true
	return m
}

// instanceName returns the name of a new instance, which may be one that is free again.
// Names count up, so that one that comes again does so on purpose.
func (w *World) instanceName(g *group) string {
	g.serial++
	if name := w.nameAgain(g); name != "" {
		return name
	}
	return fmt.Sprintf("%s-%04d", g.cfg.Name, g.serial)
}

// initialInstance adds an instance that exists, ready, at the beginning.
// It skips the launch, with its faults and delays, and the queue of events.
func (w *World) initialInstance(g *group) {
	m := w.newInstance(g, w.instanceName(g))
	w.bill(m)
	m.state = isReady
	n := w.nodeOf(m)
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	w.addNode(n, m)
	for _, s := range simulateddevices.Slices(g.cfg.Devices, n.Name, w.nextGeneration(n.Name)) {
		w.storeObject(s)
	}
}

// nodeOf returns the Node that an instance registers as.
// With the fault WrongShape it has half of the CPU and memory that its group promises.
func (w *World) nodeOf(m *instance) *v1.Node {
	n := m.group.cfg.NewNode(m.name)
	n.Spec.ProviderID = m.id
	if w.faults.hits(w, scenario.WrongShape, m.group.cfg.Name, m.name) {
		n.Status.Allocatable = maps.Clone(n.Status.Allocatable)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			q := n.Status.Allocatable[name]
			n.Status.Allocatable[name] = *resource.NewMilliQuantity(q.MilliValue()/2, q.Format)
		}
	}
	for _, name := range m.group.cfg.Images {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{name}})
	}
	return n
}

// bill begins to charge for an instance.
// Clouds charge from when the instance runs, not from its order.
func (w *World) bill(m *instance) {
	m.billed = w.now
	w.stats.instanceBilled(m)
}

// listGroups returns the groups as a provider lists them.
// A list may be wrong in the ways that the faults say: a group is missing, listed twice, or
// without a template.
func (w *World) listGroups() []nodegroup.Group {
	out := make([]nodegroup.Group, 0, len(w.groups))
	for _, g := range w.groups {
		if !g.unlisted && w.faults.hits(w, scenario.GroupUnlisted, g.cfg.Name, g.cfg.Name, fmt.Sprint(w.cloud.made)) {
			// No two lists one after the other leave a group out.
			g.unlisted = true
			continue
		}
		x := nodegroup.Group{ID: g.id, Min: g.cfg.Min, Max: g.cfg.Max, Target: g.target, Price: g.told,
			Template: g.template, Devices: g.devices, Instances: w.withOthers(g, g.list(w.now))}
		if w.faults.anyInForce(w, scenario.NoTemplate, g.cfg.Name) {
			x.Template, x.TemplateError = nil, "the cloud's API refused the call"
		}
		entries := w.perhapsTwice(g, x)
		g.unlisted = g.unlisted && !tells(entries)[g.id]
		out = append(out, entries...)
		g.last = x
	}
	return out
}

// list returns the instances as a provider lists them.
// An instance appears in the list some time after its order, as clouds' APIs are eventually
// consistent.
func (g *group) list(now time.Duration) []nodegroup.Instance {
	if g.listed == nil {
		g.listed = make([]nodegroup.Instance, 0, len(g.instances))
		for _, m := range g.instances {
			if m.listed <= now {
				g.listed = append(g.listed, nodegroup.Instance{ID: m.id, Node: m.name, Failed: m.failed})
			}
		}
	}
	return g.listed
}

// lateOrder is how long after a group got larger an order may be carried out that doesn't count with it.
// Calls that were in flight that long are carried out by providers all the same.
const lateOrder = 3 * time.Minute

// increaseTarget orders n instances of a group. An order is refused as a whole; the
// error's text gets into a decision's reason, and so into the digest.
func (w *World) increaseTarget(id string, n int) error {
	g := w.group(id)
	if g == nil {
		return fmt.Errorf("there is no node group %q", id)
	}
	if n <= 0 || g.target+n > g.cfg.Max {
		// Berth may not have seen yet that the cloud made more than it was asked for, or that a node has
		// come from another group, or the order is from before that and carried out late.
		// Only an order beyond the maximum that Berth could know of is a violation.
		if g.lastExtra == 0 || w.now-g.lastExtra > lateOrder && g.lastExtra < g.toldAt {
			w.violation("group %s is asked for %d more nodes at %d of %d", id, n, g.target, g.cfg.Max)
		}
		return fmt.Errorf("node group %s is at %d of %d", id, g.target, g.cfg.Max)
	}
	// Stock is what the cloud has for the group at all, whatever its maximum says.
	if w.faults.anyInForce(w, scenario.StockOut, g.cfg.Name) || g.cfg.Stock != nil && g.target+n > *g.cfg.Stock {
		w.stats.FailedLaunches += n
		return &nodegroup.Error{Class: nodegroup.OutOfResources, Message: fmt.Sprintf("out of stock: no %d instances of group %s", n, id)}
	}
	// The target grows at once; instances follow one by one.
	g.target += n
	w.noteChange()
	for range n {
		w.stats.nodeOrdered(g)
		name := w.instanceName(g)
		// The target counts it, but no instance will ever exist.
		if w.faults.hits(w, scenario.LaunchVanishes, g.cfg.Name, name) {
			w.stats.FailedLaunches++
			g.vanished = append(g.vanished, w.now)
			continue
		}
		w.launch(w.newInstance(g, name))
		// Some clouds rebalance by making one more than was asked for.
		if g.target < g.cfg.Max && w.faults.hits(w, scenario.ExtraInstance, g.cfg.Name, name) {
			g.target++
			g.lastExtra = w.now
			w.launch(w.newInstance(g, w.instanceName(g)))
		}
	}
	return nil
}

// launch takes an instance from its order to its boot.
// Whatever is random about it is drawn by the instance's name, not by the order of events.
func (w *World) launch(m *instance) {
	g := m.group
	cfg := g.cfg
	w.listLate(m)
	at := w.now + cfg.LaunchDelay.Between(w.chance("launch", m.name))
	// The rate is of the group: launches queue behind each other.
	if cfg.LaunchesPerSecond > 0 {
		at = max(at, g.nextLaunch)
		g.nextLaunch = at + simulatedgroup.Interval(cfg.LaunchesPerSecond)
	}
	w.after(at-w.now, phaseWorld, func() {
		if m.gone {
			return
		}
		// Either the fault of the scenario or the group's own failure rate.
		if w.faults.hits(w, scenario.LaunchFails, cfg.Name, m.name) || w.chance("fails", m.name) < cfg.FailureRate {
			m.failed, g.listed = "the launch failed", nil
			w.stats.FailedLaunches++
			w.noteChange()
			return
		}
		// What a boot writes goes through the storage that all instances share, so that
		// many at once are slower.
		m.state = booting
		w.bill(m)
		w.noteChange()
		m.boot = w.storage.write(bytesOf(cfg.Boot.Bytes), limitOf(cfg.Boot.Rate, cfg.DiskRate), 1, func() { w.register(m) })
	})
}

// register creates the instance's Node, which is ready after its startup.
// It joins tainted as not ready, as the kubelet does, until its startup is over.
func (w *World) register(m *instance) {
	cfg := m.group.cfg
	if m.gone || w.faults.hits(w, scenario.NeverRegisters, cfg.Name, m.name) {
		return
	}
	m.state = registered
	// From then on every list has the instance, however late it was to appear.
	m.listed, m.group.listed = 0, nil
	n := w.nodeOf(m)
	// The clock of some machines is ahead; Berth must not take such a node for new for
	// ever.
	if x := w.faults.thatHits(w, scenario.FutureStamp, cfg.Name, m.name); x != nil {
		n.CreationTimestamp = metav1.NewTime(w.stamp().Add(cmp.Or(x.For.Duration, time.Hour)))
	}
	n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	w.stats.Launched++
	node := w.addNode(n, m)
	w.after(cfg.Startup.Between(w.chance("startup", m.name)), phaseWorld, func() {
		if m.gone || node.dead || w.faults.hits(w, scenario.NeverReady, cfg.Name, m.name) {
			return
		}
		m.state = isReady
		w.becomeReady(node)
	})
}

// terminate takes an instance away, and lowers its group's target by it. Its Node goes
// a moment later; byBerth says whether Berth deleted the instance.
// Failed launches are counted once: here, or when they failed.
func (w *World) terminate(m *instance, byBerth bool) {
	if m.gone {
		return
	}
	m.gone = true
	g := m.group
	g.instances, g.listed = slices.DeleteFunc(g.instances, func(x *instance) bool { return x == m }), nil
	g.target--
	g.freed = append(g.freed, freed{m.name, w.now})
	w.storage.stop(m.boot)
	w.stats.instanceGone(m)
	w.noteChange()
	if n := m.node; n != nil {
		n.dead = true
		if byBerth {
			w.stats.nodeRemoved(m)
		}
		// Until then the node's pods are still shown, as for a machine that lost its power.
		w.after(w.between(nil, 100, 2000, "unregister", m.name), phaseWorld, func() { w.unregister(n, byBerth) })
		return
	}
	switch {
	case m.failed != "": // it counts already
	case m.cancelled:
		w.stats.CancelledLaunches++
	default:
		w.stats.FailedLaunches++
	}
}

// deleteInstance deletes the instance that a deletion names, by its ID or its node; one
// that is gone already is no error.
// A deletion below the minimum is a violation, unless Berth couldn't know of what happened
// just before.
func (w *World) deleteInstance(id string, d step.NodeDeletion) error {
	g := w.group(id)
	if g == nil {
		return fmt.Errorf("there is no node group %q", id)
	}
	for _, m := range g.instances {
		if m.id == d.Instance || d.Instance == "" && m.name == d.Node {
			// Berth may not have seen yet that the cloud took an instance back.
			stale := g.lastReclaim > 0 && (w.now-g.lastReclaim < time.Minute || g.lastReclaim >= g.toldAt)
			// With that flag an instance that never registered may go below the minimum.
			if g.target-1 < g.cfg.Min && !stale && m.failed == "" && !(m.node == nil && w.run.Autoscale.ForceDeleteUnregistered) {
				w.violation("group %s is shrunk to %d, below its min %d", id, g.target-1, g.cfg.Min)
			}
			m.cancelled = d.Reason == step.InstanceCancelled
			w.terminate(m, true)
			return nil
		}
	}
	// It is in another group: that a deletion names the wrong one is Berth's error, and
	// must change nothing.
	if m := w.instance(d.Instance); m != nil {
		return fmt.Errorf("instance %s isn't in node group %q", d.Instance, id)
	}
	if !w.knownGone(g, d.Node) {
		g.lastExtra = w.now // Berth takes the group for smaller than it is
	}
	return nil
}

// knownGone reports whether Berth has been told for a while that the instance of a node is gone.
// Once a list without it has come after a while, Berth can't claim not to have known.
func (w *World) knownGone(g *group, node string) bool {
	i := slices.IndexFunc(g.freed, func(f freed) bool { return f.name == node })
	return i >= 0 && g.freed[i].at+settled < min(w.now, g.toldAt) && w.now > w.faults.stalled+settled
}

// decreaseTarget lowers a group's target by n, to the instances that it has at least.
// Only what was never made can be given up: instances have to be deleted.
func (w *World) decreaseTarget(id string, n int) error {
	g := w.group(id)
	if g == nil || n <= 0 || g.target-n < len(g.instances) {
		return fmt.Errorf("node group %q can't give up %d instances", id, n)
	}
	g.target -= n
	// The oldest ones that were never made are the ones given up.
	g.vanished = g.vanished[min(n, len(g.vanished)):]
	w.noteChange()
	return nil
}
