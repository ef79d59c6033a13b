package launching_test

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a machine with the nodes that it hears of. How many are coming it counts as
// node groups do.
type fixture struct {
	t       *testing.T
	machine *launching.Machine
	turn    *lifecycle.Turn
	coming  launching.Coming
	known   map[string]bool // the groups that a command has named
	serial  int             // of the last node of the command launch
	answer  string
	states  script.States
}

// TestScripts runs testdata/*.txt. A script's output is what changed by the command: what the
// machine describes, how many nodes of each group it lets be ordered, and when it wants to be
// woken. The commands:
//
//	config [cluster=adaptive] [group=0] [patience=15m]
//	order GROUP nodes=N | refuse GROUP nodes=N
//	list GROUP ids=(a, b) [nodes=(m, n)]          the provider lists instances, without the names of their nodes or with them
//	unlist ID
//	fail ID group=GROUP [times=1] | register GROUP [times=1]
//	node NAME group=GROUP [id=ID] [ready]         the API has it
//	place IMAGE on=NODE [daemon] | runs NODE [daemon]
//	node-gone NODE
//	step                                          the end of a Step
//	stages                                        the same, with the stages that launches have reached since stages was last called
//	held                                          a plan left pods without a node
//	tick DURATION
//	launch GROUP nodes=N [ready=100s] [pull=50s] [image=i]
//	                                              all of the above for N nodes, from an order that a plan is held back after to the first pods
//	become-leader
//	states                                        all that the machine describes
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		f := &fixture{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := script.NewArgs(t, d)
			f.answer = ""
			if d.Cmd == "config" {
				f.configure(args)
			} else {
				f.run(d, args)
			}
			args.Done()
			for _, broken := range f.machine.Invariants() {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			return f.output()
		})
	})
}

func (f *fixture) configure(args *script.Args) {
	limit := func(name, otherwise string) launching.Limit {
		text := args.String(name, otherwise)
		if text == "adaptive" {
			return launching.Adaptive
		}
		var n launching.Limit
		if _, err := fmt.Sscan(text, &n); err != nil {
			args.Fail("%s is %q: %v", name, text, err)
		}
		return n
	}
	f.machine = launching.New(launching.Config{Cluster: limit("cluster", "adaptive"), Group: limit("group", "0"), Patience: args.Duration("patience", 15*time.Minute)})
	f.turn = &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	f.coming, f.known = launching.Coming{}, map[string]bool{"g": true}
}

func (f *fixture) run(d *datadriven.TestData, args *script.Args) {
	now := f.turn.Now
	switch d.Cmd {
	case "order":
		f.order(args.Name(), args.Int("nodes", 0))
	case "refuse":
		f.comes(args.Name(), -args.Int("nodes", 0))
		f.machine.OrderRefused(args.Name(), args.Int("nodes", 0))
	case "list":
		names := args.List("nodes")
		for i, id := range args.List("ids") {
			name := ""
			if names != nil {
				name = names[i]
			}
			f.machine.InstanceListed(now, args.Name(), id, name)
		}
	case "unlist":
		f.machine.InstanceUnlisted(args.Name(), "")
	case "fail":
		group := args.String("group", "")
		for range args.Int("times", 1) {
			f.comes(group, -1)
			f.answer = fmt.Sprintf("its group backs off: %t\n", f.machine.LaunchFailed(now, group, args.Name(), "", f.coming))
		}
	case "register":
		for range args.Int("times", 1) {
			f.machine.InstanceRegistered(args.Name())
		}
	case "node":
		f.node(args.Name(), args.String("group", ""), args.String("id", ""), args.Flag("ready"))
	case "place":
		f.turn.State.Place(f.pod(args.Name(), args.Flag("daemon")), args.String("on", ""))
	case "runs":
		f.machine.PodRuns(now, args.Name(), f.pod("any", args.Flag("daemon")))
	case "node-gone":
		f.machine.NodeGone(args.Name())
	case "stages":
		f.machine.Advance(f.turn)
		for _, x := range f.turn.Ready.LaunchStages {
			f.answer += fmt.Sprintf("a node of %s is %s after %s\n", x.Group, x.Stage, x.Took)
		}
		f.turn.Ready.LaunchStages = nil
	case "step":
		f.machine.Advance(f.turn)
	case "held":
		f.machine.NodesHeldBack(now, f.groups(), f.coming)
	case "tick":
		f.tick(testkit.Must(time.ParseDuration(args.Name())))
	case "launch":
		f.launch(args.Name(), args.Int("nodes", 0), args.Duration("ready", 100*time.Second), args.Duration("pull", 50*time.Second), args.String("image", "i"))
	case "states":
		f.states.ShowAll()
	case "become-leader":
		f.machine.BecomeLeader()
	default:
		d.Fatalf(f.t, "unknown command %q", d.Cmd)
	}
}

func (f *fixture) tick(wait time.Duration) { f.turn.Now = f.turn.Now.Add(wait) }

// comes adds to how many nodes of a group are coming.
func (f *fixture) comes(group string, nodes int) {
	f.known[group] = true
	f.coming.Set(group, f.coming.Of(group)+nodes)
}

func (f *fixture) order(group string, nodes int) {
	f.comes(group, nodes)
	f.machine.NodesOrdered(f.turn.Now, group, nodes)
}

func (f *fixture) groups() []string {
	var out []string
	for _, id := range []string{"g", "h"} {
		if f.known[id] {
			out = append(out, id)
		}
	}
	return out
}

func (f *fixture) pod(image string, daemon bool) *cluster.Pod {
	f.serial++
	b := testkit.Pod(fmt.Sprint("p", f.serial)).Image(image)
	if daemon {
		b.Owner("apps/v1", "DaemonSet", "agent")
	}
	return f.turn.State.Schema.ParsePod(b.Obj())
}

func (f *fixture) node(name, group, id string, ready bool) {
	b := testkit.Node(name)
	b.Spec.ProviderID = id
	info := f.turn.State.Schema.ParseNode(b.Obj(), group)
	if !ready {
		info = info.WithTaint(v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	}
	f.turn.State.SetNode(info)
	if ready {
		f.comes(group, -1)
	}
	f.machine.NodeSet(f.turn.Now, info, ready)
}

func (f *fixture) launch(group string, nodes int, ready, pull time.Duration, image string) {
	f.order(group, nodes)
	var full launching.Coming
	full.Set(group, 1000)
	f.machine.NodesHeldBack(f.turn.Now, []string{group}, full)
	f.tick(ready)
	var names []string
	for range nodes {
		f.serial++
		name := fmt.Sprint("n", f.serial)
		names = append(names, name)
		f.machine.InstanceListed(f.turn.Now, group, name, name)
		f.node(name, group, name, true)
		f.turn.State.Place(f.pod(image, false), name)
	}
	f.machine.Advance(f.turn)
	f.tick(pull)
	for _, name := range names {
		f.machine.PodRuns(f.turn.Now, name, f.pod(image, false))
	}
	f.machine.PlanRequested()
}

func (f *fixture) output() string {
	states := f.machine.Describe()
	for _, id := range f.groups() {
		more := "any number"
		if room := f.machine.Room(f.turn.Now, id, f.coming); room < 1_000_000 {
			more = strconv.Itoa(room)
		}
		states = append(states, fmt.Sprintf("%s: %d coming, %s more may be ordered", id, f.coming.Of(id), more))
	}
	out := f.answer + f.states.Text(states, f.turn.Now, f.machine.NextWake())
	if f.machine.MayHaveRoom(f.turn.Now) {
		out += fmt.Sprintf("looks for room, and has some: %t\n", f.machine.HasRoom(f.turn.Now, f.coming))
	}
	return cmp.Or(out, "nothing\n")
}
