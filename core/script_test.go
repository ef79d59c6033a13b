package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"

	"github.com/cockroachdb/datadriven"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/internal/testkit"
)

// world runs scripts against a core. Each command is one Step; its golden text
// is the Ready that came back. Plans are made at once, as the virtual world
// does.
type world struct {
	*driven
	t      *testing.T
	out    strings.Builder // what the Steps of a command brought
	now    time.Time
	groups []nodegroup.Group
}

func newWorld(t *testing.T, path string) *world {
	cfg := core.Config{Engine: engine.Options{Seed: 1}}
	if !strings.Contains(path, "scheduling") {
		cfg.Autoscale = &core.Autoscale{UnneededTime: 30 * time.Second, DelayAfterAdd: time.Minute, EvictDaemonPods: strings.Contains(path, "evict")}
	}
	w := &world{t: t, now: time.Unix(1000, 0)}
	w.driven = newDriven(t, cfg, inlinePlans{}, defaults, drive.HookFunc(w.print))
	return w
}

// TestScripts runs testdata/scripts/*.txt. The commands:
//
//	node NAME [cpu=4] [memory=8Gi] [zone=z] [group=g] [notready] [taint=key]
//	pod NAME [cpu=1] [memory=1Gi] [priority=0] [gate=g] [apart=LABEL] [app=a] [on=NODE] [phase=P] [deleting] [daemon] [tolerates=KEY] [scheduler=s] [peaceful] [nominated=NODE] [uid=U]
//	pods PREFIX count=N …   the same, N times, in one Step
//	daemonset NAME [cpu=1] [memory=1Gi]
//	gone NAME | node-gone NAME       a pod's name, or its uid where it was given one
//	group NAME min=0 max=3 cpu=4 memory=8Gi [target=0] [machines=A+B+…] [failed=A]
//	bound NAME | bind-failed NAME
//	tainted NODE | taint-failed NODE
//	scaled GROUP nodes=N | scale-failed GROUP nodes=N
//	evicted NAME from=NODE
//	told NAME by=POD | tell-failed NAME by=POD        outcomes of a preemption
//	nominated NAME [to=NODE] | nominate-failed NAME [to=NODE]
//	deleted NODE | delete-failed NODE | machine-deleted MACHINE
//	tick SECONDS            time passes; a Step at the end
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld(t, path)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}

func (w *world) run(d *datadriven.TestData) string {
	arg := func(key, def string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				if len(a.Vals) == 0 {
					return "true"
				}
				return a.Vals[0]
			}
		}
		return def
	}
	number := func(key string, def int) int {
		v := def
		fmt.Sscan(arg(key, fmt.Sprint(def)), &v)
		return v
	}
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	uid := types.UID("pod-" + name)
	failed := errors.New("refused")
	switch d.Cmd {
	case "node":
		b := testkit.Node(name).Alloc("cpu", arg("cpu", "4"), "memory", arg("memory", "8Gi"))
		b.CreationTimestamp = metav1.NewTime(w.now)
		b.Spec.ProviderID = name
		if z := arg("zone", ""); z != "" {
			b.Zone(z)
		}
		if k := arg("taint", ""); k != "" {
			b.Taint(k, "", v1.TaintEffectNoSchedule)
		}
		if arg("notready", "") != "" {
			b.Status.Conditions[0].Status = v1.ConditionFalse
			b.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
		}
		return w.step(step.NodeSet{Node: b.Obj(), Group: arg("group", "")})
	case "pod":
		return w.step(step.PodSet{Pod: w.pod(name, arg)})
	case "pods":
		var in []step.Input
		for i := range number("count", 1) {
			in = append(in, step.PodSet{Pod: w.pod(fmt.Sprint(name, i), arg)})
		}
		return w.step(in...)
	case "daemonset":
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("ds-" + name)}}
		ds.Spec.Template.Spec = w.pod(name, arg).Spec
		return w.step(step.DaemonSetSet{DaemonSet: ds})
	case "gone":
		return w.step(step.PodGone{UID: uid})
	case "node-gone":
		return w.step(step.NodeGone{Name: name})
	case "group":
		template := testkit.Node(name).Alloc("cpu", arg("cpu", "4"), "memory", arg("memory", "8Gi")).Obj()
		g := nodegroup.Group{ID: name, Min: number("min", 0), Max: number("max", 10), Target: number("target", 0), Template: template}
		if m := arg("machines", ""); m != "" {
			for _, id := range strings.Split(m, "+") {
				why := ""
				if id == arg("failed", "") {
					why = "it is broken"
				}
				g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Node: id, Failed: why})
			}
		}
		w.groups = slices.DeleteFunc(w.groups, func(x nodegroup.Group) bool { return x.ID == name })
		w.groups = append(w.groups, g)
		return w.step(step.GroupsSet{Groups: slices.Clone(w.groups)})
	case "bound":
		return w.step(step.BindDone{UID: uid})
	case "bind-failed":
		return w.step(step.BindDone{UID: uid, Err: failed})
	case "tainted":
		return w.step(step.TaintDone{Node: name})
	case "taint-failed":
		return w.step(step.TaintDone{Node: name, Err: failed})
	case "scaled":
		return w.step(step.ScaleUpDone{Group: name, Nodes: number("nodes", 1)})
	case "scale-failed":
		return w.step(step.ScaleUpDone{Group: name, Nodes: number("nodes", 1), Err: failed})
	case "evicted":
		return w.step(step.EvictionDone{UID: uid, Node: arg("from", "")})
	case "told":
		return w.step(step.PreemptionDone{UID: uid, By: types.UID("pod-" + arg("by", ""))})
	case "tell-failed":
		return w.step(step.PreemptionDone{UID: uid, By: types.UID("pod-" + arg("by", "")), Err: failed})
	case "nominated":
		return w.step(step.NominationDone{UID: uid, Node: arg("to", "")})
	case "nominate-failed":
		return w.step(step.NominationDone{UID: uid, Node: arg("to", ""), Err: failed})
	case "deleted":
		return w.step(step.NodeDeletionDone{Node: name})
	case "delete-failed":
		return w.step(step.NodeDeletionDone{Node: name, Err: failed})
	case "machine-deleted":
		return w.step(step.NodeDeletionDone{Node: name, Instance: name})
	case "tick":
		var s float64
		fmt.Sscan(name, &s)
		w.now = w.now.Add(time.Duration(s * float64(time.Second)))
		return w.step()
	}
	d.Fatalf(w.t, "unknown command %q", d.Cmd)
	return ""
}

func (w *world) pod(name string, arg func(key, def string) string) *v1.Pod {
	b := testkit.Pod(name).Req("cpu", arg("cpu", "1"), "memory", arg("memory", "1Gi"))
	var priority int32
	fmt.Sscan(arg("priority", "0"), &priority)
	b.Priority(priority)
	if g := arg("gate", ""); g != "" {
		b.Gate(g)
	}
	if a := arg("app", ""); a != "" {
		b.Label("app", a)
	}
	if k := arg("tolerates", ""); k != "" {
		b.Tolerate(k)
	}
	if a := arg("apart", ""); a != "" {
		b.Apart(v1.LabelHostname, "app", a)
	}
	if arg("daemon", "") != "" {
		b.Owner("apps/v1", "DaemonSet", "agent")
	}
	if arg("peaceful", "") != "" {
		never := v1.PreemptNever
		b.Spec.PreemptionPolicy = &never
	}
	b.Status.NominatedNodeName = arg("nominated", "")
	if arg("deleting", "") != "" {
		b.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
		b.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	b.UID = types.UID("pod-" + arg("uid", name))
	b.Spec.SchedulerName = arg("scheduler", b.Spec.SchedulerName)
	b.Status.Phase = v1.PodPhase(arg("phase", "Pending"))
	return b.On(arg("on", "")).Obj()
}

// step runs one Step, and one more for the plan when one is wanted, and returns
// the work of both.
func (w *world) step(in ...step.Input) string {
	w.out.Reset()
	w.stepOut(w.now, in...)
	out := &w.out
	if c := w.Core().Queue(); c.Active+c.Backoff+c.Unschedulable+c.Gated > 0 {
		fmt.Fprintf(out, "queue: active %d, backoff %d, unschedulable %d, gated %d\n", c.Active, c.Backoff, c.Unschedulable, c.Gated)
	}
	if out.Len() == 0 {
		return "nothing to do\n"
	}
	return out.String()
}

// print is a drive.Hook: it writes the work of a Step.
func (w *world) print(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	out := &w.out
	for _, b := range r.Binds {
		fmt.Fprintf(out, "bind %s to %s\n", b.Name, b.Node)
	}
	for _, x := range r.Cancels {
		fmt.Fprintf(out, "take back the bind of %s\n", strings.TrimPrefix(string(x.UID), "pod-"))
	}
	for _, x := range r.Preemptions {
		fmt.Fprintf(out, "tell %s on %s to go for %s\n", x.Name, x.Node, strings.TrimPrefix(string(x.By), "pod-"))
	}
	for _, x := range r.Nominations {
		if x.Node == "" {
			fmt.Fprintf(out, "nominate %s to none\n", x.Name)
		} else {
			fmt.Fprintf(out, "nominate %s to %s\n", x.Name, x.Node)
		}
	}
	for _, t := range r.Taints {
		verb := "taint"
		if t.Remove {
			verb = "untaint"
		}
		fmt.Fprintf(out, "%s %s %s=%s:%s\n", verb, t.Node, t.Taint.Key, t.Taint.Value, t.Taint.Effect)
	}
	for _, e := range r.Evictions {
		fmt.Fprintf(out, "evict %s from %s\n", e.Name, e.Node)
	}
	for _, s := range r.ScaleUps {
		fmt.Fprintf(out, "scale up %s by %d\n", s.Group, s.Nodes)
	}
	for _, d := range r.NodeDeletions {
		fmt.Fprintf(out, "delete node %s of %s\n", d.Node, d.Group)
	}
	for _, d := range r.TargetDecreases {
		fmt.Fprintf(out, "lower the target of %s by %d\n", d.Group, d.Nodes)
	}
	for _, c := range r.Conditions {
		fmt.Fprintf(out, "condition %s %s: %s\n", c.Name, c.Reason, c.Message)
	}
	for _, e := range r.Events {
		fmt.Fprintf(out, "event %s %s: %s\n", e.Name, e.Reason, e.Message)
	}
}
