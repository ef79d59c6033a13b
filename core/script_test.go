package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// TestScripts runs testdata/scripts/*.txt. A script begins with its
// configuration:
//
//	config [autoscale [unneeded=30s] [delay-after-add=1m] [delay-after-delete=0s] [cluster-delays] [node-budget=nodes=1;…] [consolidation] [evict-daemons] [no-homes] [surge] [home-time=5m] [max-launching=0]] [policy=preempt-first] [max-wait=5m]
//
// Each further command feeds inputs to one Step (script_commands_test.go); its
// golden text is the Ready that came back (script_print_test.go), and at the end
// how many pods wait, if that has changed. A plan that a Ready asks for is made at once, in a Step
// of its own whose Ready is printed too, as the virtual world does. After each
// Step the core's invariants are checked. A command refuses arguments that it
// doesn't know, and feeds nothing then (internal/test/testkit/script).
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := &world{t: t, now: time.Unix(1000, 0), queue: "queue: empty\n"}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}

// TestQuestionsDecideNothing runs the scripts with somebody who asks about every pod, node group
// and node after each command. What comes back is the same.
func TestQuestionsDecideNothing(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := &world{t: t, now: time.Unix(1000, 0), queue: "queue: empty\n", asked: true}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}

// askAll asks about every pod, pod group, node group and node.
func (w *world) askAll() {
	var pods []*v1.Pod
	w.Core().Pods(func(obj *v1.Pod, _ string) { pods = append(pods, obj) })
	for _, pod := range pods {
		w.Core().View().Explain(pod.Namespace, pod.Name)
		if g := pod.Spec.SchedulingGroup; g != nil {
			w.Core().View().ExplainPodGroup(pod.Namespace, *g.PodGroupName)
		}
	}
	w.Core().View().ExplainGroups()
	names, _ := w.Core().View().NodeNames()
	for _, name := range names {
		w.Core().View().ExplainNode(name)
	}
	w.Core().View().ExplainNodes()
}

// world is what one script runs against.
type world struct {
	*driven // nil before the first command
	t       *testing.T
	out     strings.Builder // what the Steps of a command brought
	queue   string          // the last line about the queue
	asked   bool            // people ask about everything after each command
	now     time.Time
	groups  []nodegroup.Group // as the provider lists them
}

// run does one command and returns its golden text.
func (w *world) run(d *datadriven.TestData) string {
	args := script.NewArgs(w.t, d)
	if (d.Cmd == "config") != (w.driven == nil) {
		args.Fail("the first command of a script is config, and no other is")
	}
	if d.Cmd == "config" {
		w.configure(args)
		return ""
	}
	if answer, asked := w.question(d.Cmd, args); asked {
		return answer
	}
	in := w.inputs(d.Cmd, args)
	args.Done()
	return w.step(in...)
}

func (w *world) configure(args *script.Args) {
	cfg := core.DefaultConfig()
	cfg.Engine.Seed = 1
	if args.Flag("autoscale") {
		a := core.DefaultAutoscale()
		a.UnneededTime = args.Duration("unneeded", 30*time.Second)
		a.DelayAfterAdd = args.Duration("delay-after-add", time.Minute)
		a.DelayAfterDelete = args.Duration("delay-after-delete", a.DelayAfterDelete)
		a.ClusterDelays = args.Flag("cluster-delays")
		a.Consolidation = args.Flag("consolidation")
		if text := args.String("node-budget", ""); text != "" {
			a.NodeBudgets = []nodebudget.Budget{testkit.Must(nodebudget.Parse(text))}
		}
		a.EvictDaemonPods = args.Flag("evict-daemons")
		a.NoHomes, a.Removal.Surge = args.Flag("no-homes"), args.Flag("surge")
		a.HomeTime = args.Duration("home-time", a.HomeTime)
		a.MoveResizesAfter = args.Duration("move-resizes", 0)
		a.PriorityCutoff = args.Int("cutoff", a.PriorityCutoff)
		a.NewPodDelay = args.Duration("pod-delay", a.NewPodDelay)
		a.Limits.EnforceMinSize = args.Flag("enforce-min")
		a.MaxNodesLaunching = launching.Limit(args.Int("max-launching", 0))
		cfg.Autoscale = &a
	}
	devices := args.Flag("preempt-for-devices")
	weigh := weighing.Default()
	weigh.Policy = weighing.Policy(args.String("policy", string(weigh.Policy)))
	weigh.MaxWait = args.Duration("max-wait", weigh.MaxWait)
	args.Done()
	profile := func(schema *cluster.Schema) *framework.Profile {
		return plugins.Default(schema, plugins.Options{Weighing: &weigh, DevicePreemption: devices})
	}
	w.driven = newDriven(w.t, cfg, inlinePlans{}, profile, drive.HookFunc(w.print))
}

func (w *world) step(in ...step.Input) string {
	w.out.Reset()
	w.stepOut(w.now, in...)
	if w.asked {
		w.askAll()
	}
	if queue := w.pending(); queue != w.queue {
		w.out.WriteString(queue)
		w.queue = queue
	}
	if w.out.Len() == 0 {
		return "nothing to do\n"
	}
	return w.out.String()
}

// pending returns a line with the number of pods in each stage of the queue.
func (w *world) pending() string {
	c := w.Core().Queue()
	if c.Active+c.Backoff+c.Unschedulable+c.Gated == 0 {
		return "queue: empty\n"
	}
	return fmt.Sprintf("queue: active %d, backoff %d, unschedulable %d, gated %d\n", c.Active, c.Backoff, c.Unschedulable, c.Gated)
}
