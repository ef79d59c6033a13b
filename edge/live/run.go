package live

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/leader"
)

// This file is a live Berth from its start to its end:
//
//	caches fill ─▶ Synced ─▶ watching, or idle ─▶ becomes the leader ─▶ OnBecomeLeader ─▶ workers run ─▶ Steps
//
// What must hold: an instance is a candidate only when its caches are full; nothing is
// written to the API or asked of the provider before this instance is the leader; and when
// Run returns, no call of its workers is under way.

// Options are what Run needs.
type Options struct {
	// Config has the QPS and Burst of binds, and those of preemptions again; the
	// rest has budgets of its own. With a Fence it is one of leader.Fence.Config.
	Config *rest.Config
	// Fence says when provider and extenders may be called to change something; nil for
	// always.
	Fence *leader.Fence
	// Health is told how far the caches are and what goroutines do; nil for nobody who asks.
	Health *Health
	// Core is the core's configuration; Autoscale and Shadow in it decide which workers there are.
	Core core.Config
	// Schema is what the profiles of Core were made with.
	Schema *cluster.Schema
	// NoPodGroups has the members of pod groups be placed as other pods are.
	NoPodGroups bool
	// Provider makes nodes; nil unless Core autoscales.
	Provider nodegroup.Provider
	// Host is in the reporting instance of events, as in SCHEDULER-HOST; "" means the machine's name.
	Host string
	// GRPCExpander is the expander grpc; nil when Core.Autoscale doesn't name it.
	GRPCExpander expander.Strategy
	// Extenders are those of the configuration; nil when it has none.
	Extenders Extenders
	// Hooks see every Step of the leader.
	Hooks []drive.Hook
	// State, when not nil, is called with the core once a second, between two Steps,
	// and a first time when this instance has become the leader and knows the
	// cluster. It must not keep the core.
	State func(*core.Core)
	// Watcher, when not nil, is told of what Steps don't show.
	Watcher Watcher
	// BindStalled, when not nil, is called for each bind that has had no outcome for a minute. It is
	// called by several goroutines.
	BindStalled func()
	// Namespace is where ConfigMaps of the autoscaler are: its status, and the priorities of
	// node groups.
	Namespace string
	// StatusName is the name of the status ConfigMap, "" when none is to be written.
	StatusName string
	// Questions are put to the core between two Steps; may be nil. A question must
	// not change anything.
	Questions <-chan func(*core.Core)
	// Synced, when not nil, is called once, when the caches are full: this instance could
	// decide from now on. catchUp is to be called before it takes over from another one: it
	// returns nil when what that one has written of pods and nodes before is known.
	Synced func(catchUp func(context.Context) error)
	// BecomeLeader is closed when this instance is to decide; nil means as soon as the caches
	// are full.
	BecomeLeader <-chan struct{}
	// StandBy is what this instance does before.
	StandBy StandBy
	// OnBecomeLeader, when not nil, is called when this instance becomes the leader,
	// before anything is decided. Its error ends Run. The context ends with Run.
	OnBecomeLeader func(ctx context.Context) error
	// Log gets what people should know; decisions are the hooks' to log.
	Log *slog.Logger
}

// Watcher is told of what Steps don't show. Its methods are called by several goroutines.
type Watcher interface {
	// BeyondBounds reports that an input had something beyond the bounds.
	BeyondBounds(door.Problem)
	// GroupsRead says that the provider's groups were read, or why they could not be.
	GroupsRead(took time.Duration, err error)
	// PlanComputed says how long a plan has looked for groups to grow, and for nodes to remove.
	PlanComputed(scaleUp, findUnneeded time.Duration)
	// PlanFailed says that a plan could not be made.
	PlanFailed()
	DeviceWatcher
}

// StandBy says what an instance does until it becomes the leader.
type StandBy uint8

const (
	// Watching follows the cluster without deciding, so that taking over needs no
	// list.
	Watching StandBy = iota
	// Idle fills the caches and tells the core nothing: hooks are shown all that the core
	// has ever been told, as a recording needs.
	Idle
)

// Run schedules and scales until the context ends, which is no error. It returns an
// error when it could not start or OnBecomeLeader failed. Calls that are under way
// when it stops are waited for.
func Run(ctx context.Context, o Options) error {
	load := &load{}
	if o.Core.Shadow != nil {
		o.Config = ReadOnly(o.Config)
	}
	clients, err := newClients(o.Config, load.high, o.Log)
	if err != nil {
		return err
	}
	return run(ctx, o, clients, load)
}

// run is Run with its clients.
func run(ctx context.Context, o Options, clients *clients, load *load) error {
	// Workers outlive the loop by the calls that they are in.
	var wg sync.WaitGroup
	defer wg.Wait()
	work, stop := context.WithCancel(ctx)
	defer stop()

	if o.Health == nil {
		o.Health = NewHealth(o.Provider != nil)
	}
	if o.Host == "" {
		o.Host, _ = os.Hostname() // as kube-scheduler's recorder: "" if it isn't known
	}
	o.fence()
	o.onlyRead()
	wg.Go(func() { watchdog(work, o.Health, o.Log) })
	in := newInbox()
	clock := newClock()
	w := newWorkers(work, o, clients, load)
	staff := w.staff(&o)
	chain, priorities, err := newChain(&o, staff.tell)
	if err != nil {
		return err
	}
	watch := newStopwatch(o.Core.Autoscale, time.Now)
	w.timePlans(watch, o.Watcher)
	driver, err := drive.New(drive.Config{Schema: o.Schema, Core: o.Core, Expander: chain, Stopwatch: watch.orNil(), Yield: w.yield(),
		Workers: staff.workers, Inbox: in.put, Hooks: o.Hooks, Clock: clock.now, Beyond: beyondBounds(&o)})
	if err != nil {
		return err
	}
	l := &loop{driver: driver, inbox: in, now: clock.now, questions: o.Questions, state: o.State, watcher: o.Watcher, health: o.Health, log: o.Log}
	nodes := newNodeFeed(ofNoGroup, in.putTogether)
	if o.Provider != nil {
		nodes.groupOf = o.Provider.GroupOf
		l.status = newStatusWriter(clients.node, o.Namespace, o.StatusName, o.Core.Autoscale.ScanInterval, o.Log)
		w.scaleBy(&o, l.status, nodes, in)
	}

	transform := transformFor(o.Extenders != nil)
	if o.NoPodGroups {
		transform = withoutPodGroups(transform)
	}
	c := newCaches(clients.watch, transform, o.Health, o.Log)
	leads, err := l.waitToLead(work, &wg, &o, c, func(in *inbox, nodes *nodeFeed) error {
		return watchAll(work, &wg, &o, clients, c, nodes, in)
	}, nodes)
	if err != nil || !leads {
		return err
	}
	if err := o.takeOver(work, driver.Core()); err != nil {
		return err
	}
	priorities.watch(work, &wg, clients.watch, prioritiesTimeout)
	w.readFrom(c, clients)
	staff.start(&wg)
	l.status.run(work, &wg)
	o.Log.Info("ready")
	driver.BecomeLeader(l.now())
	l.run(work)
	sayStopping(o.Log, driver.Core().Stats(), w.reporter.dropped.Load())
	return nil
}

// takeOver says that this process leads now, and has OnBecomeLeader do its part.
func (o *Options) takeOver(ctx context.Context, c *core.Core) error {
	if nodes, pods := c.Size(); o.BecomeLeader != nil {
		o.Log.Info("taking over", "nodes", nodes, "pods", pods, "pending", c.Queue())
	}
	if o.OnBecomeLeader == nil {
		return nil
	}
	return o.OnBecomeLeader(ctx)
}

// sayStopping logs at the end what this process has done.
func sayStopping(log *slog.Logger, s core.Stats, droppedEvents int64) {
	log.Info("stopping", "scheduled", s.Scheduled, "unschedulable", s.Unschedulable, "bindFailures", s.BindFailures,
		"missedWakeups", s.MissedWakeups, "badObjects", s.BadObjects, "droppedEvents", droppedEvents)
}

// staff is who carries out what a core decides.
type staff struct {
	workers drive.Workers
	start   func(*sync.WaitGroup) // starts the goroutines that they need
	tell    func(step.Event)      // publishes an event that is not the core's
}

// staff returns the workers themselves, or for a shadow what of them only reads.
func (w *workers) staff(o *Options) staff {
	if o.Core.Shadow != nil {
		return staff{workers: shadowWorkers{plan: w.Plan}, start: w.runShadow, tell: func(step.Event) {}}
	}
	return staff{workers: w, start: w.run, tell: w.reporter.event}
}

// scaleBy makes the workers use the provider: they read its groups twice in each scan interval, and
// nodes whose group becomes known by that are put into the inbox anew.
func (w *workers) scaleBy(o *Options, status *statusWriter, nodes *nodeFeed, in *inbox) {
	w.cloud = newCloud(o.Provider, o.Core.Autoscale.ScanInterval/2, in.put, o.Log)
	w.cloud.watcher, w.cloud.regroup, w.status = o.Watcher, nodes.regroup, status
}

func ofNoGroup(*v1.Node) string { return "" }

// waitToLead fills the caches, says that they are full, and stands by as the options say until
// this process leads; leads is false when the context has ended before. watchInto fills the
// caches and has what the API shows put into an inbox from then on. While an Idle process stands
// by, the core is told nothing: what it hears goes to an inbox that nobody reads.
func (l *loop) waitToLead(ctx context.Context, wg *sync.WaitGroup, o *Options, c *caches, watchInto func(*inbox, *nodeFeed) error, nodes *nodeFeed) (leads bool, err error) {
	first, firstNodes := l.inbox, nodes
	if o.StandBy == Idle {
		first = discard(ctx, wg)
		firstNodes = newNodeFeed(ofNoGroup, first.putTogether)
	}
	if err := watchInto(first, firstNodes); err != nil {
		return false, err
	}
	if o.Synced != nil {
		o.Synced(c.catchUp)
	}
	if ctx.Err() != nil {
		return false, nil
	}
	switch o.StandBy {
	case Watching:
		return l.standBy(ctx, o.BecomeLeader), nil
	case Idle:
		if !becomesLeader(ctx, o.BecomeLeader) {
			return false, nil
		}
		return true, watchInto(l.inbox, nodes)
	}
	return true, nil
}

// fence has the provider and the extenders ask the fence.
func (o *Options) fence() {
	if o.Fence == nil {
		return
	}
	if o.Provider != nil {
		o.Provider = &fencedProvider{o.Provider, o.Fence}
	}
	if o.Extenders != nil {
		o.Extenders = &fencedExtenders{o.Extenders, o.Fence}
	}
}

// onlyRead lets a shadow's provider only read, and nobody write a status.
func (o *Options) onlyRead() {
	if o.Core.Shadow == nil {
		return
	}
	o.StatusName = ""
	if o.Provider != nil {
		o.Provider = readOnlyProvider{o.Provider}
	}
}

// watchAll fills the caches, and watches what asks for headroom where a leader has a provider. It
// returns when what exists has been delivered to the inbox.
func watchAll(ctx context.Context, wg *sync.WaitGroup, o *Options, clients *clients, c *caches, nodes *nodeFeed, in *inbox) error {
	clients.time.tell(in.put)
	c.tell(nodes, in)
	if err := c.run(ctx, wg); err != nil || o.Provider == nil {
		return err
	}
	if o.Core.Shadow != nil { // it would have to write how it stands with them
		o.Health.watched(headroomCache, func() bool { return true })
		return nil
	}
	h, err := watchHeadroom(ctx, clients.watch, clients.watchAny, o.Health, in, o.Log)
	if err != nil {
		return err
	}
	h.run(ctx, wg)
	return nil
}

// discard returns an inbox whose inputs are forgotten until the context ends.
func discard(ctx context.Context, wg *sync.WaitGroup) *inbox {
	in := newInbox()
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-in.signal:
				in.take()
			}
		}
	})
	return in
}

// becomesLeader waits until the channel is closed, and returns false when the
// context ends first. A nil channel doesn't wait.
func becomesLeader(ctx context.Context, channel <-chan struct{}) bool {
	if channel == nil {
		return true
	}
	select {
	case <-channel:
		return true
	case <-ctx.Done():
		return false
	}
}

// clients are one client for each budget of API calls. watchAny and reportAny, for kinds that
// CustomResourceDefinitions define, share the budgets of watch and report.
type clients struct {
	watch, bind, report, nominate, node, evict, surge, preempt kubernetes.Interface
	watchAny, reportAny                                        dynamic.Interface
	time                                                       *serverTime // by the answers that they get; nil for fakes
}
