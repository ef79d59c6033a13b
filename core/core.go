package core

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/binding"
	"github.com/berthproject/berth/core/lifecycle/comparison"
	"github.com/berthproject/berth/core/lifecycle/consulting"
	"github.com/berthproject/berth/core/lifecycle/deallocation"
	"github.com/berthproject/berth/core/lifecycle/expectation"
	"github.com/berthproject/berth/core/lifecycle/headroom"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodecomparison"
	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/lifecycle/preemption"
	"github.com/berthproject/berth/core/lifecycle/reporting"
	"github.com/berthproject/berth/core/lifecycle/reservation"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// Config is what the core needs to know. Zero is a value: start from DefaultConfig.
type Config struct {
	Profiles []*framework.Profile
	Engine   engine.Options
	Queue    queue.Config
	// PodsPerStep is how many pods one Step decides on at most; 1 at least.
	PodsPerStep int
	// Autoscale is nil when Berth only schedules.
	Autoscale *Autoscale
	// ExternalScheduler says that another scheduler places the pods: decisions are what is
	// expected of it, and nothing is written to pods but what concerns scaling.
	// The profiles' preemption and extenders are left out then.
	ExternalScheduler bool
	// Shadow has the core decide as a leader would and carry out nothing: what another
	// scheduler does is compared with what it has decided. Nil for a core that is no shadow.
	// Extenders aren't asked. With Autoscale nodes are compared, too: with what another autoscaler
	// buys and removes. It doesn't go with ExternalScheduler.
	Shadow *Shadow
	// NoExpectedNominations leaves status.nominatedNodeName of a pod alone whose binding takes a while
	// (the feature gate NominatedNodeNameForExpectation, off).
	NoExpectedNominations bool
}

// Shadow configures a core that compares.
type Shadow struct {
	// GiveUp is how long a pod counts as being where Berth has put it while the other scheduler
	// doesn't place it; more than 0.
	GiveUp time.Duration
}

// DefaultShadow returns the times of berth run --shadow.
func DefaultShadow() Shadow { return Shadow{GiveUp: 5 * time.Minute} }

// DefaultConfig returns the configuration of a core that only schedules, with
// kube-scheduler's times.
func DefaultConfig(profiles ...*framework.Profile) Config {
	return Config{Profiles: profiles, Queue: queue.DefaultConfig(), PodsPerStep: 64}
}

// Autoscale configures the autoscaler, with the names of Cluster Autoscaler's flags. Zero
// is a value: start from DefaultAutoscale.
type Autoscale struct {
	// Expander names who chooses which node group grows, as --expander does; "" is
	// least-waste. Who gives a planner its chain reads it, the core doesn't.
	Expander string
	// MaxBinpackingTime and MaxNodeGroupBinpackingDuration bound how long a plan, and the
	// packing of one group, may take (--max-binpacking-time,
	// --max-nodegroup-binpacking-duration); 0 for no bound. Who gives a planner its
	// stopwatch reads them, the core doesn't.
	MaxBinpackingTime, MaxNodeGroupBinpackingDuration time.Duration

	ScanInterval          time.Duration // --scan-interval; more than 0
	UnneededTime          time.Duration // --scale-down-unneeded-time
	DelayAfterAdd         time.Duration // --scale-down-delay-after-add
	DelayAfterDelete      time.Duration // --scale-down-delay-after-delete
	DelayAfterFailure     time.Duration // --scale-down-delay-after-failure: of a failed removal
	ClusterDelays         bool          // --scale-down-delay-type-local=false: these are for the cluster, not per group
	DeleteDelayAfterTaint time.Duration // --node-delete-delay-after-taint
	MaxProvisionTime      time.Duration // --max-node-provision-time
	UnreadyTime           time.Duration // --scale-down-unready-time
	Removal               autoscaler.RemovalRules
	// SimulationTimeout bounds how long a plan looks for nodes to remove
	// (--scale-down-simulation-timeout); 0 for no bound. Who gives a planner its stopwatch
	// reads it, the core doesn't.
	SimulationTimeout time.Duration
	// CandidateTTL is how old the time in a node's DeletionCandidate taint may be to count
	// after a restart (--node-deletion-candidate-ttl); 0 for any age.
	CandidateTTL         time.Duration
	MaxBulkSoftTaints    int           // --max-bulk-soft-taint-count; 0 for no soft taints
	MaxBulkSoftTaintTime time.Duration // --max-bulk-soft-taint-time

	// How nodes are removed.
	MaxScaleDown       int           // --max-scale-down-parallelism
	MaxDrain           int           // --max-drain-parallelism
	EvictDaemonPods    bool          // --daemonset-eviction-for-empty-nodes
	KeepDaemonPods     bool          // --daemonset-eviction-for-occupied-nodes=false
	MaxPodEvictionTime time.Duration // --max-pod-eviction-time
	// Consolidation has several nodes replaced by cheaper ones (--consolidation), where that
	// saves ConsolidationThreshold times the share of pods that it moves
	// (--consolidation-threshold).
	Consolidation          bool    `json:",omitempty"`
	ConsolidationThreshold float64 `json:",omitempty"`
	// NodeBudgets bound how many nodes of a group may be on their way out
	// (--node-disruption-budget); none for no bound but those above.
	NodeBudgets            []nodebudget.Budget    `json:",omitempty"`
	MaxGracefulTermination time.Duration          // --max-graceful-termination-sec
	DrainPriority          []autoscaler.DrainTier // --drain-priority-config, by rising priority; none for one tier
	DeletionDelayTimeout   time.Duration          // --node-deletion-delay-timeout
	DeletionBatchInterval  time.Duration          // --node-deletion-batcher-interval
	KeepSchedulable        bool                   // --cordon-node-before-terminating=false
	// HomeTime is how long the room that was found for an evicted pod is kept for its
	// replacement, and how long such a pod counts where no room is kept (--evicted-pod-home-time).
	HomeTime time.Duration
	// NoHomes says that no room is kept for evicted pods' replacements (--keep-evicted-pod-homes=false).
	NoHomes bool
	// Interruptions are the marks by which the cloud says that it is about to take a node
	// (--node-interruption-marks); none to take no notice.
	Interruptions []autoscaler.InterruptionMark `json:",omitempty"`
	// MoveResizesAfter is how long the resize of a pod in place must have been pending before the pod moves
	// to another node (--move-pending-resizes-after); 0 for never.
	MoveResizesAfter time.Duration `json:",omitempty"`
	// ForceDeleteUnregistered deletes instances that don't become nodes even in a group
	// at its minimum (--force-delete-unregistered-nodes).
	ForceDeleteUnregistered bool
	DisableScaleDown        bool
	// DisableFrequentLoops limits plans to one every ScanInterval, also when pods that
	// no plan has seen find no node (--frequent-loops-enabled=false).
	DisableFrequentLoops bool
	// MaxNodesLaunching and MaxNodesLaunchingPerGroup are how many nodes may be launching
	// (--max-nodes-launching, --max-nodes-launching-per-group).
	MaxNodesLaunching, MaxNodesLaunchingPerGroup launching.Limit
	// Limits are what plans keep to; MaxNodesLaunching among them is set for each.
	Limits    autoscaler.Limits
	Readiness autoscaler.Readiness
	Balancing autoscaler.Balancing
	// PriorityCutoff is the lowest priority of pods that nodes are bought for
	// (--expendable-pods-priority-cutoff).
	PriorityCutoff int
	// AllowedSchedulers are those whose pods nodes are bought for, by schedulerName; none
	// for all (--allowed-scheduler-names). Beside another scheduler nodes are bought for
	// pods of BypassedSchedulers before that has called them unschedulable
	// (--bypassed-scheduler-names); they are among the allowed, where those are named.
	AllowedSchedulers, BypassedSchedulers []string
	// NewPodDelay is how long a pod has to wait before nodes are bought for it
	// (--new-pod-scale-up-delay); a pod's annotation may ask for longer.
	NewPodDelay    time.Duration
	InitialBackoff time.Duration // --initial-node-group-backoff-duration
	MaxBackoff     time.Duration // --max-node-group-backoff-duration
	BackoffReset   time.Duration // --node-group-backoff-reset-timeout
}

// Core is the state machine. Only one goroutine may call it.
type Core struct {
	cfg   Config
	mode  mode
	state *cluster.State
	sched *scheduler.Scheduler
	queue *queue.Queue
	pods  record.Pods // pods of our profiles that have no node in the API
	// others are pods without a node that other schedulers are to place.
	others map[types.UID]*v1.Pod
	woken  cluster.Seq // up to here the queue has been woken for changes
	// signedAt is the state's SignatureVersion that queued pods were signed with.
	signedAt uint64
	stepped  bool // Step has been called
	// turn is what lifecycle machines work with. Its Ready is the work since the last Step
	// ended, its Now the time of the last call.
	turn  *lifecycle.Turn
	scale autoscaling
	stats Stats // what no machine counts
	view  *explain.View
	machines
}

// machines are the lifecycle machines that follow pods. Those of the autoscaler are in
// autoscaling.
type machines struct {
	consulting   *consulting.Machine
	binding      *binding.Machine
	deallocation *deallocation.Machine
	preemption   *preemption.Machine
	nomination   *nomination.Machine
	expectation  *expectation.Machine
	reporting    *reporting.Machine
	reservation  *reservation.Machine
	headroom     *headroom.Machine
	podGroups    *podgroups.Machine
	comparison   *comparison.Machine // nil unless it is a shadow
	// nodeComparison is nil unless it is a shadow with Autoscale.
	nodeComparison *nodecomparison.Machine
}

// all returns the machines.
func (m *machines) all() [12]lifecycle.Machine {
	return [...]lifecycle.Machine{m.consulting, m.binding, m.deallocation, m.preemption, m.nomination, m.expectation, m.reporting, m.reservation, m.headroom, m.podGroups, m.comparison, m.nodeComparison}
}

// Stats count what the core has done.
type Stats struct {
	Scheduled     int // decisions for a node
	Unschedulable int // decisions to wait
	BindFailures  int
	Preemptions   int // decisions that others leave a node for a pod
	Victims       int // of them, in all
	Violations    int // of disruption budgets, by these victims
	// GroupViolations are those of Violations where a pod group preempted.
	GroupViolations int
	MissedWakeups   int // pods that only the leftover sweep found schedulable
	BadObjects      int // objects with quantities that had to be taken otherwise, or whose headroom can't be made out
	RefusedPlans    int // plans that answer no open request, or were made at a position that can't be
}

// check returns an error that names what no core can have.
func (cfg *Config) check() error {
	a, shadow := cfg.Autoscale, cfg.Shadow
	switch {
	case len(cfg.Profiles) == 0:
		return errors.New("no scheduling profile; give at least one")
	case cfg.PodsPerStep < 1:
		return fmt.Errorf("PodsPerStep is %d, and must be at least 1", cfg.PodsPerStep)
	case a != nil && a.ScanInterval <= 0:
		return fmt.Errorf("Autoscale.ScanInterval is %s, and must be greater than 0", a.ScanInterval)
	case cfg.ExternalScheduler && shadow != nil:
		return errors.New("ExternalScheduler and Shadow are both set, but a core that does not schedule has no placements to compare")
	case shadow != nil && shadow.GiveUp <= 0:
		return fmt.Errorf("Shadow.GiveUp is %s, and must be greater than 0", shadow.GiveUp)
	}
	return nil
}

// longestDeviceTimeout returns how long the devices of a claim may take to become ready: pods of several
// profiles may use it.
func longestDeviceTimeout(profiles []*framework.Profile) (longest time.Duration) {
	for _, p := range profiles {
		longest = max(longest, p.DeviceBindTimeout)
	}
	return longest
}

// New returns a core over an empty state that parses with the schema which
// the profiles were made with.
func New(schema *cluster.Schema, cfg Config) (*Core, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	switch {
	case cfg.ExternalScheduler:
		cfg.Profiles = expecting(cfg.Profiles)
	case cfg.Shadow != nil:
		cfg.Profiles = withoutExtenders(cfg.Profiles)
	}
	state, members := cluster.New(schema), &groupMembers{}
	groups := podgroups.New(state, members)
	cfg.Profiles = groups.In(cfg.Profiles)
	cfg.Queue.PodGroups = !cfg.ExternalScheduler
	sched, err := scheduler.New(state, cfg.Profiles, cfg.Engine)
	if err != nil {
		return nil, err
	}
	c := &Core{
		cfg: cfg, state: state,
		sched:  sched,
		queue:  queue.New(cfg.Queue, cfg.Profiles[0].Less),
		pods:   record.Pods{},
		others: map[types.UID]*v1.Pod{},
	}
	members.c = c
	groups.Use(sched)
	c.turn = &lifecycle.Turn{State: state, Queue: c.queue, Ready: &step.Ready{}}
	c.mode = deciding{c}
	refreshed := reporting.RefreshedPods
	switch {
	case cfg.ExternalScheduler:
		c.mode, refreshed = beside{c}, 0
	case cfg.Shadow != nil:
		c.mode, refreshed = shadowing{c}, 0
		c.comparison, err = comparison.New(schema, cfg.Profiles, cfg.Engine, record.PartOf(c.pods, func(p *record.Pod) *comparison.Pod { return &p.Compared }), cfg.Shadow.GiveUp)
		if err != nil {
			return nil, err
		}
	}
	makeMachines(c, groups, refreshed)
	letSchedulerAsk(c)
	if cfg.Autoscale != nil {
		makeAutoscaling(c)
	}
	c.view = newView(c)
	return c, nil
}

// makeMachines gives a core the machines that every core has. refreshed is for how many pods of a class a refreshed
// message is written (reporting.RefreshedPods).
func makeMachines(c *Core, groups *podgroups.Machine, refreshed int) {
	c.nomination = nomination.New(record.PartOf(c.pods, func(p *record.Pod) *nomination.Pod { return &p.Nomination }))
	c.reporting = reporting.New(c.sched, record.PartOf(c.pods, func(p *record.Pod) *reporting.Pod { return &p.Reports }), refreshed)
	c.binding = binding.New(c.sched, record.PartOf(c.pods, func(p *record.Pod) *binding.Pod { return &p.Binding }), losers{c})
	c.deallocation = deallocation.New(c.sched, longestDeviceTimeout(c.cfg.Profiles))
	c.preemption = preemption.New(c.sched, record.PartOf(c.pods, func(p *record.Pod) *preemption.Pod { return &p.Preemption }), c.binding, c.nomination, groups)
	c.expectation = expectation.New(record.PartOf(c.pods, func(p *record.Pod) *expectation.Pod { return &p.Expected }), c.nomination)
	c.consulting = consulting.New(c.sched, record.PartOf(c.pods, func(p *record.Pod) *consulting.Pod { return &p.Consulting }))
	c.reservation = reservation.New(c.nomination)
	c.headroom = headroom.New(c.sched, standIns{c})
	c.podGroups = groups
}

// letSchedulerAsk connects the scheduler with what it asks the machines while it decides.
func letSchedulerAsk(c *Core) {
	c.sched.Leaving = c.preemption.Victim
	c.sched.Gone = func(uid types.UID) bool {
		_, placed := c.state.Placed(uid)
		return !placed && c.pods[uid] == nil && c.others[uid] == nil
	}
	c.sched.Reserved = func(uid types.UID) bool { _, ok := c.reservation.Of(uid); return ok }
	c.sched.Asking = c.reservation.Asks
	c.sched.Weigh, c.sched.WeighGroup = c.weigh, gangs{c}.weigh
}

// State returns the core's model of the cluster, for a follower and for
// reading between Steps.
func (c *Core) State() *cluster.State { return c.state }

// Queue returns how many pods are where.
func (c *Core) Queue() queue.Counts { return c.queue.Counts() }

// Incoming is a reason for which pods came to a queue.
type Incoming = queue.Incoming

// Incoming returns how many pods came to which queue for what; to be read
// between Steps.
func (c *Core) Incoming() map[Incoming]int { return c.queue.Incoming() }

// Evaluations calls f for each profile, by name, with how many pods each of its
// plugins was asked about.
func (c *Core) Evaluations(f func(profile string, of engine.Evaluations)) { c.sched.Evaluations(f) }

// Pods calls f for every pod that the API has on a node, or that is to be scheduled, by
// whomever, in no particular order; with the name of the node where the API has it, "" for
// none. The object may be from before the pod was bound: what rules read of it is as the
// API has it.
func (c *Core) Pods(f func(obj *v1.Pod, node string)) {
	c.state.Pods(func(p *cluster.Pod) {
		if c.pods[p.UID] == nil {
			f(p.Object, c.state.NodeNameOf(p))
		}
	})
	for _, obj := range c.others {
		f(obj, "")
	}
	for _, p := range c.pods {
		if !p.Parsed.StandsIn() {
			f(p.Parsed.Object, "")
		}
	}
}

// Rejecter is a plugin of a profile.
type Rejecter struct{ Plugin, Profile string }

// Rejecters returns how many pods wait for what each plugin rejects.
func (c *Core) Rejecters() map[Rejecter]int {
	out := map[Rejecter]int{}
	c.queue.Each(func(w *queue.WaitingClass) {
		seen := map[string]bool{}
		count := func(plugin string) {
			if !seen[plugin] {
				seen[plugin] = true
				out[Rejecter{plugin, w.Class().Pod().Object.Spec.SchedulerName}] += w.Pods()
			}
		}
		if e := w.Diagnosis().Everywhere(); e != nil {
			count(e.Plugin)
		}
		for _, n := range w.Diagnosis().Counts() {
			count(n.Plugin)
		}
	})
	return out
}

// Size returns how many nodes there are, and pods on them.
func (c *Core) Size() (nodes, pods int) {
	c.state.Nodes(func(n *cluster.Node) {
		nodes++
		pods += len(n.Pods)
	})
	return nodes, pods
}

// Stats returns what the core has done so far.
func (c *Core) Stats() Stats {
	s := c.stats
	s.BadObjects, s.BindFailures = c.reporting.BadObjects()+c.headroom.Refused(), c.binding.Failures()
	if c.scale.planning != nil {
		s.RefusedPlans = c.scale.planning.Refused()
	}
	p := c.preemption.Counts()
	s.Preemptions, s.Victims, s.Violations, s.GroupViolations = p.Preemptions, p.Victims, p.Violations, p.GroupViolations
	return s
}
