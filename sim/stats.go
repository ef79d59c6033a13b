package sim

import (
	"math"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/sim/scenario"
)

// This file counts what happens in a world: the summary, and the numbers of now, of which
// samples.go keeps some. What must hold: each change of a count that is summed over
// time (requests, allocatable, price) comes after integrate, so that what was true
// before the change is summed as it was.

// churnTime is how soon after its launch the removal of a node counts as churn.
const churnTime = 15 * time.Minute

// Stats count what happens in a world. Of the embedded Summary, Run's result has more
// than is filled in here along the way.
type Stats struct {
	w *World
	scenario.Summary
	// Pods now: without a node, on a node but not running, running.
	Pending, Bound, Running int
	// Instances now: ordered or booting; nodes that aren't ready yet; ready ones; those
	// with the taint of a node deletion.
	Launching, Starting, Ready, Draining int
	// Since the beginning.
	Launched, FailedLaunches, CancelledLaunches, Evicted int
	// Violations are what happened that must not, the first 1,000.
	Violations []string
	// Unused are the nodes that Berth bought and that, when the world has come to rest,
	// have no pod but those of DaemonSets. Options.Check finds them.
	Unused []string
	// InVain are the nodes that Berth bought and that are gone without a pod but those of DaemonSets
	// having been on them.
	InVain []string
	// Devices count what became of resource claims.
	Devices DeviceStats
	// Samples are in order of time, at least sampleEvery apart.
	Samples []Sample
	// Log has the first decisions of each kind but "waits", for the report.
	Log []step.Decision

	firstEviction                 time.Duration // by Berth, of a pod whose node was to go
	gap                           time.Duration // Drain.GapSeconds of the replacements that run
	requestedCPU, requestedMemory int64         // milli-CPU and bytes of pods on nodes
	readyCPU, readyMemory         int64         // allocatable of ready nodes
	requestedGPUs, readyGPUs      int64
	integrated                    time.Duration // up to when the sums go
	useCPU, useMemory             float64       // requested, times seconds
	haveCPU, haveMemory           float64       // allocatable, times seconds
	useGPUs, haveGPUs             float64       // as above
	timesToBound, timesToRunning  []float64
	timesToEnd                    []float64
	price                         float64 // per hour, of all that is billed
	billedInstances               int
	dirty                         bool // something has changed since the last sample
	// lastChangeSeen is World.lastChange when a decision was last counted; the others
	// are the decisions, the attempts without success, and what was said of nodes that stay,
	// more than restTime after it.
	lastChangeSeen                         time.Duration
	restDecisions, restAttempts, restStays int
}

// DeviceStats count how often claims were given devices by Berth, how often a bind that came to nothing took back what
// it had written, how often the controller freed devices of pods that ran no more, how often a bind found devices that
// weren't ready, and how often Berth took devices away from a claim that kept its pod from every node.
type DeviceStats struct{ Given, TakenBack, Freed, NotReady, Deallocated, Edited int }

// restTime is how long after the last change decisions must have come to an end, but for
// those of the leftover sweep.
const restTime = 10 * time.Minute

// logged is how many decisions of a kind Stats.Log keeps.
const logged = 20_000

// newStats returns the counts of a world at its beginning: nothing is counted before objects are added.
func newStats(w *World) *Stats {
	s := &Stats{w: w}
	s.Name, s.Seed = w.run.Name, w.run.Spec.Seed
	s.Decisions = map[string]int{}
	return s
}

// integrate brings the sums over time up to now. Call it before each change of what
// they sum.
func (s *Stats) integrate() {
	dt := (s.w.now - s.integrated).Seconds()
	s.dirty = true
	if dt <= 0 {
		return
	}
	s.integrated = s.w.now
	s.useCPU += float64(s.requestedCPU) * dt
	s.useMemory += float64(s.requestedMemory) * dt
	s.haveCPU += float64(s.readyCPU) * dt
	s.haveMemory += float64(s.readyMemory) * dt
	s.useGPUs += float64(s.requestedGPUs) * dt
	s.haveGPUs += float64(s.readyGPUs) * dt
	s.Cost += s.price * dt / 3600
	s.NodeHours += float64(s.Starting+s.Ready+s.Draining+s.booting()) * dt / 3600
}

// booting returns how many instances are charged for and aren't nodes yet.
func (s *Stats) booting() int { return s.billedInstances - s.Starting - s.Ready - s.Draining }

// podAdded counts a new pod, without a node or bound from the beginning.
func (s *Stats) podAdded(p *pod, bound bool) {
	s.integrate()
	s.Pods.Total++
	if bound {
		s.Bound++
		s.Pods.Bound++
	} else {
		s.Pending++
	}
}

// podBound counts a pod that got its node.
func (s *Stats) podBound(p *pod) {
	s.integrate()
	s.Pending--
	s.Bound++
	s.Pods.Bound++
	s.timesToBound = append(s.timesToBound, (s.w.now - p.arrived).Seconds())
	s.replacementBound(p)
}

// podRunning counts a bound pod that runs from now on.
func (s *Stats) podRunning(p *pod) {
	s.integrate()
	s.Bound--
	s.Running++
	s.timesToRunning = append(s.timesToRunning, (s.w.now - p.arrived).Seconds())
	s.replacementRuns(p)
}

// podGone takes a pod that hasn't ended out of the counts.
func (s *Stats) podGone(p *pod) {
	s.integrate()
	s.replacementGone(p)
	switch {
	case p.ready:
		s.Running--
	case p.obj.Spec.NodeName != "":
		s.Bound--
	default:
		s.Pending--
	}
}

// podEnded counts a pod that ran until it succeeded or failed.
func (s *Stats) podEnded(p *pod, succeeded bool) {
	s.integrate()
	s.Running--
	if succeeded {
		s.Pods.Completed++
		s.timesToEnd = append(s.timesToEnd, (s.w.now - p.arrived).Seconds())
	}
}

// podLost counts a pod whose node is gone. If Berth deleted the node, a pod that was
// to stay there is a violation: nobody evicted it.
func (s *Stats) podLost(p *pod, byBerth bool) {
	s.Pods.Lost++
	if byBerth && s.w.checkLost(p) && !s.w.disruptable(p) {
		s.PDBViolations++
	}
}

// requested adds what a pod that is put on a node requests, or takes it away when it leaves.
func (s *Stats) requested(p *pod, sign int64) {
	s.integrate()
	s.requestedCPU += sign * p.cpu
	s.requestedMemory += sign * p.memory
	s.requestedGPUs += sign * p.gpus
}

// nodeChanged counts a node that is new or has changed, in the state that it has now.
func (s *Stats) nodeChanged(n *node) {
	s.integrate()
	s.uncount(n)
	n.counted = true
	draining := n.hasTaint(autoscaler.ToBeDeletedTaint)
	switch {
	case draining:
		n.countedAs = &s.Draining
	case n.ready():
		n.countedAs = &s.Ready
	default:
		n.countedAs = &s.Starting
	}
	*n.countedAs++
	if n.ready() {
		n.cpu, n.memory = n.obj.Status.Allocatable.Cpu().MilliValue(), n.obj.Status.Allocatable.Memory().Value()
		s.readyCPU += n.cpu
		s.readyMemory += n.memory
		n.gpus = gpusOf(n.obj.Status.Allocatable)
		s.readyGPUs += n.gpus
	}
	s.Nodes.Peak = max(s.Nodes.Peak, len(s.w.nodes))
}

// uncount takes a node out of the count of its former state. A node that wasn't counted
// before and has no instance exists since the beginning: it is billed from now on.
func (s *Stats) uncount(n *node) {
	if !n.counted {
		if n.instance == nil {
			s.billedInstances++
		}
		return
	}
	*n.countedAs--
	s.readyCPU -= n.cpu
	s.readyMemory -= n.memory
	s.readyGPUs -= n.gpus
	n.cpu, n.memory, n.gpus = 0, 0, 0
}

// nodeGone takes a node that was removed out of the counts.
func (s *Stats) nodeGone(n *node) {
	s.integrate()
	s.uncount(n)
	s.Nodes.Removed++
	if n.instance == nil {
		s.billedInstances--
	}
}

// instanceBilled counts an instance that is charged for from now on.
func (s *Stats) instanceBilled(m *instance) {
	s.integrate()
	s.billedInstances++
	s.price += m.group.price()
}

// instanceGone ends the charge for an instance.
func (s *Stats) instanceGone(m *instance) {
	s.integrate()
	if m.billed >= 0 {
		s.billedInstances--
		s.price -= m.group.price()
	}
	if m.node != nil && s.w.now-m.made < churnTime && m.made > 0 {
		s.Churn++
	}
}

// decided counts the decisions of a Step, and those that come so long after the last
// change that no decision should.
func (s *Stats) decided(list []step.Decision) {
	for i := range list {
		kind := string(list[i].Kind)
		s.Decisions[kind]++
		s.noteRest()
		switch {
		case s.w.now-s.w.lastChange < restTime:
		case list[i].Kind == step.Waits || list[i].Kind == step.GroupWaits || list[i].Kind == step.Failed:
			s.restAttempts++
		case list[i].Kind == step.NodeStays:
			s.restStays++
		case list[i].Kind == step.RoomKept || list[i].Kind == step.RoomLost || list[i].Kind == step.RoomMissing:
			// Room is kept in turns for gangs that don't start, for ever.
		case s.Pending > 0 && (list[i].Kind == step.ScaledUp || list[i].Kind == step.ScaleUpFailed || list[i].Kind == step.NotScaledUp || list[i].Kind == step.GroupNotPlanned):
			// Orders that the cloud refuses are tried again for ever, and what is lacking of a pod group changes with whose
			// turn it is to have room kept.
		default:
			s.restDecisions++
		}
		if s.Decisions[kind] <= logged && list[i].Kind != step.Waits {
			s.Log = append(s.Log, list[i])
		}
	}
}

// noteRest restarts the counts of decisions at rest when something has changed.
func (s *Stats) noteRest() {
	if s.lastChangeSeen != s.w.lastChange {
		s.lastChangeSeen, s.restDecisions, s.restAttempts, s.restStays = s.w.lastChange, 0, 0, 0
	}
}

// summary returns the outcome so far.
func (s *Stats) summary() *scenario.Summary {
	s.Samples = append(s.Samples, s.now(s.w.now))
	out := s.Summary
	out.Pods.Running, out.Pods.Pending, out.Pods.Evicted = s.Running, s.Pending, s.Evicted
	out.TimeToBound, out.TimeToRunning = scenario.QuantilesOf(s.timesToBound), scenario.QuantilesOf(s.timesToRunning)
	out.Nodes.Launched, out.Nodes.FailedLaunches, out.Nodes.CancelledLaunches = s.Launched, s.FailedLaunches, s.CancelledLaunches
	out.Nodes.Final = len(s.w.nodes)
	out.Resizes.Waiting = s.w.pendingResizes()
	out.Utilization.CPU, out.Utilization.Memory = round(share(s.useCPU, s.haveCPU)), round(share(s.useMemory, s.haveMemory))
	out.TimeToEnd = scenario.QuantilesOf(s.timesToEnd)
	out.GPUHours.Used, out.GPUHours.Idle = round(s.useGPUs/3600), round((s.haveGPUs-s.useGPUs)/3600)
	out.Nodes.InVain = s.inVain()
	s.unfinished(&out.Drain)
	out.NodeHours, out.Cost = round(s.NodeHours), round(s.Cost)
	out.Violations = len(s.Violations)
	out.PeakWriteRate = math.Round(s.w.storage.peak)
	out.VirtualSeconds = s.w.lastChange.Seconds()
	out.Digest = s.w.berth.ledger.Digest()
	return &out
}

// round keeps four digits after the point, for people to read.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// share returns a/b, 0 for a share of nothing.
func share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
