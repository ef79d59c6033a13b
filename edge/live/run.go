package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/tools/replay"
)

// Options are what Run needs.
type Options struct {
	// Config has the QPS and Burst of binds, and those of preemption again; the
	// rest has its own budgets.
	Config *rest.Config
	Core   core.Config
	Schema *cluster.Schema
	// Provider makes nodes when the core autoscales; nil otherwise.
	Provider nodegroup.Provider
	Host     string // reporting instance of events
	// Extenders are those of the configuration, nil when it has none.
	Extenders Extenders
	// Record, when not nil, records every input.
	Record *replay.Recorder
	// Leading is closed when this instance is to decide; until then it follows
	// what happens, so that it takes over without a list. Nil is at once. A
	// recording begins with leading, and so does then everything.
	Leading <-chan struct{}
	// Lead, when not nil, is called when it does, before anything is decided.
	Lead func(ctx context.Context) error
	Log  *slog.Logger
	// Observer is told of every Step; may be nil.
	Observer Observer
	// Questions are put to the core between two Steps; may be nil. A question
	// mustn't change anything.
	Questions <-chan func(*core.Core)
}

// Observer is told what the core does, by the goroutine that owns it.
type Observer interface {
	// Step tells of a Step that took some time.
	Step(now time.Time, took time.Duration, in []step.Input, r *step.Ready)
	// State shows the core, every second.
	State(c *core.Core)
}

// showEvery is how often the state of the core is shown to the observer.
const showEvery = time.Second

// Budgets, in calls per second, beside that for binds.
const (
	reportQPS    = 20  // conditions and events together, while binds or preemptions queue up
	nodeQPS      = 100 // taints
	evictQPS     = 50  // evictions
	binders      = 24  // bindings under way at a time
	preemptors   = 16  // victims being told at a time
	eventWriters = 4   // events being written at a time
)

// Run schedules and scales until the context ends. It returns an error when it
// could not start.
func Run(ctx context.Context, o Options) error {
	b := &binder{work: make(chan step.Bind, 1<<16)}
	p := &preemptor{work: make(chan step.Preemption, 1<<16)}
	clients, err := newClients(o.Config, func() bool { return b.busy() || p.busy() })
	if err != nil {
		return err
	}
	c, err := core.New(o.Schema, o.Core)
	if err != nil {
		return err
	}
	in := newInbox()
	b.client, b.done = clients.bind, in.put
	p.client, p.done = clients.preempt, in.put
	e := &edge{
		core: c, in: in, log: o.Log, record: o.Record, observer: o.Observer, questions: o.Questions,
		binder:    b,
		reporter:  newReporter(clients.report, o.Host, o.Log, in.put),
		preemptor: p,
		tainter:   &tainter{client: clients.node, work: make(chan step.Taint, 1<<12), done: in.put},
		evictor:   &evictor{client: clients.evict, work: make(chan step.Eviction, 1<<12), done: in.put},
	}
	groupOf := func(*v1.Node) string { return "" }
	if o.Provider != nil {
		groupOf = o.Provider.GroupOf
		e.cloud = &cloud{provider: o.Provider, period: o.Core.Autoscale.ScanInterval / 2, work: make(chan any, 1<<12), done: in.put, log: o.Log}
		e.period = o.Core.Autoscale.ScanInterval
		e.status = &statusWriter{client: clients.node, latest: make(chan Status, 1)}
		if e.planner, err = planner.New(c.State(), o.Core.Profiles, o.Core.Engine, expander.LeastWaste); err != nil {
			return err
		}
	}
	// Workers outlive the loop by the calls they are in.
	var wg sync.WaitGroup
	defer wg.Wait()
	work, stop := context.WithCancel(ctx)
	defer stop()
	if o.Record != nil && !e.await(work, o.Leading) {
		return nil
	}
	factory, err := watch(work, clients.watch, groupOf, transformFor(o.Extenders != nil), in)
	if err != nil {
		return err
	}
	if !e.standBy(work, o.Leading) {
		return nil
	}
	if nodes, pods := e.core.Size(); o.Leading != nil {
		o.Log.Info("taking over", "nodes", nodes, "pods", pods, "pending", e.core.Queue())
	}
	if o.Lead != nil {
		if err := o.Lead(work); err != nil {
			return err
		}
	}
	e.binder.volumes = newVolumes(clients.bind, factory)
	if e.binder.extenders = o.Extenders; o.Extenders != nil {
		e.consultant = &consultant{extenders: o.Extenders, nodes: factory.Core().V1().Nodes().Lister(), work: make(chan step.Consult, 1<<12), done: in.put}
		e.consultant.run(work, &wg)
	}
	e.binder.run(work, binders, &wg)
	e.reporter.run(work, &wg)
	e.tainter.run(work, &wg)
	e.evictor.run(work, &wg)
	e.preemptor.run(work, preemptors, &wg)
	if e.cloud != nil {
		e.cloud.run(work, &wg)
		e.status.run(work, &wg)
	}
	o.Log.Info("ready")
	e.core.BecomeLeader(e.now())
	e.loop(work)
	if o.Record != nil {
		if err := o.Record.Close(); err != nil {
			return err
		}
		o.Log.Info("recorded", "digest", o.Record.Digest())
	}
	s := c.Stats()
	o.Log.Info("stopping", "scheduled", s.Scheduled, "unschedulable", s.Unschedulable, "bindFailures", s.BindFailures,
		"missedWakeups", s.MissedWakeups, "badObjects", s.BadObjects, "droppedEvents", e.reporter.dropped.Load())
	return nil
}

type clients struct{ watch, bind, report, node, evict, preempt kubernetes.Interface }

// newClients makes a client per budget, over shared connections. Core types
// travel as protobuf. Reports get what others leave.
func newClients(base *rest.Config, busy func() bool) (*clients, error) {
	make := func(qps float32, limit flowcontrol.RateLimiter) (kubernetes.Interface, error) {
		cfg := rest.CopyConfig(base)
		cfg.ContentType = "application/vnd.kubernetes.protobuf"
		cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		cfg.RateLimiter = limit
		if qps > 0 {
			cfg.QPS, cfg.Burst = qps, int(2*qps)
		}
		c, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return nil, fmt.Errorf("making an API client: %w", err)
		}
		return c, nil
	}
	var out clients
	for _, x := range []struct {
		to    *kubernetes.Interface
		qps   float32
		limit flowcontrol.RateLimiter
	}{
		{&out.watch, 50, nil}, {&out.bind, 0, nil}, {&out.report, 0, newLeftover(reportQPS, base.QPS, base.Burst, busy)},
		{&out.node, nodeQPS, nil}, {&out.evict, evictQPS, nil}, {&out.preempt, 0, nil},
	} {
		c, err := make(x.qps, x.limit)
		if err != nil {
			return nil, err
		}
		*x.to = c
	}
	return &out, nil
}

// edge is the one goroutine that owns the core, with the workers it feeds.
type edge struct {
	core       *core.Core
	record     *replay.Recorder
	observer   Observer
	questions  <-chan func(*core.Core)
	in         *inbox
	start      time.Time // of the core's time
	log        *slog.Logger
	binder     *binder
	consultant *consultant // nil without extenders
	reporter   *reporter
	tainter    *tainter
	evictor    *evictor
	preemptor  *preemptor
	cloud      *cloud
	planner    *planner.Planner
	status     *statusWriter
	reported   time.Time // when the status was last handed over
	period     time.Duration
}

// report hands the status over, at most once in a period.
func (e *edge) report(now time.Time) {
	if e.status != nil && now.Sub(e.reported) >= e.period {
		e.reported = now
		e.status.set(now, e.core.Groups())
	}
}

// now is the core's time. Times in a recording are to be those that the core
// saw: without the monotonic reading, and never going back when the clock is set.
func (e *edge) now() time.Time {
	if e.start.IsZero() {
		e.start = time.Now()
	}
	return e.start.Round(0).Add(time.Since(e.start))
}

// await returns when this instance is to lead, false when the context ends first.
func (e *edge) await(ctx context.Context, leading <-chan struct{}) bool {
	if leading == nil {
		return true
	}
	select {
	case <-leading:
		return true
	case <-ctx.Done():
		return false
	}
}

// standBy follows what happens until this instance is to lead; false says that
// the context ended first.
func (e *edge) standBy(ctx context.Context, leading <-chan struct{}) bool {
	if leading == nil {
		return true
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-leading:
			return true
		case ask := <-e.questions:
			ask(e.core)
		case <-e.in.signal:
			var followed cluster.Seq
			if e.planner != nil {
				if err := e.planner.Follow(); err != nil {
					e.log.Error("the planner could not catch up", "err", err)
				}
				_, followed = e.planner.Position()
			}
			e.core.StandBy(e.now(), followed, e.in.take()...)
		}
	}
}

func (e *edge) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var show <-chan time.Time
	if e.observer != nil {
		ticker := time.NewTicker(showEvery)
		defer ticker.Stop()
		show = ticker.C
		e.observer.State(e.core)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case ask := <-e.questions:
			ask(e.core)
			continue
		case <-show:
			e.observer.State(e.core)
			continue
		case <-e.in.signal:
		case <-timer.C:
		}
		now := e.now()
		in := e.in.take()
		r := e.core.Step(now, in...)
		if e.observer != nil {
			e.observer.Step(now, e.now().Sub(now), in, &r)
		}
		if e.record != nil {
			if err := e.record.Step(now, in, &r); err != nil {
				e.log.Warn("recording", "err", err)
			}
		}
		if err := e.dispatch(ctx, &r); err != nil {
			return
		}
		e.report(now)
		if r.NextWake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(r.NextWake.Sub(now), 0))
		}
	}
}

// dispatch hands the work out. A full channel makes the core wait: that is the
// back-pressure of an API server that can't keep up.
func (e *edge) dispatch(ctx context.Context, r *step.Ready) error {
	for _, job := range r.Consults {
		if err := send(ctx, e.consultant.work, job); err != nil {
			return err
		}
	}
	for _, x := range r.Cancels {
		e.binder.takeBack(x.UID)
	}
	for _, b := range r.Binds {
		e.reporter.bound(b.UID)
		e.binder.add(b.UID)
		if err := send(ctx, e.binder.work, b); err != nil {
			return err
		}
	}
	for _, c := range r.Conditions {
		e.reporter.condition(c)
	}
	for _, n := range r.Nominations {
		e.reporter.nominate(n)
	}
	for _, v := range r.Preemptions {
		if err := e.preemptor.add(ctx, v); err != nil {
			return err
		}
	}
	for _, ev := range r.Events {
		e.reporter.event(ev)
	}
	for _, t := range r.Taints {
		if err := send(ctx, e.tainter.work, t); err != nil {
			return err
		}
	}
	for _, v := range r.Evictions {
		if err := send(ctx, e.evictor.work, v); err != nil {
			return err
		}
	}
	if e.cloud == nil {
		return nil
	}
	for _, s := range r.ScaleUps {
		if err := send(ctx, e.cloud.work, any(s)); err != nil {
			return err
		}
	}
	if len(r.NodeDeletions) > 0 {
		if err := send(ctx, e.cloud.work, any(r.NodeDeletions)); err != nil {
			return err
		}
	}
	for _, t := range r.TargetDecreases {
		if err := send(ctx, e.cloud.work, any(t)); err != nil {
			return err
		}
	}
	if r.Plan != nil {
		e.plan(*r.Plan)
	}
	return nil
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
