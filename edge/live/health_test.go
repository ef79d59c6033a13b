package live

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/background"
	"github.com/berthproject/berth/internal/test/testkit"
)

// hanging are workers and a hook that hang where a test says so, until it says that they go on.
type hanging struct {
	drive.Unanswered
	where   string
	goOn    chan struct{}
	health  *Health
	planner *background.Worker
}

func (h *hanging) hang(where string) {
	if where == h.where {
		<-h.goOn
	}
}

func (h *hanging) Step(time.Time, time.Duration, []step.Input, *step.Ready) { h.hangsInAHook() }
func (h *hanging) Bind(step.Bind, func(error))                              { h.hangsHandingOut() }
func (h *hanging) hangsInAHook()                                            { h.hang("hook") }
func (h *hanging) hangsHandingOut()                                         { h.hang("handing out") }
func (h *hanging) hangsInAQuestion(*core.Core)                              { h.hang("question") }
func (h *hanging) hangsInAPlan()                                            { h.hang("plan") }

// Plan implements drive.Workers as the live workers do.
func (h *hanging) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w := &workers{ctx: context.Background(), planner: h.planner, health: h.health, planBound: planBound(nil)}
	w.Plan(func() *autoscaler.Plan {
		h.hangsInAPlan()
		return compute()
	}, done)
}

// TestALoopThatHangsIsNotAlive has the loop, or the planner, hang in one place after the other:
// probes learn of it when it takes too long, the log says where it hangs, once, and probes learn
// that it goes on.
func TestALoopThatHangsIsNotAlive(t *testing.T) {
	for _, x := range []struct{ where, says, logs string }{
		{"nowhere", "", ""},
		{"hook", "the loop has been stuck in a step or the handout of its results for ", "hangsInAHook"},
		{"handing out", "the loop has been stuck in a step or the handout of its results for ", "hangsHandingOut"},
		{"question", "the loop has been stuck in a query for ", "hangsInAQuestion"},
		{"plan", "the planner has been stuck in a plan for ", "hangsInAPlan"},
	} {
		t.Run(x.where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				health := NewHealth(true)
				ctx, stop := context.WithCancel(t.Context())
				h := &hanging{where: x.where, goOn: make(chan struct{}), health: health, planner: background.Start(ctx)}
				schema := cluster.NewSchema()
				cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
				scale := core.DefaultAutoscale()
				cfg.Autoscale = &scale
				in, clock, questions := newInbox(), newClock(), make(chan func(*core.Core), 1)
				driver, err := drive.New(drive.Config{Schema: schema, Core: cfg, Workers: h, Inbox: in.put, Hooks: []drive.Hook{h}})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				l := &loop{driver: driver, inbox: in, now: clock.now, questions: questions, health: health, log: slog.New(slog.DiscardHandler)}
				var wg sync.WaitGroup
				wg.Go(func() { l.run(ctx) })
				wg.Go(func() { watchdog(ctx, health, slog.New(slog.NewTextHandler(&log, nil))) })
				template := testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
				in.put(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()})
				in.put(step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Template: template}}})
				in.put(step.PodSet{Pod: testkit.Pod("fits").Req("cpu", "3").Obj()})
				in.put(step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "3").Obj()})
				questions <- h.hangsInAQuestion

				time.Sleep(stuckAfter)
				synctest.Wait()
				if err := health.Alive(); err != nil {
					t.Errorf("it may take as long as that, and isn't alive: %v", err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if err := health.Alive(); (err != nil) != (x.says != "") || err != nil && !strings.HasPrefix(err.Error(), x.says) {
					t.Errorf("got %v, want %q", err, x.says)
				}
				if got, want := strings.Count(log.String(), "a goroutine is stuck"), min(len(x.logs), 1); got != want || !strings.Contains(log.String(), x.logs) {
					t.Errorf("it was logged %d times, want %d, with %q:\n%s", got, want, x.logs, log.String())
				}
				close(h.goOn)
				time.Sleep(time.Second)
				synctest.Wait()
				if err := health.Alive(); err != nil {
					t.Errorf("it goes on, and isn't alive: %v", err)
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// TestAPlannerHasTheTimeThatPlansMayTake shows that the bound is beyond the stopwatch's.
func TestAPlannerHasTheTimeThatPlansMayTake(t *testing.T) {
	a := core.DefaultAutoscale()
	a.MaxBinpackingTime, a.SimulationTimeout = time.Hour, time.Minute
	if got, want := planBound(&a), time.Hour+time.Minute+stuckAfter; got != want {
		t.Errorf("a plan may take %s, want %s", got, want)
	}
}
