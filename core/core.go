package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/lifecycle/reporting"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
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
}

// DefaultConfig returns the configuration of a core that only schedules, with
// kube-scheduler's times.
func DefaultConfig(profiles ...*framework.Profile) Config {
	return Config{Profiles: profiles, Queue: queue.DefaultConfig(), PodsPerStep: 64}
}

// Autoscale configures the autoscaler. Names and defaults are those of Cluster
// Autoscaler's flags.
type Autoscale struct {
	ScanInterval          time.Duration // 10 s
	UnneededTime          time.Duration // --scale-down-unneeded-time, 10 m
	DelayAfterAdd         time.Duration // --scale-down-delay-after-add, 10 m, per group
	DelayAfterFailure     time.Duration // --scale-down-delay-after-failure, 3 m, per group
	DeleteDelayAfterTaint time.Duration // --node-delete-delay-after-taint, 5 s
	MaxScaleDown          int           // --max-scale-down-parallelism, 10
	EvictDaemonPods       bool          // --daemonset-eviction-for-empty-nodes
	MaxPodEvictionTime    time.Duration // --max-pod-eviction-time, 2 m
	MaxProvisionTime      time.Duration // --max-node-provision-time, 15 m
	UnreadyTime           time.Duration // --scale-down-unready-time, 20 m
	KeepUnready           bool          // --scale-down-unready-enabled=false
	// ForceDeleteUnregistered removes machines that don't become nodes even
	// from a group at its minimum (--force-delete-unregistered-nodes).
	ForceDeleteUnregistered bool
	DisableScaleDown        bool
	// DisableFrequentLoops has plans made every ScanInterval only, also when pods that
	// no plan has seen find no node (--frequent-loops-enabled=false).
	DisableFrequentLoops bool
	Limits               autoscaler.Limits
	InitialBackoff       time.Duration // --initial-node-group-backoff-duration, 5 m
	MaxBackoff           time.Duration // --max-node-group-backoff-duration, 30 m
	BackoffReset         time.Duration // --node-group-backoff-reset-timeout, 3 h
}

// Core is the state machine.
type Core struct {
	cfg   Config
	state *cluster.State
	sched *scheduler.Scheduler
	queue *queue.Queue
	pods  map[types.UID]*pod // pods of our profiles that have no node in the API
	// others are pods without a node that other schedulers are to place.
	others map[types.UID]*v1.Pod
	woken  cluster.Seq // the queue has been asked about changes up to here
	now    time.Time
	taken  step.Ready // of inputs since the last Step
	scale  autoscaling
	stats  Stats
	// shared is what lifecycle machines work with; turn brings it up to date.
	shared lifecycle.Turn
	// interest is the state's InterestVersion that queued pods were signed with.
	interest   uint64
	assumed    map[objectKey]cluster.ObjectChange
	victims    map[types.UID]*victim // pods that were told to go for others, until they have
	leftEarly  map[types.UID]early
	released   []*queue.Item // whose victims have all been told
	permits    []*waitingPod // in the order in which they came to wait
	freed      bool          // a pod has left its node since the queue was last asked
	following  bool          // another instance decides
	nomination *nomination.Machine
	reporting  *reporting.Machine
}

// Stats count what the core has done.
type Stats struct {
	Scheduled     int // decisions for a node
	Unschedulable int // decisions to wait
	BindFailures  int
	Preemptions   int // decisions that others leave a node for a pod
	Victims       int // of them, in all
	MissedWakeups int // pods that only the leftover sweep found schedulable
	BadObjects    int // objects with quantities that had to be taken otherwise
}

// New returns a core over an empty state that parses with the schema which
// the profiles were made with.
func New(schema *cluster.Schema, cfg Config) (*Core, error) {
	if len(cfg.Profiles) == 0 {
		return nil, fmt.Errorf("no scheduling profile; give at least one")
	}
	if cfg.PodsPerStep < 1 {
		return nil, fmt.Errorf("PodsPerStep is %d, and the core would decide on no pod; give at least 1", cfg.PodsPerStep)
	}
	if cfg.ExternalScheduler {
		cfg.Profiles = slices.Clone(cfg.Profiles)
		for i, p := range cfg.Profiles {
			own := *p
			own.Preempter, own.Extenders = nil, nil
			cfg.Profiles[i] = &own
		}
	}
	state := cluster.New(schema)
	sched, err := scheduler.New(state, cfg.Profiles, cfg.Engine)
	if err != nil {
		return nil, err
	}
	c := &Core{
		cfg: cfg, state: state,
		sched:     sched,
		queue:     queue.New(cfg.Queue, cfg.Profiles[0].Less),
		pods:      map[types.UID]*pod{},
		others:    map[types.UID]*v1.Pod{},
		assumed:   map[objectKey]cluster.ObjectChange{},
		victims:   map[types.UID]*victim{},
		leftEarly: map[types.UID]early{},
	}
	c.nomination = nomination.New(records[nomination.Pod]{c.pods, func(p *pod) *nomination.Pod { return &p.nomination }})
	refreshed := reporting.RefreshedPods
	if cfg.ExternalScheduler {
		refreshed = 0
	}
	c.reporting = reporting.New(sched, records[reporting.Pod]{c.pods, func(p *pod) *reporting.Pod { return &p.reports }}, refreshed)
	c.shared = lifecycle.Turn{State: state, Queue: c.queue}
	c.sched.Leaving = func(uid types.UID) bool { return c.victims[uid] != nil }
	if cfg.Autoscale != nil {
		a := *cfg.Autoscale
		c.cfg.Autoscale = &a
		a.setDefaults()
		c.scale = newAutoscaling(&a)
	}
	return c, nil
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

// Pods calls f for every pod that is on a node or is to be scheduled, by whomever,
// as the API has it, in no particular order.
func (c *Core) Pods(f func(*v1.Pod)) {
	c.state.Pods(func(p *cluster.Pod) {
		if c.pods[p.UID] == nil {
			f(p.Object)
		}
	})
	for _, p := range c.others {
		f(p)
	}
	for _, p := range c.pods { // for people to look at
		f(p.parsed.Object)
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
	s.BadObjects = c.reporting.BadObjects()
	return s
}

// Take takes in what happened and decides nothing yet: what work it brings
// comes with the next Step. However inputs are divided among Takes and a Step,
// the decisions are the same.
func (c *Core) Take(now time.Time, inputs ...step.Input) {
	c.now = now
	for _, in := range inputs {
		c.route(in, &c.taken)
	}
}

// StandBy takes in what happened while another instance decides: the state and
// the queue are kept up, and nothing is decided or said. followed is the position
// that the planner's follower has reached; 0 without one.
func (c *Core) StandBy(now time.Time, followed cluster.Seq, inputs ...step.Input) {
	c.following = true
	c.Take(now, inputs...)
	c.following = false
	c.taken = step.Ready{}
	c.wake()
	if c.cfg.Autoscale != nil {
		c.scale.planning.Followed(followed)
	}
	c.state.Trim(c.trimTo())
}

// BecomeLeader ends the time of Follow. What the other instance had begun is taken over:
// it may have got no further. What there is to say of objects as they stand goes
// out with the next Step; the other may have said it, or not.
func (c *Core) BecomeLeader(now time.Time) {
	c.now = now
	r := &c.taken
	c.state.Nodes(func(n *cluster.Node) {
		c.reporting.NodeProblems(c.turn(r), n.Object, n.Problems)
		for _, p := range n.Pods {
			c.reporting.PodProblems(c.turn(r), p.Object, p.Problems)
		}
		if c.cfg.Autoscale != nil {
			c.scale.deletions.Resume(c.turn(r), n.NodeInfo)
		}
	})
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[uid]
		c.problems(p.parsed, r)
		c.tellGated(p, r)
	}
}

// Step takes in what happened, decides, and returns the work to do. Times must
// not go back.
func (c *Core) Step(now time.Time, inputs ...step.Input) step.Ready {
	c.Take(now, inputs...)
	r := c.taken
	c.taken = step.Ready{}
	c.freed = false
	c.expire(&r)
	reconsidered := c.reconsider()
	c.wake()
	more := c.schedule(&r)
	c.nomination.Advance(c.turn(&r))
	c.reporting.Advance(c.turn(&r))
	if c.cfg.Autoscale != nil {
		c.autoscale(more, reconsidered, &r)
	}
	r.NextWake = c.nextWake(more)
	c.state.Trim(c.trimTo())
	c.sched.ForgetClasses(4096, c.queue.Classes)
	return r
}

// wake puts the changes since the last time to the waiting classes.
func (c *Core) wake() {
	if v := c.state.InterestVersion(); v != c.interest {
		c.interest = v
		c.queue.Reclassify(c.sched.Class, func(*cluster.Pod) bool { return true })
	}
	changes, ok := c.state.Since(c.woken)
	if concerned := c.sched.Reclassifies(changes); concerned != nil {
		c.queue.Reclassify(c.sched.Class, concerned)
	}
	c.woken = c.state.Head()
	if !ok || len(changes) > 0 {
		c.reporting.NodesChanged(changes)
		if !ok {
			c.reporting.AnythingChanged()
		}
		c.queue.Wake(c.now, func(class *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
			if !ok {
				return engine.Fits, d
			}
			return c.sched.MayHelp(class, d, changes)
		}, c.awaited(ok, changes))
	}
	c.release()
	c.queue.Sweep(c.now) // what the changes have not woken
}

// schedule decides on pods until there is none to try or the step is full, and
// tells whether there may be more.
func (c *Core) schedule(r *step.Ready) bool {
	for range c.cfg.PodsPerStep {
		i := c.queue.Pop(c.now)
		if i == nil {
			return false
		}
		c.decide(i, r)
	}
	return true
}

func (c *Core) decide(i *queue.Item, r *step.Ready) {
	if i.Swept() && c.helpedSince(i) {
		c.queue.SetHelped(i)
	}
	seen := c.state.Head()
	c.settle(i, c.sched.Decide(i.Pod(), c.queue), seen, r)
}

// helpedSince tells whether decisions of this Step may have let in a pod that was
// swept: then it would have been woken for them, and no wake-up was missed.
func (c *Core) helpedSince(i *queue.Item) bool {
	changes, ok := c.state.Since(c.woken)
	if !ok || len(changes) == 0 || i.Diagnosis() == nil {
		return !ok
	}
	help, _ := c.sched.MayHelp(i.Class(), i.Diagnosis(), changes)
	return help != engine.NoHelp
}

// settle does what follows from a decision that has seen the changes before seen.
func (c *Core) settle(i *queue.Item, d scheduler.Decision, seen cluster.Seq, r *step.Ready) {
	p := c.pods[i.Pod().UID]
	c.queue.SetClass(i, d.Class)
	if d.Consult != nil || d.Candidates != nil {
		c.consult(i, &d, r)
		return
	}
	if d.Node == nil {
		c.stats.Unschedulable++
		c.decided(r, step.Decision{Kind: step.Waits, Pod: i.Pod().Name(), Profile: i.Pod().Object.Spec.SchedulerName, Reason: d.Message, Rejected: whys(d.Diagnosis), Position: uint64(seen)})
		if c.cfg.ExternalScheduler {
			c.nomination.Keep(c.turn(r), &p.nomination, p.parsed)
			c.queue.Reject(c.now, i, d.Diagnosis)
			c.wantPlan(p)
			return
		}
		if d.Victims != nil {
			c.preempt(i, d.Victims, r)
			defer c.resolve(r) // some may be waiting for permission
		}
		c.nomination.Write(c.turn(r), &p.nomination, i)
		if p.preempting != nil {
			c.queue.Hold(c.now, i, d.Diagnosis)
		} else {
			c.queue.Reject(c.now, i, d.Diagnosis)
			if !i.Nominated() {
				c.wantPlan(p)
			}
		}
		message := d.Message
		c.reporting.Unschedulable(c.turn(r), &p.reports, p.parsed.Object, v1.PodReasonUnschedulable, message)
		if i.Swept() && d.Victims != nil {
			c.stats.MissedWakeups++
		}
		if i.Swept() {
			c.reporting.TellClass(c.turn(r), d.Class, message) // the others of its class, which weren't tried
		}
		return
	}
	c.queue.Placed(i)
	c.queue.SetNominated(i, false)
	c.stats.Scheduled++
	if i.Swept() {
		c.stats.MissedWakeups++
	}
	p.assumed, p.planned = d.Node.Name, false
	if c.cfg.ExternalScheduler {
		c.expect(p, r)
		return
	}
	placed := step.Decision{Kind: step.Placed, Pod: i.Pod().Name(), Profile: i.Pod().Object.Spec.SchedulerName, Node: d.Node.Name, Score: d.Score, Scores: d.Account.Scores, Position: uint64(seen)}
	if n := c.state.Node(d.Account.RunnerUp); n != nil {
		placed.RunnerUp = &step.RunnerUp{Node: n.Name, Score: d.Account.RunnerUpScore}
	}
	c.decided(r, placed)
	bind := step.Bind{UID: i.Pod().UID, Namespace: i.Pod().Object.Namespace, Name: i.Pod().Object.Name, Node: d.Node.Name,
		Profile: i.Pod().Object.Spec.SchedulerName, Attempts: i.Attempts() + 1, Queued: i.Queued()}
	if len(i.Pod().Claims) > 0 {
		c.assume(p, d.Writes)
		for _, w := range d.Writes {
			bind.Writes = append(bind.Writes, w.New)
		}
		bind.Claims = c.claims(i.Pod())
		bind.Timeout = c.sched.Engine(i.Pod()).Profile().BindTimeout
	}
	bind.Extender = c.sched.Engine(i.Pod()).Profile().ExtenderBinds(i.Pod().Object)
	c.admit(p, d.Node, bind, r)
	c.resolve(r)
}

func (c *Core) nextWake(more bool) time.Time {
	if more || c.freed {
		return c.now
	}
	next := c.queue.NextWake()
	if at := c.permitWake(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	next = lifecycle.Earliest(next, c.nomination.NextWake())
	next = lifecycle.Earliest(next, c.reporting.NextWake())
	if c.cfg.Autoscale != nil {
		if at := c.scale.nextWake(); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// trimTo is how far the journal may be forgotten: what the queue and the
// planner's follower have seen. Columns further behind rebuild.
func (c *Core) trimTo() cluster.Seq {
	const keep = 1 << 14
	to := c.woken
	if c.cfg.Autoscale != nil {
		to = min(to, c.scale.planning.KeepFrom())
	}
	if head := c.state.Head(); head > keep {
		return min(to, head-keep)
	}
	return 0
}
