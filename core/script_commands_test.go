package core_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file has the commands of the scripts. An argument in brackets may be left
// out; after "=" stands its default, or in capitals what it names. One without
// "=" is a flag. Objects of the API and of the provider:
//
//	node NAME [cpu=4] [memory=8Gi] [zone=ZONE] [taint=KEY] [condition=TYPE] [gpus=0] [candidate=SINCE] [notready] [created=AGO] [group=GROUP]
//	node-gone NAME
//	pod NAME [cpu=1] [memory=1Gi] [priority=0] [gate=GATE] [app=LABEL] [apart=LABEL] [tolerates=KEY]
//	    [rs=DEPLOYMENT [hash=1]] [surge] [consumes=REQUEST] [buffer=BUFFER] [on=NODE] [nominated=NODE] [phase=Pending] [deleting] [leaving] [ready] [daemon] [peaceful] [started=AGO] [created=AGO] [scheduler=NAME] [uid=NAME] [delay=TIME] [needs=ZONE] [gpus=0] [member=PODGROUP] [claims=(CLAIM,…)] [own-claim=CLAIM] [uses=(VOLUME,…)] [tolerates-all] [resize=deferred] [allocated=CPU]
//	pods PREFIX count=N …       the same N times in one Step: PREFIX0, PREFIX1, …
//	gone NAME                   a pod's name, or its uid where it was given one
//	replicas DEPLOYMENT wanted=N existing=N    of its ReplicaSet
//	budget NAME app=LABEL [allowed=0] [healthy=0]
//	daemonset NAME …            with the arguments of a pod for its template
//	server-time AGO             an answer of the API server says that it is that long ago; ahead of this clock when negative
//	group NAME [cents=0] [cpu=4] [memory=8Gi] [gpus=0] [min=0] [max=10] [target=0] [instances=(A,B)] [failed=A] [out-of-stock] [keep=WHY] [zone=ZONE] [atomic]
//
// Outcomes of the work that a Ready asked for:
//
//	bound NAME | bind-failed NAME
//	told NAME by=POD [group] | tell-failed NAME by=POD [group]   the victim of a preemption; group: by a pod group
//	nominated NAME [to=NODE] | nominate-failed NAME [to=NODE]
//	surged NAME from=NODE             | surge-failed NAME from=NODE
//	evicted NAME from=NODE            | evict-refused NAME from=NODE
//	tainted NODE [off] | taint-failed NODE [off]          of a removal; off: it was to be taken off
//	soft-tainted NODE | soft-taint-failed NODE            the taint of a candidate, on or off
//	scaled GROUP nodes=N | scale-failed GROUP nodes=N [out-of-stock]
//	deleted NODE | delete-failed NODE | instance-deleted INSTANCE
//
// Objects that ask for headroom are in script_headroom_test.go, DeviceClasses in
// script_devices_test.go, volumes in script_storage_test.go. Time passes by
//
//	tick SECONDS
//
// Without a Step, people ask where a pod stands by
//
//	explain NAME
//
// where a pod group does by
//
//	explain-podgroup NAME
//
// where a node group does by
//
//	explain-group NAME
//
// and why a node stays, or all nodes do, by
//
//	explain-node NAME | explain-nodes
//
// They are answered with the text that berth explain prints, or with the explanation as JSON if
// the argument json is there.

// inputs returns what a command feeds to the next Step, after it has moved the
// time.
func (w *world) inputs(cmd string, args *script.Args) []step.Input {
	switch cmd {
	case "node":
		return []step.Input{w.node(args)}
	case "node-gone":
		return []step.Input{step.NodeGone{Name: args.Name()}}
	case "pod":
		return []step.Input{step.PodSet{Pod: w.pod(args.Name(), args)}}
	case "pods":
		return w.pods(args)
	case "gone":
		return []step.Input{step.PodGone{UID: podUID(args.Name())}}
	case "replicas":
		return []step.Input{replicas(args)}
	case "budget":
		b := testkit.Budget(args.Name(), int32(args.Int("allowed", 0)), "app", args.Required("app"))
		b.Status.CurrentHealthy = int32(args.Int("healthy", 0))
		return []step.Input{step.ObjectSet{Object: b}}
	case "daemonset":
		return []step.Input{w.daemonSet(args)}
	case "group":
		return []step.Input{w.group(args)}
	case "server-time":
		return []step.Input{step.ServerTime{At: w.now.Add(-testkit.Must(time.ParseDuration(args.Name())))}}
	case "tick":
		w.now = w.now.Add(seconds(args))
		return nil
	}
	if outcome := outcome(cmd, args); outcome != nil {
		return []step.Input{outcome}
	}
	if in := w.headroomInputs(cmd, args); in != nil {
		return in
	}
	if in := deviceInput(cmd, args); in != nil {
		return []step.Input{in}
	}
	if in := storageInputs(cmd, args); in != nil {
		return in
	}
	args.Fail("unknown command")
	return nil
}

// outcome returns what became of a piece of work; nil for another command.
func outcome(cmd string, args *script.Args) step.Input {
	var err error
	if strings.HasSuffix(cmd, "-failed") {
		err = errRefused
	}
	switch cmd {
	case "bound", "bind-failed":
		return step.BindDone{UID: podUID(args.Name()), Err: err}
	case "told", "tell-failed":
		by := podUID(args.Required("by"))
		if args.Flag("group") {
			by = headroomUID(args.Required("by"))
		}
		return step.PreemptionDone{UID: podUID(args.Name()), By: by, Err: err}
	case "nominated", "nominate-failed":
		return step.NominationDone{UID: podUID(args.Name()), Node: args.String("to", ""), Err: err}
	case "surged", "surge-failed":
		return step.SurgeDone{UID: podUID(args.Name()), Node: args.Required("from"), Err: err}
	case "evicted":
		return step.EvictionDone{UID: podUID(args.Name()), Node: args.Required("from")}
	case "evict-refused":
		return step.EvictionDone{UID: podUID(args.Name()), Node: args.Required("from"), Err: errRefused, Refused: true}
	case "tainted", "taint-failed":
		return step.TaintDone{Node: args.Name(), Key: autoscaler.ToBeDeletedTaint, Remove: args.Flag("off"), Err: err}
	case "soft-tainted", "soft-taint-failed":
		return step.TaintDone{Node: args.Name(), Key: autoscaler.DeletionCandidateTaint, Err: err}
	case "scaled", "scale-failed":
		done := step.ScaleUpDone{Group: args.Name(), Nodes: args.Int("nodes", 1), Err: err}
		if args.Flag("out-of-stock") {
			done.Class = nodegroup.OutOfResources
		}
		return done
	case "deleted", "delete-failed":
		return step.NodeDeletionDone{Node: args.Name(), Err: err}
	case "instance-deleted":
		return step.NodeDeletionDone{Node: args.Name(), Instance: args.Name()}
	}
	return nil
}

// podUID is the uid of a pod that a script names.
func podUID(name string) types.UID { return types.UID("pod-" + name) }

func (w *world) node(args *script.Args) step.Input {
	b := testkit.Node(args.Name()).Alloc("cpu", args.Quantity("cpu", "4"), "memory", args.Quantity("memory", "8Gi"))
	b.CreationTimestamp = metav1.NewTime(w.now.Add(-args.Duration("created", 0)))
	b.Spec.ProviderID = b.Name
	gpus(args, b)
	if zone := args.String("zone", ""); zone != "" {
		b.Zone(zone)
	}
	if key := args.String("taint", ""); key != "" {
		b.Taint(key, "", v1.TaintEffectNoSchedule)
		b.Annotations = map[string]string{autoscaler.RemovalNote: "why"} // where the taint is that of a removal
	}
	if name := args.String("condition", ""); name != "" {
		b.Status.Conditions = append(b.Status.Conditions, v1.NodeCondition{Type: v1.NodeConditionType(name), Status: v1.ConditionTrue})
	}
	if since := args.String("candidate", ""); since != "" {
		b.Taint(autoscaler.DeletionCandidateTaint, since, v1.TaintEffectPreferNoSchedule)
	}
	if args.Flag("notready") {
		b.Status.Conditions[0].Status = v1.ConditionFalse
		b.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
	}
	return step.NodeSet{Node: b.Obj(), Group: args.String("group", "")}
}

// pods builds pods that differ by name only.
func (w *world) pods(args *script.Args) []step.Input {
	prefix, count := args.Name(), args.Int("count", 0)
	if count < 1 {
		args.Fail("count is %d", count)
	}
	var in []step.Input
	for i := range count {
		in = append(in, step.PodSet{Pod: w.pod(fmt.Sprint(prefix, i), args)})
	}
	return in
}

func (w *world) pod(name string, args *script.Args) *v1.Pod {
	b := testkit.Pod(name).Req("cpu", args.Quantity("cpu", "1"), "memory", args.Quantity("memory", "1Gi"))
	b.Priority(int32(args.Int("priority", 0)))
	if gate := args.String("gate", ""); gate != "" {
		b.Gate(gate)
	}
	if app := args.String("app", ""); app != "" {
		b.Label("app", app)
	}
	if app := args.String("apart", ""); app != "" {
		b.Apart(v1.LabelHostname, "app", app)
	}
	if key := args.String("tolerates", ""); key != "" {
		b.Tolerate(key)
	}
	if delay := args.String("delay", ""); delay != "" {
		b.Annotations = map[string]string{cluster.ScaleUpDelayAnnotation: delay}
	}
	if name := args.String("rs", ""); name != "" {
		hash := args.String("hash", "1") // of a Deployment's pod template
		b.Owner("apps/v1", "ReplicaSet", name+"-"+hash).Label("pod-template-hash", hash)
	}
	if args.Flag("surge") {
		b.Annotate(cluster.SurgeAnnotation, "true")
	}
	if name := args.String("buffer", ""); name != "" {
		b.Annotate(autoscalingapi.BufferAnnotation, name)
	}
	if name := args.String("consumes", ""); name != "" {
		b.Annotate(autoscalingapi.ConsumeAnnotation, name)
	}
	if zone := args.String("needs", ""); zone != "" {
		b.Select(v1.LabelTopologyZone, zone)
	}
	if ago := args.Duration("started", 0); ago > 0 {
		b.Status.StartTime = &metav1.Time{Time: w.now.Add(-ago)}
	}
	if created := args.Duration("created", -1); created >= 0 {
		b.CreationTimestamp = metav1.NewTime(w.now.Add(-created))
	}
	if args.Flag("daemon") {
		b.Owner("apps/v1", "DaemonSet", "agent")
	}
	if args.Flag("peaceful") {
		b.Spec.PreemptionPolicy = new(v1.PreemptNever)
	}
	if args.Flag("deleting") {
		b.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
		b.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	if args.Flag("leaving") {
		b.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	if args.Flag("ready") {
		b.Status.Conditions = append(b.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
	}
	waitsOnNode(args, b)
	needsOthers(args, b)
	b.UID = podUID(args.String("uid", name))
	b.Spec.SchedulerName = args.String("scheduler", b.Spec.SchedulerName)
	b.Status.NominatedNodeName = args.String("nominated", "")
	b.Status.Phase = v1.PodPhase(args.OneOf("phase", "Pending", "Running", "Succeeded", "Failed"))
	return b.On(args.String("on", "")).Obj()
}

func (w *world) daemonSet(args *script.Args) step.Input {
	ds := &appsv1.DaemonSet{}
	ds.Namespace, ds.Name = "default", args.Name()
	ds.UID = types.UID("ds-" + ds.Name)
	ds.Spec.Template.Spec = w.pod(ds.Name, args).Spec
	return step.DaemonSetSet{DaemonSet: ds}
}

// replicas returns the ReplicaSet of the pods with rs=DEPLOYMENT.
func replicas(args *script.Args) step.Input {
	rs := testkit.ReplicaSet(args.Name()+"-1", "pod-template-hash", "1", "deployment", args.Name())
	rs.Spec.Replicas = new(int32(args.Int("wanted", 0)))
	rs.Status.Replicas = int32(args.Int("existing", 0))
	return step.WorkloadSet{Workload: cluster.WorkloadOf(rs)}
}

// group returns the provider's list of groups with this one at its end.
func (w *world) group(args *script.Args) step.Input {
	name := args.Name()
	node := gpus(args, testkit.Node(name).Alloc("cpu", args.Quantity("cpu", "4"), "memory", args.Quantity("memory", "8Gi")))
	if zone := args.String("zone", ""); zone != "" {
		node.Zone(zone)
	}
	template := node.Obj()
	g := nodegroup.Group{ID: name, Min: args.Int("min", 0), Max: args.Int("max", 10), Target: args.Int("target", 0), Template: template, Price: float64(args.Int("cents", 0)) / 100}
	for _, id := range args.List("instances") {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Node: id})
	}
	if id := args.String("failed", ""); id != "" {
		at := slices.IndexFunc(g.Instances, func(i nodegroup.Instance) bool { return i.ID == id })
		if at < 0 {
			args.Fail("failed: no instance %q", id)
		}
		g.Instances[at].Failed = "it is broken"
		if args.Flag("out-of-stock") {
			g.Instances[at].Class = nodegroup.OutOfResources
		}
	}
	g.KeepNodes = args.String("keep", "")
	if args.Flag("atomic") {
		g.Options = &cluster.GroupOptions{ZeroOrMax: true}
	}
	w.groups = slices.DeleteFunc(w.groups, func(x nodegroup.Group) bool { return x.ID == name })
	w.groups = append(w.groups, g)
	return step.GroupsSet{Groups: slices.Clone(w.groups)}
}

func seconds(args *script.Args) time.Duration {
	seconds, err := strconv.ParseFloat(args.Name(), 64)
	if err != nil {
		args.Fail("%v", err)
	}
	return time.Duration(seconds * float64(time.Second))
}
