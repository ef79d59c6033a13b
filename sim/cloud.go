package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/sim/scenario"
)

// group is a node group as the cloud has it.
type group struct {
	cfg         *scenario.NodeGroup
	target      int
	instances   []*instance // in the order in which they were made
	nextSlot    time.Duration
	serial      int
	lastReclaim time.Duration // when the cloud last took a machine back
}

type instanceState uint8

const (
	ordered instanceState = iota
	booting
	registered
	isReady
)

// instance is a instance of the cloud, a node or not.
type instance struct {
	id, name string
	group    *group
	state    instanceState
	failed   string
	boot     *flow
	node     *node
	gone     bool
	made     time.Duration // when it was ordered
	billed   time.Duration // since when it costs, -1 for not yet
}

func (w *World) addGroup(cfg *scenario.NodeGroup) {
	w.groups = append(w.groups, &group{cfg: cfg})
	slices.SortFunc(w.groups, func(a, b *group) int {
		if a.cfg.Name < b.cfg.Name {
			return -1
		}
		return 1
	})
}

func (w *World) group(id string) *group {
	for _, g := range w.groups {
		if g.cfg.Name == id {
			return g
		}
	}
	return nil
}

func (w *World) newInstance(g *group, name string) *instance {
	m := &instance{id: "sim://" + g.cfg.Name + "/" + name, name: name, group: g, made: w.now, billed: -1}
	g.instances = append(g.instances, m)
	return m
}

func (w *World) instanceName(g *group) string {
	g.serial++
	return fmt.Sprintf("%s-%04d", g.cfg.Name, g.serial)
}

// initialInstance is one that exists at the beginning, ready.
func (w *World) initialInstance(g *group) {
	m := w.newInstance(g, w.instanceName(g))
	w.bill(m)
	m.state = isReady
	n := w.nodeOf(m)
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	w.addNode(n, m)
}

func (w *World) nodeOf(m *instance) *v1.Node {
	n := m.group.cfg.NewNode(m.name)
	n.Spec.ProviderID = m.id
	for _, name := range m.group.cfg.Images {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{name}})
	}
	return n
}

func (w *World) bill(m *instance) {
	m.billed = w.now
	w.stats.instanceBilled(m)
}

// groupList are the cloud's groups as a provider tells of them.
func (w *World) groupList() []nodegroup.Group {
	out := make([]nodegroup.Group, 0, len(w.groups))
	for _, g := range w.groups {
		x := nodegroup.Group{ID: g.cfg.Name, Min: g.cfg.Min, Max: g.cfg.Max, Target: g.target, Price: g.cfg.PricePerHour,
			Template: g.cfg.NewNode(g.cfg.Name + "-template"), Instances: make([]nodegroup.Instance, 0, len(g.instances))}
		for _, m := range g.instances {
			x.Instances = append(x.Instances, nodegroup.Instance{ID: m.id, Node: m.name, Failed: m.failed})
		}
		out = append(out, x)
	}
	return out
}

// increaseTarget orders machines.
func (w *World) increaseTarget(id string, n int) error {
	g := w.group(id)
	if g == nil {
		return fmt.Errorf("there is no node group %q", id)
	}
	if n <= 0 || g.target+n > g.cfg.Max {
		w.violation("group %s is asked for %d more nodes at %d of %d", id, n, g.target, g.cfg.Max)
		return fmt.Errorf("node group %s is at %d of %d", id, g.target, g.cfg.Max)
	}
	if w.faults.anyInForce(w, scenario.StockOut, id) || g.cfg.Stock != nil && g.target+n > *g.cfg.Stock {
		w.stats.FailedLaunches += n
		return fmt.Errorf("out of stock: no %d machines of group %s", n, id)
	}
	g.target += n
	w.noteChange()
	for range n {
		name := w.instanceName(g)
		if w.faults.hits(w, scenario.LaunchVanishes, id, name) {
			w.stats.FailedLaunches++
			continue
		}
		w.launch(w.newInstance(g, name))
	}
	return nil
}

// launch brings a machine up: delay, boot, node object, ready.
func (w *World) launch(m *instance) {
	g := m.group
	cfg := g.cfg
	at := w.now + cfg.LaunchDelay.Between(w.chance("launch", m.name))
	if cfg.LaunchesPerSecond > 0 {
		at = max(at, g.nextSlot)
		g.nextSlot = at + time.Duration(float64(time.Second)/cfg.LaunchesPerSecond)
	}
	w.after(at-w.now, phaseWorld, func() {
		if m.gone {
			return
		}
		if w.faults.hits(w, scenario.LaunchFails, cfg.Name, m.name) || w.chance("fails", m.name) < cfg.FailureRate {
			m.failed = "the launch failed"
			w.stats.FailedLaunches++
			w.noteChange()
			return
		}
		m.state = booting
		w.bill(m)
		w.noteChange()
		m.boot = w.storage.write(bytesOf(cfg.Boot.Bytes), limitOf(cfg.Boot.Rate, cfg.DiskRate), 1, func() { w.register(m) })
	})
}

// register makes the machine's node object.
func (w *World) register(m *instance) {
	cfg := m.group.cfg
	if m.gone || w.faults.hits(w, scenario.NeverRegisters, cfg.Name, m.name) {
		return
	}
	m.state = registered
	n := w.nodeOf(m)
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

// terminate takes a machine away; its group is smaller by it then.
func (w *World) terminate(m *instance, byBerth bool) {
	if m.gone {
		return
	}
	m.gone = true
	g := m.group
	g.instances = slices.DeleteFunc(g.instances, func(x *instance) bool { return x == m })
	g.target--
	w.storage.stop(m.boot)
	w.stats.instanceGone(m)
	w.noteChange()
	if n := m.node; n != nil {
		n.dead = true
		w.after(w.between(nil, 100, 2000, "unregister", m.name), phaseWorld, func() { w.removeNode(n, byBerth) })
		return
	}
	if m.failed == "" {
		w.stats.FailedLaunches++
	}
}

func (w *World) deleteInstance(id string, d step.NodeDeletion) error {
	g := w.group(id)
	if g == nil {
		return fmt.Errorf("there is no node group %q", id)
	}
	for _, m := range g.instances {
		if m.id == d.Instance || d.Instance == "" && m.name == d.Node {
			stale := g.lastReclaim > 0 && w.now-g.lastReclaim < time.Minute // Berth may not have seen that the group has shrunk
			if g.target-1 < g.cfg.Min && !stale && m.failed == "" && !(m.node == nil && w.run.Autoscale.ForceDeleteUnregistered) {
				w.violation("group %s is shrunk to %d, below its min %d", id, g.target-1, g.cfg.Min)
			}
			w.terminate(m, true)
			return nil
		}
	}
	return nil // gone already
}

func (w *World) lowerTarget(id string, n int) error {
	g := w.group(id)
	if g == nil || n <= 0 || g.target-n < len(g.instances) {
		return fmt.Errorf("node group %q can't give up %d machines", id, n)
	}
	g.target -= n
	w.noteChange()
	return nil
}

// cloudQueue is the way to the cloud: one call at a time, so that the groups
// it tells of are never older than the last order, as in the live edge.
type cloudQueue struct {
	jobs []cloudJob
	busy bool
	made int
}

type cloudJob struct {
	life int // of the Berth that asks
	call func() (answer func())
}

var errCloud = errors.New("the cloud's API refused the call")

// callCloud queues a call, which returns what delivers its answer; nil for none. The
// answer reaches only the Berth that asked.
func (w *World) callCloud(call func() (answer func())) {
	w.cloud.jobs = append(w.cloud.jobs, cloudJob{w.berth.life, call})
	w.sendCloudCall()
}

func (w *World) sendCloudCall() {
	q := &w.cloud
	if q.busy || len(q.jobs) == 0 {
		return
	}
	q.busy = true
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.made++
	half := w.between(w.run.Spec.API.CloudLatency, 500, 2000, "cloud", fmt.Sprint(q.made)) / 2
	w.afterInBackground(half, phaseCalls, func() {
		var answer func()
		if job.life == w.berth.life { // else it died before the call was made
			answer = job.call()
		}
		w.afterInBackground(half, phaseCalls, func() {
			if answer != nil && job.life == w.berth.life {
				answer()
			}
			q.busy = false
			w.sendCloudCall()
		})
	})
}

// scaleUp, removal, giveUp and look are Berth's calls to the cloud.
func (w *World) scaleUp(s step.ScaleUp, done func(error)) {
	w.callCloud(func() func() {
		name := fmt.Sprint(w.cloud.made)
		if w.faults.hits(w, scenario.CloudError, s.Group, name) {
			return func() { done(errCloud) }
		}
		err := w.increaseTarget(s.Group, s.Nodes)
		if w.faults.hits(w, scenario.CloudLost, s.Group, name) {
			err = errors.New("the cloud's answer was lost")
		}
		return func() { done(err) }
	})
}

func (w *World) removeInstance(d step.NodeDeletion, done func(error)) {
	w.callCloud(func() func() {
		name := fmt.Sprint(w.cloud.made)
		if w.faults.hits(w, scenario.CloudError, d.Group, name) {
			delete(w.berth.leaving, d.Node)
			return func() { done(errCloud) }
		}
		err := w.deleteInstance(d.Group, d)
		if w.faults.hits(w, scenario.CloudLost, d.Group, name) {
			err = errors.New("the cloud's answer was lost")
		} else if err != nil {
			delete(w.berth.leaving, d.Node)
		}
		return func() { done(err) }
	})
}

func (w *World) decreaseTarget(t step.TargetDecrease) {
	w.callCloud(func() func() {
		_ = w.lowerTarget(t.Group, t.Nodes) // the groups tell how it went
		return w.groupsAnswer()
	})
}

func (w *World) listGroups() {
	w.callCloud(func() func() {
		if w.faults.hits(w, scenario.CloudError, "", "look", fmt.Sprint(w.cloud.made)) {
			return nil
		}
		return w.groupsAnswer()
	})
}

// groupsAnswer returns what delivers the groups as the cloud has them now.
func (w *World) groupsAnswer() func() {
	groups := step.GroupsSet{Groups: w.groupList()}
	return func() { w.berth.receive(groups) }
}
