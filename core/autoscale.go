package core

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/consolidation"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/lifecycle/interruption"
	"github.com/berthproject/berth/core/lifecycle/keptnodes"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodecomparison"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/lifecycle/resizing"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// The autoscaler's side of the core: it asks for plans, and hands what comes back to
// the node groups and the node deletions, which check it against the cluster as it now
// is. Nothing of this happens when Berth only schedules (Config.Autoscale is nil).
// plan_request.go has what a plan is to know, plan_commit.go what becomes of it.

// autoscaling is what the core has for the autoscaler.
type autoscaling struct {
	launches   *launching.Machine
	groups     *nodegroups.Machine
	keptNodes  *keptnodes.Machine
	candidates *candidates.Machine
	deletions  *nodedeletion.Machine
	homes      *homes.Machine
	// interruptions are the nodes that the cloud is about to take.
	interruptions *interruption.Machine
	resizes       *resizing.Machine
	planning      *planning.Machine
	// consolidation is at rest for good unless consolidations are wanted. lookedFor says that
	// the open request asks for one.
	consolidation *consolidation.Machine
	lookedFor     bool
	nodes         *nodestatus.Reader // where nodes stand for scale-down
	// toldSick and toldFull say that the last plan had found the cluster too sick to be resized,
	// or with as many nodes as it may have: events say so when that begins.
	toldSick, toldFull bool
	// gangs is what the last plan had for pod groups, by namespace/name, as the ledger has it.
	gangs map[string]string
	// survey is what is coming since the last input, or since the Step began; nil until it is
	// asked for (Core.survey).
	survey map[string]*scaleup.Coming
	// groupsTold says that the provider has told of its groups since places were last checked.
	groupsTold bool
	// placesChecked says that places were checked since a plan was last asked for: one that is due
	// may wait for many Steps.
	placesChecked bool
	// reported are the NoHelp of the last plan, if it was reported of all of their pods as far as
	// people care; nil otherwise.
	reported []autoscaler.NoHelp
	looked   int // at pods to report NoHelp of, in all; tests bound it
}

// makeAutoscaling gives a core the machines that scale the cluster. They have a configuration of their own: what
// the profiles and the mode ask for is added to it.
func makeAutoscaling(c *Core) {
	a := *c.cfg.Autoscale
	for _, p := range c.cfg.Profiles {
		a.Readiness.Parts |= p.NeedsParts()
	}
	if c.cfg.Shadow != nil {
		a.Interruptions = nil // who carries out what the other decides sees to these nodes
	}
	for _, m := range a.Interruptions {
		if m.Taint != "" {
			a.Readiness.InterruptionTaints = append(slices.Clip(a.Readiness.InterruptionTaints), m.Taint)
		}
	}
	c.cfg.Autoscale = &a
	c.scale = newAutoscaling(&a, c.state, c.sched, &c.cfg)
	c.scale.homes.Connect(standIns{c})
	if c.cfg.Shadow != nil {
		a.Consolidation = false // nobody would have the new nodes come, which it waits for
		c.nodeComparison = nodecomparison.New(a.MaxProvisionTime, c.scale.candidates)
	}
}

// newAutoscaling returns the machines of a core. Beside another scheduler no room can be kept
// for evicted pods: that one doesn't know of it. A shadow's groups and soft taints are another
// autoscaler's.
func newAutoscaling(a *Autoscale, state *cluster.State, sched *scheduler.Scheduler, cfg *Config) autoscaling {
	s := autoscaling{keptNodes: keptnodes.New()}
	s.homes = homes.New(homes.Config{Time: a.HomeTime, NoRoom: a.NoHomes || cfg.ExternalScheduler}, sched)
	s.candidates = candidates.New(candidates.Config{
		UnneededTime: a.UnneededTime, UnreadyTime: a.UnreadyTime, KeepUnready: a.Removal.KeepUnready,
		TTL: a.CandidateTTL, MaxBulk: a.MaxBulkSoftTaints, BulkTime: a.MaxBulkSoftTaintTime, NoSoftTaints: cfg.Shadow != nil,
	})
	s.deletions = nodedeletion.New(nodedeletion.Config{
		MaxDeletions: a.MaxScaleDown, MaxDrains: a.MaxDrain, DeleteDelayAfterTaint: a.DeleteDelayAfterTaint,
		KeepSchedulable: a.KeepSchedulable, EvictDaemonPods: a.EvictDaemonPods, KeepDaemonPods: a.KeepDaemonPods,
		Drain:                draining.Config{Tiers: a.DrainPriority, MaxGrace: a.MaxGracefulTermination, MaxEviction: a.MaxPodEvictionTime, Surge: a.Removal.Surge},
		Rules:                a.Removal,
		DeletionDelayTimeout: a.DeletionDelayTimeout, DeletionBatchInterval: a.DeletionBatchInterval, LeaveResumed: a.DisableScaleDown,
	})
	if a.MaxNodesLaunching == 0 {
		// Recordings of versions without launch control have the limit there.
		a.MaxNodesLaunching = launching.Limit(a.Limits.MaxNodesLaunching)
	}
	s.launches = launching.New(launching.Config{Cluster: a.MaxNodesLaunching, Group: a.MaxNodesLaunchingPerGroup, Patience: a.MaxProvisionTime})
	s.groups = nodegroups.New(nodegroups.Config{
		DelayAfterAdd: a.DelayAfterAdd, DelayAfterDelete: a.DelayAfterDelete, DelayAfterFailure: a.DelayAfterFailure, ClusterDelays: a.ClusterDelays,
		MaxProvisionTime: a.MaxProvisionTime, ForceDeleteUnregistered: a.ForceDeleteUnregistered, ReadOnly: cfg.Shadow != nil, Limits: a.Limits, Readiness: a.Readiness,
		InitialBackoff: a.InitialBackoff, MaxBackoff: a.MaxBackoff, BackoffReset: a.BackoffReset,
	}, s.deletions, s.launches)
	s.interruptions = interruption.New(interruption.Config{
		Marks: a.Interruptions, Rules: a.Removal, NoDrain: a.DisableScaleDown, DelayAfterTaint: a.DeleteDelayAfterTaint,
		MaxGrace: a.MaxGracefulTermination, Hold: a.HomeTime, Patience: a.MaxProvisionTime,
	}, s.homes, s.deletions)
	resizes := resizing.Config{After: a.MoveResizesAfter, Rules: a.Removal, Quiet: cfg.Shadow != nil}
	if cfg.ExternalScheduler || cfg.Shadow != nil {
		resizes.After = 0 // who places the replacement doesn't know of its room
	}
	s.resizes = resizing.New(resizes, s.homes)
	s.deletions.Connect(s.groups, s.candidates, s.homes, s.interruptions)
	s.nodes = nodestatus.New(nodestatus.Config{DisableScaleDown: a.DisableScaleDown, MaxDeletions: a.MaxScaleDown, MaxDrains: a.MaxDrain},
		state, s.groups, s.keptNodes, s.candidates, s.deletions, s.interruptions)
	s.consolidation = consolidation.New(consolidation.Config{Settle: a.UnneededTime, Patience: a.MaxProvisionTime})
	s.planning = planning.New(planning.Config{ScanInterval: a.ScanInterval, OnDemand: !a.DisableFrequentLoops})
	return s
}

// DefaultAutoscale returns Cluster Autoscaler's defaults. Flags, scenarios and tests start
// from it: in an Autoscale, zero is a value like any other.
func DefaultAutoscale() Autoscale {
	return Autoscale{
		Expander:          expander.LeastWasteName,
		ScanInterval:      10 * time.Second,
		MaxBinpackingTime: 5 * time.Minute,

		MaxNodeGroupBinpackingDuration: 10 * time.Second,

		UnneededTime: 10 * time.Minute,
		UnreadyTime:  20 * time.Minute,
		Removal: autoscaler.RemovalRules{
			UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5,
			SkipSystemPods: true, SystemPodTimeout: time.Hour, SkipLocalStorage: true, SkipCustomControllerPods: true,
			RecheckAfter: 5 * time.Minute,
		},
		SimulationTimeout:    30 * time.Second,
		MaxBulkSoftTaints:    10,
		MaxBulkSoftTaintTime: 3 * time.Second,

		DelayAfterAdd:         10 * time.Minute,
		DelayAfterFailure:     3 * time.Minute,
		DeleteDelayAfterTaint: 5 * time.Second,
		MaxScaleDown:          10,

		ConsolidationThreshold: 0.5,

		MaxDrain:           1,
		MaxPodEvictionTime: 2 * time.Minute,

		MaxGracefulTermination: 10 * time.Minute,
		DeletionDelayTimeout:   2 * time.Minute,
		HomeTime:               5 * time.Minute,

		Interruptions: autoscaler.DefaultInterruptionMarks(),

		MaxProvisionTime: 15 * time.Minute,
		InitialBackoff:   5 * time.Minute,
		MaxBackoff:       30 * time.Minute,
		BackoffReset:     3 * time.Hour,
		Limits: autoscaler.Limits{
			MaxNodesPerScaleUp: 1000, MaxTotalUnready: 45, OKTotalUnready: 3,
			Totals: []autoscaler.Total{{Resource: v1.ResourceCPU, Max: 320000}, {Resource: v1.ResourceMemory, Max: 6400000 << 30}},
		},
		PriorityCutoff: -10,
		Readiness:      autoscaler.Readiness{StartupTime: 15 * time.Minute},
		Balancing:      autoscaler.Balancing{MemoryDifference: 0.015, AllocatableDifference: 0.05, FreeDifference: 0.05},
	}
}

// NeedsPrices returns the flags that do nothing for node groups without a price, as they were given.
func (a *Autoscale) NeedsPrices() (flags []string) {
	if expander.Named(a.Expander, expander.CostName) || expander.Named(a.Expander, expander.PriceName) {
		flags = append(flags, "--expander="+a.Expander)
	}
	if a.Consolidation {
		flags = append(flags, "--consolidation")
	}
	return flags
}

// podChanged tells the machines that follow nodes that a pod of one has come, has changed or is gone.
func (s *autoscaling) podChanged(t *lifecycle.Turn, node string) {
	s.deletions.PodChanged(t, node)
	s.interruptions.PodChanged(node)
}

// machines returns the autoscaler's lifecycle machines; none when Berth only schedules.
func (s *autoscaling) machines() []lifecycle.Machine {
	if s.groups == nil {
		return nil
	}
	return []lifecycle.Machine{s.launches, s.groups, s.keptNodes, s.candidates, s.deletions, s.homes, s.interruptions, s.resizes, s.consolidation, s.planning}
}

// nextWake returns when the autoscaler next has something to do by itself.
func (s *autoscaling) nextWake() time.Time {
	if !s.groups.Known() {
		return time.Time{} // nothing goes on before the provider has told of its groups
	}
	next := s.homes.NextWake()
	for _, m := range []lifecycle.Machine{s.launches, s.candidates, s.deletions, s.interruptions, s.resizes, s.planning} {
		next = lifecycle.Earliest(next, m.NextWake())
	}
	return next
}

// groupsSet hands what the provider tells of its groups to the node deletions before the
// node groups: the groups' targets count the deletions that stay in doubt.
func (c *Core) groupsSet(in step.GroupsSet) {
	if c.cfg.Autoscale == nil {
		return // groups are of no interest to a scheduler
	}
	c.scale.deletions.GroupsSet(c.turn, in)
	c.scale.groups.GroupsSet(c.turn, in)
	c.nodeComparison.GroupsSet(c.turn, in)
	c.scale.planning.GroupsKnown(c.turn.Now)
	c.scale.groupsTold = true
}

// scaleUpDone makes another plan due at once when a group is out of stock: the group backs
// off, so that the plan falls to the next choice among the others. This ends: a group that
// backs off isn't asked again.
func (c *Core) scaleUpDone(in step.ScaleUpDone) {
	if c.cfg.Autoscale != nil && c.scale.groups.ScaleUpDone(c.turn, in) {
		c.reservation.OrderRefused(c.turn, in.Group, in.Nodes)
		c.scale.planning.Retry(c.turn.Now)
	}
}

// taintDone routes the outcome to the machine that asked for the write.
func (c *Core) taintDone(in step.TaintDone) {
	switch {
	case c.cfg.Autoscale == nil:
	case in.Key == autoscaler.DeletionCandidateTaint:
		c.scale.candidates.TaintDone(c.turn, in)
	default:
		c.scale.deletions.TaintDone(c.turn, in)
	}
}

func (c *Core) evictionDone(in step.EvictionDone) {
	if c.cfg.Autoscale != nil {
		c.scale.deletions.EvictionDone(c.turn, in)
		c.scale.resizes.EvictionDone(c.turn, in)
	}
}

func (c *Core) surgeDone(in step.SurgeDone) {
	if c.cfg.Autoscale != nil {
		c.scale.deletions.SurgeDone(c.turn, in)
	}
}

// nodeDeletionDone hands the outcome to both machines: the node groups ask for the
// deletion of instances that aren't nodes, the node deletions for that of nodes, and a
// node that is shown for an instance meanwhile shares its outcome. A plan is wanted for the
// pods of an instance that has failed since its group is out of stock.
func (c *Core) nodeDeletionDone(in step.NodeDeletionDone) {
	if c.cfg.Autoscale != nil {
		if c.scale.groups.NodeDeletionDone(c.turn, in) {
			c.scale.planning.Want(c.turn.Now)
		}
		c.scale.deletions.NodeDeletionDone(c.turn, in)
	}
}
