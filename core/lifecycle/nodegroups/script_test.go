package nodegroups_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a machine with what stands around it: the state, a provider, and node
// deletions as the script says.
type fixture struct {
	t         *testing.T
	machine   *nodegroups.Machine
	deletions *fakeDeletions
	turn      *lifecycle.Turn
	provider  []nodegroup.Group
	answer    string // of a command that asks
	states    script.States
}

type fakeDeletions struct {
	planned, unanswered map[string]int // by group
	outOfState          []*cluster.NodeInfo
}

func (f *fakeDeletions) Planned(group string) int    { return f.planned[group] }
func (f *fakeDeletions) Unanswered(group string) int { return f.unanswered[group] }
func (f *fakeDeletions) EachOutOfState(each func(*cluster.NodeInfo)) {
	for _, n := range f.outOfState {
		each(n)
	}
}

// TestScripts runs testdata/*.txt. A script's output is what the machine asked for, and what
// changed by the command of the groups in the state and of what the machine remembers. The
// commands:
//
//	config [delay-after-add=10m] [delay-after-delete=0s] [delay-after-failure=3m] [cluster-delays]
//	       [provision=15m] [force-delete] [read-only] [startup=15m] [needs-drivers] [startup-taint=KEY]
//	       [max-launching=0] [max-launching-per-group=0]
//	       [initial-backoff=5m] [max-backoff=30m] [backoff-reset=3h]
//	provider GROUP [min=0] [max=10] [target=0] [keep=WHY] [instances=(i1, i2)] [failed=(i3)] [stocked-out=(i4)]
//	         [cpu=4] [template-error=WHY] [busy=(h)] [was=OLD]                        the provider tells of it, instead of OLD, and of all others again but the busy ones
//	provider-gone GROUP
//	node NAME [group=g] [id=ID] [notready] [age=1m] [taint=KEY] | node-gone NAME    in the state; without age it was created long ago
//	placed POD on=NODE
//	plan                                                 a plan is going to be requested
//	driver | csinode NAME                                the CSI driver "disks" is demanded, is installed on a node
//	device-class                                         a class of devices is there
//	publish NODE count=N [of=1] [driver=gpu] | withdraw NODE [driver=gpu]    its devices; of: slices of their pool, of which this is one
//	devices GROUP                                        what is remembered of the devices of its nodes
//	deletions GROUP [planned=0] [unanswered=0]           how many of its nodes are on their way out
//	out-of-state NAME [id=ID]                            a node on its way out
//	scale-up GROUP nodes=N [pods=(a, b)] [waiting=(a)] [replaces=N]    a plan proposes it; all of its pods wait, if it isn't said which
//	last GROUP                                           what it was last asked for, and what failed last
//	scaled GROUP nodes=N [fails | out-of-stock | unanswered]
//	describe GROUP                                       what people are told of it
//	cancel GROUP [nodes=1]                               nobody needs so many of its nodes that are coming
//	deletion ID                                          how far that of an instance is
//	instance-deleted ID [fails | unanswered]
//	scaled-down GROUP | scale-down-fails GROUP           the provider was asked to delete a node; it could not be deleted
//	may-shrink GROUP
//	tick DURATION
//	states                                               all groups, and all that the machine remembers
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &fixture{t: t, deletions: &fakeDeletions{planned: map[string]int{}, unanswered: map[string]int{}}}
		s.turn = &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema())}
		s.configure(script.NewArgs(t, &datadriven.TestData{}))
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.turn.Ready, s.answer = &step.Ready{}, ""
			args := script.NewArgs(t, d)
			s.run(d, args)
			args.Done()
			for _, broken := range s.machine.Invariants() {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			return s.output()
		})
	})
}

func (s *fixture) configure(args *script.Args) {
	s.machine = nodegroups.New(nodegroups.Config{
		DelayAfterAdd: args.Duration("delay-after-add", 10*time.Minute), DelayAfterDelete: args.Duration("delay-after-delete", 0),
		DelayAfterFailure: args.Duration("delay-after-failure", 3*time.Minute), ClusterDelays: args.Flag("cluster-delays"),
		MaxProvisionTime: args.Duration("provision", 15*time.Minute), ForceDeleteUnregistered: args.Flag("force-delete"), ReadOnly: args.Flag("read-only"),
		Readiness:      readiness(args),
		InitialBackoff: args.Duration("initial-backoff", 5*time.Minute), MaxBackoff: args.Duration("max-backoff", 30*time.Minute),
		BackoffReset: args.Duration("backoff-reset", 3*time.Hour),
	}, s.deletions, launching.New(launching.Config{Cluster: launching.Limit(args.Int("max-launching", 0)), Group: launching.Limit(args.Int("max-launching-per-group", 0))}))
}

func readiness(args *script.Args) autoscaler.Readiness {
	out := autoscaler.Readiness{StartupTime: args.Duration("startup", 15*time.Minute)}
	if args.Flag("needs-drivers") {
		out.Parts = cluster.CSIDrivers
	}
	if args.Flag("needs-devices") {
		out.Parts |= cluster.Devices
	}
	if key := args.String("startup-taint", ""); key != "" {
		out.StartupTaints = []string{key}
	}
	return out
}

func (s *fixture) run(d *datadriven.TestData, args *script.Args) {
	t := s.turn
	var err error
	class := nodegroup.OtherError
	if d.Cmd != "config" && args.Flag("fails") {
		err = errors.New("refused")
	}
	if d.Cmd == "scaled" && args.Flag("out-of-stock") {
		err, class = errors.New("out of stock"), nodegroup.OutOfResources
	}
	unknown := (d.Cmd == "scaled" || d.Cmd == "instance-deleted") && args.Flag("unanswered")
	if unknown {
		err = context.DeadlineExceeded
	}
	switch d.Cmd {
	case "config":
		s.configure(args)
	case "provider":
		g := nodegroup.Group{ID: args.Name(), Min: args.Int("min", 0), Max: args.Int("max", 10), Target: args.Int("target", 0), KeepNodes: args.String("keep", ""), Template: testkit.Node("t").Alloc("cpu", args.String("cpu", "4")).Obj()}
		if g.TemplateError = args.String("template-error", ""); g.TemplateError != "" {
			g.Template = nil
		}
		list := args.List("instances")
		if list != nil {
			g.Instances = []nodegroup.Instance{}
		}
		for _, id := range list {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: id})
		}
		for _, id := range args.List("failed") {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Failed: "it is broken"})
		}
		for _, id := range args.List("stocked-out") {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Failed: "the zone is out of stock", Class: nodegroup.OutOfResources})
		}
		was := args.String("was", g.ID)
		s.provider = append(slices.DeleteFunc(s.provider, func(x nodegroup.Group) bool { return x.ID == g.ID || x.ID == was }), g)
		s.machine.GroupsSet(t, s.list(args.List("busy")))
	case "provider-gone":
		name := args.Name()
		s.provider = slices.DeleteFunc(s.provider, func(x nodegroup.Group) bool { return x.ID == name })
		s.machine.GroupsSet(t, s.list(nil))
	case "node":
		n := s.node(args.Name(), args.String("id", ""), args.String("group", ""))
		if args.Flag("notready") {
			n = notReady(n)
		}
		n = s.aged(n, args)
		t.State.SetNode(n)
		s.machine.DevicesShown(t.State, n)
	case "plan":
		s.machine.LookAtLaunched(t)
	case "placed":
		t.State.Place(t.State.Schema.ParsePod(testkit.Pod(args.Name()).Obj()), args.String("on", ""))
	case "driver":
		t.State.SetObject(testkit.Demanded(testkit.CSIDriver("disks", false)))
	case "csinode":
		t.State.SetObject(testkit.CSINode(args.Name()).Driver("disks", 5).Obj())
	case "device-class":
		t.State.SetObject(testkit.DeviceClass("gpu", ""))
	case "publish", "withdraw":
		s.publish(args, d.Cmd == "publish")
	case "devices":
		s.answer = s.devices(args.Name())
	case "node-gone":
		t.State.RemoveNode(args.Name())
		s.machine.NodeGone(args.Name())
	case "deletions":
		s.deletions.planned[args.Name()], s.deletions.unanswered[args.Name()] = args.Int("planned", 0), args.Int("unanswered", 0)
	case "out-of-state":
		s.deletions.outOfState = append(s.deletions.outOfState, s.node(args.Name(), args.String("id", ""), ""))
	case "scale-up":
		up := &autoscaler.ScaleUp{Group: args.Name(), Nodes: args.Int("nodes", 0), Pods: uids(args.List("pods")), Wasted: 0.5, Replaces: args.Int("replaces", 0)}
		for i := range up.Nodes { // the pods in turn; more nodes than pods are for the same ones again
			up.Bins = append(up.Bins, nil)
			for k := i; k < max(len(up.Pods), up.Nodes) && len(up.Pods) > 0; k += up.Nodes {
				up.Bins[i] = append(up.Bins[i], up.Pods[k%len(up.Pods)])
			}
		}
		waiting := up.Pods
		if w := args.List("waiting"); w != nil {
			waiting = uids(w)
		}
		if growth, ok := s.machine.CommitScaleUp(t, up, func(uid types.UID) bool { return slices.Contains(waiting, uid) }); ok {
			s.answer = growth.String() + "\n"
			for i, bin := range growth.Bins {
				s.answer += fmt.Sprintf("node %d for %v\n", i, bin)
			}
			if growth.Without != nil {
				s.answer += fmt.Sprintf("none is ordered for %v\n", slices.Sorted(maps.Keys(growth.Without)))
			}
		}
	case "scaled":
		s.machine.ScaleUpDone(t, step.ScaleUpDone{Group: args.Name(), Nodes: args.Int("nodes", 0), Err: err, Class: class, Unknown: unknown})
	case "last":
		name := args.Name()
		if a := s.machine.LastAsked(name); a != nil {
			s.answer += fmt.Sprintf("asked at %d for %d of %d nodes, %s, for %d pods\n", a.At.Unix(), a.To-a.From, a.Wanted, a.Growth, a.Pods)
		}
		if f := s.machine.LastFailure(name); f != nil {
			s.answer += fmt.Sprintf("failed at %d, an order of %d: %s\n", f.At.Unix(), f.Nodes, f.Why)
		}
	case "cancel":
		s.answer = fmt.Sprintf("%d nodes given up\n", s.machine.Cancel(t, args.Name(), args.Int("nodes", 1)))
	case "deletion":
		group, call, late := s.machine.InstanceDeletion(args.Name())
		s.answer = fmt.Sprintf("its deletion from group %q: %s\n", group, call)
		if late {
			s.answer += "a call that had no answer may still be carried out\n"
		}
	case "instance-deleted":
		s.machine.NodeDeletionDone(t, step.NodeDeletionDone{Instance: args.Name(), Err: err, Unknown: unknown})
	case "describe":
		s.answer = s.describe(args.Name())
	case "scaled-down":
		s.machine.ScaledDown(t.Now, args.Name())
	case "scale-down-fails":
		s.machine.ScaleDownFailed(t.Now, args.Name())
	case "may-shrink":
		s.answer = s.mayShrink(args.Name())
	case "states":
		s.states.ShowAll()
	case "tick":
		wait, err := time.ParseDuration(args.Name())
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		t.Now = t.Now.Add(wait)
		s.machine.Advance(t)
	default:
		d.Fatalf(s.t, "unknown command %q", d.Cmd)
	}
}

// mayShrink writes whether a group may shrink, and otherwise from when on and why it may not.
func (s *fixture) mayShrink(group string) string {
	until, why := s.machine.ScaleDownDelay(s.turn.Now, group)
	if delayed := s.machine.ScaleDownDelayed(s.turn.Now, group); delayed == until.IsZero() {
		s.t.Fatalf("group %s is delayed: %t, and until %s", group, delayed, until)
	}
	if until.IsZero() {
		return "true" + why + "\n"
	}
	return fmt.Sprintf("in %s: %s\n", until.Sub(s.turn.Now), why)
}

// list is what the provider tells of its groups, while calls of some are under way.
func (s *fixture) list(busy []string) step.GroupsSet {
	in := step.GroupsSet{Busy: busy}
	for _, g := range s.provider {
		if !slices.Contains(busy, g.ID) {
			in.Groups = append(in.Groups, g)
		}
	}
	return in
}

// describe writes what people are told of a group, with times from now on.
func (s *fixture) describe(name string) string {
	d, ok := s.machine.Describe(s.turn, name)
	if !ok {
		return "the provider doesn't list it\n"
	}
	out := fmt.Sprintf("%s: %d to %d nodes, %d wanted, %d coming, %d unanswered, orders of %d at most\n", d.ID, d.Min, d.Max, d.Target, d.Coming, d.Unanswered, d.MaxOrder)
	if !d.LastScaleUp.IsZero() {
		out += fmt.Sprintf("  ordered %s ago\n", s.turn.Now.Sub(d.LastScaleUp))
	}
	if d.TemplateError != "" {
		out += fmt.Sprintf("  no template: %s; the last has %dm cpu\n", d.TemplateError, s.turn.State.Group(name).Template.Allocatable.At(cluster.CPU))
	}
	if b := d.Backoff; b != nil {
		out += fmt.Sprintf("  backs off for %s: %s: %s\n", b.Until.Sub(s.turn.Now), b.Class, b.Reason)
	}
	for _, i := range d.Instances {
		out += fmt.Sprintf("  instance %s of node %q: %s for %s\n", i.ID, i.Node, i.State, s.turn.Now.Sub(i.Since))
	}
	return out
}

func (s *fixture) node(name, id, group string) *cluster.NodeInfo {
	b := testkit.Node(name)
	b.Spec.ProviderID = id
	return s.turn.State.Schema.ParseNode(b.Obj(), group)
}

// aged returns a node as old as a command says, and with its taint.
func (s *fixture) aged(n *cluster.NodeInfo, args *script.Args) *cluster.NodeInfo {
	object := *n.Object
	if age := args.Duration("age", 0); age > 0 {
		object.CreationTimestamp.Time = s.turn.Now.Add(-age)
	}
	if key := args.String("taint", ""); key != "" {
		object.Spec.Taints = []v1.Taint{{Key: key, Effect: v1.TaintEffectNoSchedule}}
	}
	return n.With(&object)
}

// notReady returns a node as it is when its kubelet has stopped.
func notReady(n *cluster.NodeInfo) *cluster.NodeInfo {
	object := *n.Object
	object.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
	return n.With(&object)
}

func uids(names []string) (out []types.UID) {
	for _, name := range names {
		out = append(out, types.UID(name))
	}
	return out
}

func (s *fixture) output() string {
	var out strings.Builder
	out.WriteString(s.answer)
	r := s.turn.Ready
	for i := range r.Decisions {
		fmt.Fprintln(&out, r.Decisions[i].String())
	}
	for _, x := range r.ScaleUps {
		fmt.Fprintf(&out, "scale up %s by %d\n", x.Group, x.Nodes)
	}
	for _, x := range r.NodeDeletions {
		fmt.Fprintf(&out, "delete instance %s of %s\n", x.Instance, x.Group)
	}
	for _, x := range r.TargetDecreases {
		fmt.Fprintf(&out, "lower the target of %s by %d\n", x.Group, x.Nodes)
	}
	for _, x := range r.ScaleUpFailures {
		fmt.Fprintf(&out, "counted: %d nodes of %s failed: %s\n", x.Nodes, x.Group, x.Code)
	}
	for _, x := range r.Events {
		kind := "event"
		if x.Warning {
			kind = "warning"
		}
		fmt.Fprintf(&out, "%s of the status about %s, %s: %s\n", kind, x.Related, x.Reason, x.Message)
	}
	out.WriteString(s.states.Text(s.described(), s.turn.Now, time.Time{}))
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

// described returns a line for each group in the state, and those of what the machine remembers.
func (s *fixture) described() (lines []string) {
	conditions := s.machine.Conditions(s.turn.Now)
	for _, g := range s.turn.State.Groups() {
		line := fmt.Sprintf("%s: target %d of %d to %d", g.ID, g.Target, g.Min, g.Max)
		if conditions[g.ID].BackingOff {
			line += ", backing off"
		}
		if late := conditions[g.ID].LongUnregistered; late > 0 {
			line += fmt.Sprintf(", %d long unregistered", late)
		}
		if n := conditions[g.ID].Deleting; n > 0 {
			line += fmt.Sprintf(", %d being deleted", n)
		}
		lines = append(lines, line)
	}
	return append(lines, s.machine.Remembers()...)
}

// publish lets a driver publish devices of a node, or withdraw them.
func (s *fixture) publish(args *script.Args, is bool) {
	node, driver := args.Name(), args.String("driver", "gpu")
	now := testkit.NodeSlice(driver, node).Obj()
	old := s.turn.State.ResourceSlice(now.Name)
	if !is {
		s.turn.State.RemoveObject(cluster.ResourceSliceKind, "", now.Name)
		s.machine.SliceChanged(s.turn.State, nil, old)
		return
	}
	now.Spec.Pool.ResourceSliceCount = int64(args.Int("of", 1))
	for i := range args.Int("count", 0) {
		now.Spec.Devices = append(now.Spec.Devices, testkit.Device(fmt.Sprint("d", i)).Device)
	}
	s.turn.State.SetObject(now)
	s.machine.SliceChanged(s.turn.State, now, old)
}

// devices writes what is remembered of the devices of a group's nodes.
func (s *fixture) devices(group string) (out string) {
	for _, d := range s.machine.Conditions(s.turn.Now)[group].Devices {
		out += fmt.Sprintf("%d devices of %s", d.Devices, d.Driver)
		if !d.Live {
			out += ", on no node now"
		}
		out += "\n"
	}
	return out
}
