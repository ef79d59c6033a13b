package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// This file has the commands of the scripts. An argument in brackets may be left
// out; after "=" stands its default, or in capitals what it names. One without
// "=" is a flag. Objects of the API and of the provider:
//
//	node NAME [cpu=4] [memory=8Gi] [zone=ZONE] [taint=KEY] [notready] [group=GROUP]
//	node-gone NAME
//	pod NAME [cpu=1] [memory=1Gi] [priority=0] [gate=GATE] [app=LABEL] [apart=LABEL] [tolerates=KEY]
//	    [on=NODE] [nominated=NODE] [phase=Pending] [deleting] [daemon] [peaceful] [scheduler=NAME] [uid=NAME]
//	pods PREFIX count=N …       the same N times in one Step: PREFIX0, PREFIX1, …
//	gone NAME                   a pod's name, or its uid where it was given one
//	daemonset NAME …            with the arguments of a pod for its template
//	group NAME [cpu=4] [memory=8Gi] [min=0] [max=10] [target=0] [instances=(A,B)] [failed=A]
//
// Outcomes of the work that a Ready asked for:
//
//	bound NAME | bind-failed NAME
//	told NAME by=POD | tell-failed NAME by=POD            the victim of a preemption
//	nominated NAME [to=NODE] | nominate-failed NAME [to=NODE]
//	evicted NAME from=NODE
//	tainted NODE | taint-failed NODE
//	scaled GROUP nodes=N | scale-failed GROUP nodes=N
//	deleted NODE | delete-failed NODE | instance-deleted INSTANCE
//
// Time passes by
//
//	tick SECONDS

// inputs returns what a command feeds to the next Step.
func (w *world) inputs(a *args) ([]step.Input, error) {
	var in []step.Input
	now := w.now
	switch a.cmd {
	case "node":
		in = append(in, w.node(a))
	case "node-gone":
		in = append(in, step.NodeGone{Name: a.name("NAME")})
	case "pod":
		in = append(in, step.PodSet{Pod: w.pod(a.name("NAME"), a)})
	case "pods":
		in = w.pods(a)
	case "gone":
		in = append(in, step.PodGone{UID: podUID(a.name("NAME"))})
	case "daemonset":
		in = append(in, w.daemonSet(a))
	case "group":
		in = append(in, w.group(a))
	case "tick":
		now = now.Add(a.seconds())
	default:
		outcome := outcome(a)
		if outcome == nil {
			return nil, fmt.Errorf("unknown command %q", a.cmd)
		}
		in = append(in, outcome)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	w.now = now
	return in, nil
}

// outcome returns what became of work, nil if the command is none of its.
func outcome(a *args) step.Input {
	var err error
	if strings.HasSuffix(a.cmd, "-failed") {
		err = errors.New("refused")
	}
	switch a.cmd {
	case "bound", "bind-failed":
		return step.BindDone{UID: podUID(a.name("NAME")), Err: err}
	case "told", "tell-failed":
		return step.PreemptionDone{UID: podUID(a.name("NAME")), By: podUID(a.required("by")), Err: err}
	case "nominated", "nominate-failed":
		return step.NominationDone{UID: podUID(a.name("NAME")), Node: a.text("to", ""), Err: err}
	case "evicted":
		return step.EvictionDone{UID: podUID(a.name("NAME")), Node: a.required("from")}
	case "tainted", "taint-failed":
		return step.TaintDone{Node: a.name("NODE"), Err: err}
	case "scaled", "scale-failed":
		return step.ScaleUpDone{Group: a.name("GROUP"), Nodes: a.number("nodes", 1), Err: err}
	case "deleted", "delete-failed":
		return step.NodeDeletionDone{Node: a.name("NODE"), Err: err}
	case "instance-deleted":
		id := a.name("INSTANCE")
		return step.NodeDeletionDone{Node: id, Instance: id}
	}
	return nil
}

// podUID is the uid of a pod that a script names.
func podUID(name string) types.UID { return types.UID("pod-" + name) }

func (w *world) node(a *args) step.Input {
	b := testkit.Node(a.name("NAME")).Alloc("cpu", a.quantity("cpu", "4"), "memory", a.quantity("memory", "8Gi"))
	b.CreationTimestamp = metav1.NewTime(w.now)
	b.Spec.ProviderID = b.Name
	if zone := a.text("zone", ""); zone != "" {
		b.Zone(zone)
	}
	if key := a.text("taint", ""); key != "" {
		b.Taint(key, "", v1.TaintEffectNoSchedule)
	}
	if a.flag("notready") {
		b.Status.Conditions[0].Status = v1.ConditionFalse
		b.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
	}
	return step.NodeSet{Node: b.Obj(), Group: a.text("group", "")}
}

// pods builds pods that differ by name only: each reads its own copy of the
// arguments.
func (w *world) pods(a *args) []step.Input {
	prefix, count := a.name("PREFIX"), a.number("count", 0)
	if count < 1 {
		a.fail("count is %d", count)
	}
	var in []step.Input
	rest := *a
	for i := range count {
		*a = rest
		in = append(in, step.PodSet{Pod: w.pod(fmt.Sprint(prefix, i), a)})
	}
	return in
}

func (w *world) pod(name string, a *args) *v1.Pod {
	b := testkit.Pod(name).Req("cpu", a.quantity("cpu", "1"), "memory", a.quantity("memory", "1Gi"))
	b.Priority(int32(a.number("priority", 0)))
	if gate := a.text("gate", ""); gate != "" {
		b.Gate(gate)
	}
	if app := a.text("app", ""); app != "" {
		b.Label("app", app)
	}
	if app := a.text("apart", ""); app != "" {
		b.Apart(v1.LabelHostname, "app", app)
	}
	if key := a.text("tolerates", ""); key != "" {
		b.Tolerate(key)
	}
	if a.flag("daemon") {
		b.Owner("apps/v1", "DaemonSet", "agent")
	}
	if a.flag("peaceful") {
		never := v1.PreemptNever
		b.Spec.PreemptionPolicy = &never
	}
	if a.flag("deleting") {
		b.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
		b.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	b.UID = podUID(a.text("uid", name))
	b.Spec.SchedulerName = a.text("scheduler", b.Spec.SchedulerName)
	b.Status.NominatedNodeName = a.text("nominated", "")
	b.Status.Phase = a.phase()
	return b.On(a.text("on", "")).Obj()
}

func (w *world) daemonSet(a *args) step.Input {
	ds := &appsv1.DaemonSet{}
	ds.Namespace, ds.Name = "default", a.name("NAME")
	ds.UID = types.UID("ds-" + ds.Name)
	ds.Spec.Template.Spec = w.pod(ds.Name, a).Spec
	return step.DaemonSetSet{DaemonSet: ds}
}

// group returns the provider's list of groups with this one at its end.
func (w *world) group(a *args) step.Input {
	name := a.name("NAME")
	template := testkit.Node(name).Alloc("cpu", a.quantity("cpu", "4"), "memory", a.quantity("memory", "8Gi")).Obj()
	g := nodegroup.Group{ID: name, Min: a.number("min", 0), Max: a.number("max", 10), Target: a.number("target", 0), Template: template}
	for _, id := range a.list("instances") {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Node: id})
	}
	if id := a.text("failed", ""); id != "" {
		at := slices.IndexFunc(g.Instances, func(i nodegroup.Instance) bool { return i.ID == id })
		if at < 0 {
			a.fail("failed: no instance %q", id)
		} else {
			g.Instances[at].Failed = "it is broken"
		}
	}
	w.groups = slices.DeleteFunc(w.groups, func(x nodegroup.Group) bool { return x.ID == name })
	w.groups = append(w.groups, g)
	return step.GroupsSet{Groups: slices.Clone(w.groups)}
}

func (a *args) phase() v1.PodPhase {
	phases := []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed}
	phase := v1.PodPhase(a.text("phase", "Pending"))
	if !slices.Contains(phases, phase) {
		a.fail("phase: %q is none of %v", phase, phases)
	}
	return phase
}

func (a *args) seconds() time.Duration {
	seconds, err := strconv.ParseFloat(a.name("SECONDS"), 64)
	if err != nil {
		a.fail("SECONDS: %w", err)
	}
	return time.Duration(seconds * float64(time.Second))
}
