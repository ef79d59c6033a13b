package nodedeletion_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a machine with what stands around it: the state, and node groups whose
// answers the script gives.
type fixture struct {
	t         *testing.T
	machine   *nodedeletion.Machine
	unneeded  *candidates.Machine
	groups    *fakeGroups
	turn      *lifecycle.Turn
	providers []nodegroup.Group
	homes     *fakeHomes
	shown     string // by the command "show"
	states    script.States
	removing  map[string]bool // of the last Taint of each node, whether it takes the taint off
}

// fakeHomes keeps all homes but those of the nodes that a script names.
type fakeHomes struct {
	full map[string]bool // nodes for whose pods there is no room any more
	kept map[string]bool // nodes for whose pods room is kept
	out  strings.Builder
}

func newFakeHomes() *fakeHomes { return &fakeHomes{full: map[string]bool{}, kept: map[string]bool{}} }

func (h *fakeHomes) Reserve(_ *lifecycle.Turn, r *autoscaler.Removal) string {
	if h.full[r.Node] {
		return "the room is taken"
	}
	fmt.Fprintf(&h.out, "homes for %d pods of %s\n", len(r.Homes), r.Node)
	h.kept[r.Node] = true
	return ""
}

func (h *fakeHomes) PodEvicted(_ *lifecycle.Turn, pod *cluster.Pod) {
	fmt.Fprintf(&h.out, "the replacement of %s is expected\n", pod.Name())
}

func (h *fakeHomes) SuccessorRequested(_ *lifecycle.Turn, pod *cluster.Pod) {
	fmt.Fprintf(&h.out, "the successor of %s is expected\n", pod.Name())
}

func (h *fakeHomes) ReleaseUnevicted(_ *lifecycle.Turn, node string) {
	if h.kept[node] {
		fmt.Fprintf(&h.out, "no homes for pods left on %s\n", node)
	}
	delete(h.kept, node)
}

// fakeGroups answers what a script says.
type fakeGroups struct {
	known     bool
	delayed   map[string]bool
	instances map[string]fakeInstance // by ID
	lost      map[string]bool         // nodes whose instance is gone, by name
	out       strings.Builder
}

type fakeInstance struct {
	group string
	call  lifecycle.CallState
	late  bool
}

func (g *fakeGroups) Known() bool                                     { return g.known }
func (g *fakeGroups) ScaleDownDelayed(_ time.Time, group string) bool { return g.delayed[group] }
func (g *fakeGroups) ScaledDown(time.Time, string)                    {}
func (g *fakeGroups) Lost(n *cluster.NodeInfo) bool                   { return g.lost[n.Name] }

func (g *fakeGroups) ScaleDownFailed(_ time.Time, group string) {
	fmt.Fprintf(&g.out, "no node of %s goes for a while\n", group)
}

func (g *fakeGroups) Retarget(t *lifecycle.Turn, id string, delta int) {
	fmt.Fprintf(&g.out, "retarget %s by %d\n", id, delta)
	in := *t.State.Group(id)
	in.Target += delta
	t.State.SetGroup(id, &in)
}

func (g *fakeGroups) InstanceDeletion(id string) (group string, call lifecycle.CallState, late bool) {
	x := g.instances[id]
	return x.group, x.call, x.late
}

// TestScripts runs testdata/*.txt. A script's output is what the machine asked for, and what
// changed by the command: states of nodes on their way out, and when the machine wants to be
// woken. The commands:
//
//	config [unneeded=30s] [unready=1m] [keep-unready] [max=10] [max-drains=10] [delay-after-taint=5s] [keep-schedulable]
//	       [evict-daemons] [keep-daemons] [eviction-time=2m] [max-grace=0s] [tiers=(PRIORITY:DURATION, …)]
//	       [annotations=1m] [batch=0s] [no-scale-down] [surge]
//	group NAME [min=0] [target=3] [instances=(n1, n2)] [no-instances] [busy] [atomic] [keep=WHY]    the provider tells of it, and of all others again, or nothing while calls are under way
//	delayed GROUP                     it grew too recently to shrink
//	lost NODE                         its instance is gone, and the group's target doesn't include it
//	group-gone NAME                   the provider tells of all groups but this one; then
//	group-deleted NAME                the state has it no more
//	node NAME [group=g] [unready] [cordoned] [disabled] [delayed] [finalizers=(a, b)] [no-id | id=ID] [tainted [taint=900] [note=tainted|cordoned|empty] [foreign]]
//	                                  the API shows a node; its provider ID is its name, the one given, or none; delayed: an annotation asks to wait
//	node-gone NAME
//	instance ID group=g call=(called|in-doubt|unanswered|done) [late]    its deletion was asked for, since it was not a node
//	pod NAME on=NODE [priority=0] [grace=30s] [daemon] [mirror] [leaving] [stuck] [binding] [eviction=true|false]    stuck: it should have left long ago; binding: the API doesn't show it there yet
//	         [deployment=NAME] [surge]          surge: it asks for a successor first
//	pod-gone NAME
//	nominate POD to=NODE
//	full NODE | room NODE             there is no room any more for its pods | there is again
//	plan [empty=(n1, n2)] [drain=(n3) [unknown=(p1)] [waits-for=(p2)]]    drain: there are homes for all pods on it now, but the unknown
//	tainted NODE [key=KEY] [put] [fails] | evicted POD from=NODE [refused|fails] | surged POD from=NODE [fails] | deleted NODE [instance=NODE|none] [fails|unanswered]   outcomes,
//	                                  of the last that was asked for; put: of the taint, though it is being taken off since;
//	                                  refused: by a budget
//	recall NAME …                     a plan has the nodes stay; writes also which could
//	stand-by NAME …                   as node, while another process leads; then
//	resume NODE                       this process leads
//	tick DURATION                     time passes, then Advance
//	states                            all nodes on their way out
//	show                              the nodes in the state, and what others are told by EachOutOfState, Planned, Unanswered and Asked
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &fixture{t: t, removing: map[string]bool{}, homes: newFakeHomes(), groups: &fakeGroups{delayed: map[string]bool{}, instances: map[string]fakeInstance{}}}
		s.turn = &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema())}
		s.configure(candidates.Config{UnneededTime: 30 * time.Second, UnreadyTime: time.Minute}, nodedeletion.Config{MaxDeletions: 10, DeleteDelayAfterTaint: 5 * time.Second})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.turn.Ready = &step.Ready{}
			args := script.NewArgs(t, d)
			s.run(d, args)
			args.Done()
			for _, broken := range append(s.machine.Invariants(), s.machine.InvariantsIn(s.turn.State)...) {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			return s.output()
		})
	})
}

func (s *fixture) configure(unneeded candidates.Config, cfg nodedeletion.Config) {
	s.unneeded, s.machine = candidates.New(unneeded), nodedeletion.New(cfg)
	s.machine.Connect(s.groups, s.unneeded, s.homes, lifecycletest.Uninterrupted{})
}

func (s *fixture) run(d *datadriven.TestData, args *script.Args) {
	t := s.turn
	switch d.Cmd {
	case "config":
		s.configure(config(args))
	case "group":
		s.group(args)
	case "group-gone":
		gone := args.Name()
		s.providers = slices.DeleteFunc(s.providers, func(g nodegroup.Group) bool { return g.ID == gone })
		s.machine.GroupsSet(t, step.GroupsSet{Groups: s.providers})
	case "group-deleted":
		t.State.SetGroup(args.Name(), nil)
	case "lost":
		s.groups.lost = map[string]bool{args.Name(): true}
	case "delayed":
		s.groups.delayed[args.Name()] = true
	case "node":
		if node := s.machine.NodeSet(t, s.node(args)); node != nil {
			t.State.SetNode(node)
		}
	case "stand-by":
		t.State.SetNode(s.node(args))
	case "node-gone":
		t.State.RemoveNode(args.Name())
		s.machine.NodeGone(t, args.Name())
	case "instance":
		call := map[string]lifecycle.CallState{"called": lifecycle.Called, "in-doubt": lifecycle.InDoubt, "unanswered": lifecycle.Unanswered, "done": lifecycle.Done}[args.String("call", "")]
		s.groups.instances[args.Name()] = fakeInstance{args.String("group", ""), call, args.Flag("late")}
	case "pod":
		t.State.Place(s.pod(args), args.String("on", ""))
		s.machine.PodChanged(t, args.String("on", ""))
	case "nominate":
		t.State.Nominate(t.State.Schema.ParsePod(testkit.Pod(args.Name()).Obj()), args.String("to", ""))
		s.machine.PodChanged(t, args.String("to", ""))
	case "pod-gone":
		uid := testkit.Pod(args.Name()).UID
		s.machine.PodChanged(t, t.State.NodeOf(uid).Name)
		t.State.Remove(uid)
	case "full":
		s.homes.full[args.Name()] = true
	case "room":
		delete(s.homes.full, args.Name())
	case "recall":
		for _, x := range s.machine.Recallable(t.State) {
			n := x.Stays()
			s.shown += fmt.Sprintf("%s could stay, ready: %t, tainted: %t, unschedulable: %t\n", n.Name, n.Ready(), n.HasTaint(autoscaler.ToBeDeletedTaint), n.Object.Spec.Unschedulable)
		}
		var recalls []autoscaler.Recall
		for _, arg := range d.CmdArgs {
			args.Flag(arg.Key)
			recalls = append(recalls, autoscaler.Recall{Node: arg.Key})
		}
		s.machine.Recall(t, recalls, func(*autoscaler.Recall) string { return "it is needed" })
	case "plan":
		s.machine.Begin(t, s.unneeded.CommitPlan(t, s.plan(args)))
	case "tainted", "evicted", "surged", "deleted":
		s.outcome(d.Cmd, args)
	case "resume":
		s.machine.Resume(t, t.State.NodeByName(args.Name()).NodeInfo)
	case "tick":
		wait, err := time.ParseDuration(args.Name())
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		t.Now = t.Now.Add(wait)
		s.machine.Advance(t)
	case "states":
		s.states.ShowAll()
	case "show":
		s.show()
	default:
		d.Fatalf(s.t, "unknown command %q", d.Cmd)
	}
}

// plan returns a plan that has the nodes given removed: those to be drained with homes for
// their pods as they are now.
func (s *fixture) plan(args *script.Args) *autoscaler.Plan {
	plan := &autoscaler.Plan{Now: s.turn.Now}
	for _, name := range args.List("empty") {
		plan.Removals = append(plan.Removals, &autoscaler.Removal{Node: name})
	}
	unknown, waits := args.List("unknown"), args.List("waits-for")
	for _, name := range args.List("drain") {
		r := &autoscaler.Removal{Node: name, WaitsFor: waits}
		for _, p := range s.turn.State.NodeByName(name).Pods {
			if !p.OfNode && !slices.Contains(unknown, p.Object.Name) {
				r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID, Node: "elsewhere"})
			}
		}
		plan.Removals = append(plan.Removals, r)
	}
	return plan
}

func config(args *script.Args) (candidates.Config, nodedeletion.Config) {
	return candidates.Config{
			UnneededTime: args.Duration("unneeded", 30*time.Second), UnreadyTime: args.Duration("unready", time.Minute),
			KeepUnready: args.Flag("keep-unready"),
		}, nodedeletion.Config{
			MaxDeletions: args.Int("max", 10), MaxDrains: args.Int("max-drains", 10),
			DeleteDelayAfterTaint: args.Duration("delay-after-taint", 5*time.Second),
			EvictDaemonPods:       args.Flag("evict-daemons"), KeepDaemonPods: args.Flag("keep-daemons"),
			Drain: draining.Config{
				MaxEviction: args.Duration("eviction-time", 2*time.Minute), MaxGrace: args.Duration("max-grace", 0), Tiers: tiers(args.List("tiers")), Surge: args.Flag("surge"),
			},
			DeletionDelayTimeout: args.Duration("annotations", time.Minute), DeletionBatchInterval: args.Duration("batch", 0),
			KeepSchedulable: args.Flag("keep-schedulable"), LeaveResumed: args.Flag("no-scale-down"),
		}
}

// tiers reads priorities with times, as in 0:30s.
func tiers(list []string) (out []autoscaler.DrainTier) {
	for _, x := range list {
		var tier autoscaler.DrainTier
		priority, grace, _ := strings.Cut(x, ":")
		p, err := strconv.ParseInt(priority, 10, 32)
		if err == nil {
			tier.Grace, err = time.ParseDuration(grace)
		}
		if err != nil {
			panic(err)
		}
		tier.Priority = int32(p)
		out = append(out, tier)
	}
	return out
}

func (s *fixture) group(args *script.Args) {
	g := nodegroup.Group{ID: args.Name(), Min: args.Int("min", 0), Max: 10, Target: args.Int("target", 3)}
	if !args.Flag("no-instances") {
		g.Instances = []nodegroup.Instance{}
	}
	if args.Flag("atomic") {
		g.Options = &cluster.GroupOptions{ZeroOrMax: true}
	}
	for _, id := range args.List("instances") {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: id})
	}
	g.KeepNodes = args.String("keep", "")
	s.providers = append(slices.DeleteFunc(s.providers, func(x nodegroup.Group) bool { return x.ID == g.ID }), g)
	s.groups.known = true
	in := step.GroupsSet{Groups: s.providers}
	if args.Flag("busy") { // all are as they were, whatever it says
		in = step.GroupsSet{}
		for _, x := range s.providers {
			in.Busy = append(in.Busy, x.ID)
		}
	}
	s.machine.GroupsSet(s.turn, in)
	s.turn.State.SetGroup(g.ID, &cluster.NodeGroup{ID: g.ID, Min: g.Min, Max: g.Max, Target: g.Target, Options: g.Options, KeepNodes: g.KeepNodes})
}

func (s *fixture) node(args *script.Args) *cluster.NodeInfo {
	b := testkit.Node(args.Name())
	if !args.Flag("no-id") {
		b.Spec.ProviderID = args.String("id", b.Name)
	}
	if args.Flag("unready") {
		b.Status.Conditions[0].Status = v1.ConditionFalse
	}
	b.Finalizers = args.List("finalizers")
	b.Annotations = map[string]string{}
	if args.Flag("tainted") {
		b.Taint(autoscaler.ToBeDeletedTaint, args.String("taint", "900"), v1.TaintEffectNoSchedule)
		if !args.Flag("foreign") {
			b.Annotations[autoscaler.RemovalNote] = map[string]string{
				"tainted": "why", "cordoned": "cordoned; why", "empty": "",
			}[args.String("note", "tainted")]
		}
	}
	if args.Flag("cordoned") {
		b.Cordon()
	}
	if args.Flag("disabled") {
		b.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
	}
	if args.Flag("delayed") {
		b.Annotations["delay-deletion.cluster-autoscaler.kubernetes.io/logs"] = ""
	}
	return s.turn.State.Schema.ParseNode(b.Obj(), args.String("group", ""))
}

func (s *fixture) pod(args *script.Args) *cluster.Pod {
	b := testkit.Pod(args.Name()).Priority(int32(args.Int("priority", 0)))
	b.Spec.TerminationGracePeriodSeconds = ptr.To(int64(args.Duration("grace", 30*time.Second).Seconds()))
	if args.Flag("daemon") {
		b.Owner("apps/v1", "DaemonSet", "agent")
	}
	if !args.Flag("binding") {
		b.On("its node")
	}
	if args.Flag("leaving") {
		b.DeletionTimestamp = &metav1.Time{Time: s.turn.Now}
	}
	if args.Flag("stuck") {
		b.DeletionTimestamp = &metav1.Time{Time: s.turn.Now.Add(-time.Hour)}
	}
	b.Annotations = map[string]string{}
	if name := args.String("deployment", ""); name != "" {
		b.Owner("apps/v1", "ReplicaSet", name+"-5d9").Label("pod-template-hash", "5d9")
	}
	if args.Flag("surge") {
		b.Annotate(cluster.SurgeAnnotation, "true")
	}
	if args.Flag("mirror") {
		b.Annotations[v1.MirrorPodAnnotationKey] = "x"
	}
	if wish := args.String("eviction", ""); wish != "" {
		b.Annotations["cluster-autoscaler.kubernetes.io/enable-ds-eviction"] = wish
	}
	return s.turn.State.Schema.ParsePod(b.Obj())
}

// outcome tells the machine how a piece of work ended.
func (s *fixture) outcome(cmd string, args *script.Args) {
	t := s.turn
	var err error
	refused := args.Flag("refused")
	if args.Flag("fails") || refused {
		err = errors.New("refused")
	}
	switch cmd {
	case "tainted":
		remove := s.removing[args.Name()] && !args.Flag("put")
		s.machine.TaintDone(t, step.TaintDone{Node: args.Name(), Key: args.String("key", autoscaler.ToBeDeletedTaint), Remove: remove, Err: err})
	case "evicted":
		s.machine.EvictionDone(t, step.EvictionDone{UID: testkit.Pod(args.Name()).UID, Node: args.String("from", ""), Err: err, Refused: refused})
	case "surged":
		s.machine.SurgeDone(t, step.SurgeDone{UID: testkit.Pod(args.Name()).UID, Node: args.String("from", ""), Err: err})
	case "deleted":
		in := step.NodeDeletionDone{Node: args.Name(), Instance: args.String("instance", args.Name()), Err: err}
		if args.Flag("unanswered") {
			in.Err, in.Unknown = context.DeadlineExceeded, true
		}
		if in.Instance == "none" {
			in.Instance = ""
		}
		s.machine.NodeDeletionDone(t, in)
	}
}

// show writes which nodes the state has, and what the machine answers to those who ask it.
func (s *fixture) show() {
	s.turn.State.Nodes(func(n *cluster.Node) {
		s.shown += fmt.Sprintf("state: node %s of %s, ready: %t, tainted: %t, unschedulable: %t, note: %q\n", n.Name, n.Group, n.Ready(),
			n.HasTaint(autoscaler.ToBeDeletedTaint), n.Object.Spec.Unschedulable, n.Object.Annotations[autoscaler.RemovalNote])
	})
	var out []string
	s.machine.EachOutOfState(func(n *cluster.NodeInfo) { out = append(out, n.Name) })
	slices.Sort(out)
	s.shown += fmt.Sprintf("out of the state: %v\n", out)
	asked := map[string]int{}
	s.machine.EachAsked(func(group string) { asked[group]++ })
	for _, g := range s.providers {
		s.shown += fmt.Sprintf("group %s: %d planned, %d unanswered, %d asked\n", g.ID, s.machine.Planned(g.ID), s.machine.Unanswered(g.ID), asked[g.ID])
	}
}

func (s *fixture) output() string {
	var out strings.Builder
	r := s.turn.Ready
	out.WriteString(s.shown)
	s.shown = ""
	for i := range r.Decisions {
		if kind := r.Decisions[i].Kind; kind != step.NodeUnneeded && kind != step.NodeNeeded { // these are the candidates'
			fmt.Fprintln(&out, r.Decisions[i].String())
		}
	}
	for _, x := range r.Taints {
		s.removing[x.Node] = x.Remove
		verb := "taint"
		if x.Remove {
			verb = "untaint"
		}
		fmt.Fprintf(&out, "%s %s %s=%s:%s, cordon: %t, note: %q\n", verb, x.Node, x.Taint.Key, x.Taint.Value, x.Taint.Effect, x.Cordon, x.Note)
	}
	for _, x := range r.Evictions {
		within := ""
		if x.Grace != nil {
			within = " within " + x.Grace.String()
		}
		fmt.Fprintf(&out, "evict %s/%s from %s%s\n", x.Namespace, x.Name, x.Node, within)
	}
	for _, x := range r.Surges {
		fmt.Fprintf(&out, "surge %s/%s for a pod on %s, at %s\n", x.Namespace, x.Deployment, x.Node, x.At.UTC().Format(time.TimeOnly))
	}
	for _, x := range r.NodeDeletions {
		fmt.Fprintf(&out, "delete node %s, instance %s of %s\n", x.Node, x.Instance, x.Group)
	}
	for _, x := range r.Events {
		kind := "Normal"
		if x.Warning {
			kind = "Warning"
		}
		fmt.Fprintf(&out, "event %s %s %s %s: %s\n", cmp.Or(x.Name, "of the status"), kind, x.Reason, x.Action, x.Message)
	}
	out.WriteString(s.groups.out.String())
	s.groups.out.Reset()
	out.WriteString(s.homes.out.String())
	s.homes.out.Reset()
	states := s.machine.Unsettled()
	for i, line := range states {
		states[i] = strings.Replace(strings.TrimPrefix(line, "the deletion of "), " is under way", "", 1)
	}
	out.WriteString(s.states.Text(states, s.turn.Now, s.machine.NextWake()))
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
