package scaleup_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a cluster, and the request of a plan for it.
type fixture struct {
	state  *cluster.State
	packer scaleup.Packer
	watch  autoscaler.Stopwatch // nil for no bound
	req    autoscaler.Request
	seen   map[string][]autoscaler.SeenDevices // by group
}

func newFixture(t rapid.TB) *fixture {
	t.Helper()
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	sched, err := scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(10000, 0)
	return &fixture{state: state, packer: scaleup.Packer{State: state, Engine: sched.Engine},
		req: autoscaler.Request{Now: now, ServerNow: now, Conditions: map[string]autoscaler.GroupCondition{}, Readiness: autoscaler.Readiness{StartupTime: 15 * time.Minute, Parts: cluster.CSIDrivers | cluster.Devices},
			Limits: autoscaler.Limits{MaxTotalUnready: 100}}}
}

// plan makes a plan and returns it, or what it has changed of the state.
func (f *fixture) plan() (*autoscaler.Plan, error) {
	f.state.Nodes(func(n *cluster.Node) {
		g := f.state.Group(n.Group)
		if g == nil || n.HasTaint(autoscaler.ToBeDeletedTaint) || !f.req.Readiness.Usable(n.NodeInfo, g.Template) {
			return
		}
		c := f.req.Conditions[g.ID]
		c.Newest = autoscaler.Newer(c.Newest, n.NodeInfo)
		f.req.Conditions[g.ID] = c
	})
	f.showDevices()
	defer func() {
		for id, c := range f.req.Conditions {
			c.Newest = nil
			f.req.Conditions[id] = c
		}
	}()
	before := f.dump("")
	plan := autoscaler.NewPlan(&f.req, f.state.Head())
	f.packer.Questions = &autoscaler.Questions{Watch: f.watch}
	f.packer.Questions.Start(autoscaler.WholePlan)
	f.packer.Plan(f.req, plan)
	if after := f.dump(before); after != before {
		return nil, fmt.Errorf("the plan has left the state as\n%s\nit was\n%s", after, before)
	}
	return plan, nil
}

func (f *fixture) launching() int {
	f.showDevices()
	return scaleup.Launching(scaleup.Survey(f.state, f.req.Conditions, &f.req.Readiness, f.req.ServerNow))
}

// TestScripts runs testdata/*.txt. The commands set up a cluster, and plan prints the
// plan for it:
//
//	group NAME [min=0] [max=10] [target=0] [cpu=4] [memory=8Gi] [gpu=0] [zone=z] [taint=KEY] [backing-off] [late=0] [gone=(NODE)]
//	    [price=0] [label=k=v] [capacity=N] [prefer-not=KEY] [template-error=WHY] [atomic]    capacity: cores; prefer-not: a taint
//	    [drivers=TEXT]                                                 what the template says about CSI drivers
//	node NAME [group=g] [cpu=4] [memory=8Gi] [gpu=0] [zone=z] [label=k=v] [taint=KEY] [unready] [starting] [deleting] [age=1m]
//	node-gone NAME
//	csinode NODE [limit=N] [empty]                                 how many volumes of the driver "disks" it attaches; empty: it has no driver
//	driver [lax]                                                   "disks" keeps pods with its volumes off nodes without it; lax: no more
//	local-storage NAME left=10Gi [on=NODE]                         of a node, or of template nodes, for pods of local=…
//	expander NAMES
//	stopwatch over=(1, 5) | stopwatch off                          answers these questions of the next plan with yes
//	balance [off] [labels=(KEY)] [ignored=(KEY)]                   similar groups are balanced, by Cluster Autoscaler's ratios
//	startup taints=(KEY) prefixes=(KEY) [no-parts]                 taints of nodes that are starting; no-parts: no rule needs CSI drivers or devices on nodes
//	pods PREFIX [count=1] [cpu=1] [memory=1Gi] [gpu=0] [label=k=v] [zone=z] [apart] [spread=SKEW] [volume]    pending pods; apart: one on
//	    [prefers=k=v] [near=APP] [even] [local=5Gi]                                what they would rather have: a label, the zone of pods, even spreading over zones
//	                                                               a node; label: on nodes with it; volume: each with one of "disks"
//	gang NAME members=N [min=N] [cpu=1] [memory=1Gi] [gpu=0] [topology=KEY] [label=k=v] [of=NAME]    a pod group that waits, with members NAME0, NAME1, …;
//	                                                               of: more members, of the group of that name
//	placed NAME on=NODE [cpu=1] [app=APP]
//	gone NAME                                                      no longer pending
//	daemonset NAME [cpu=1] [memory=0] [zone=z] [scheduler=NAME]
//	order GROUP pods=(p0, p1) [node=NAME]                          a node on its way, for these pods; node: it is registered
//	spare GROUP [nodes=1]                                          nodes that were ordered for pods that need them no more
//	recallable NAMES                                               nodes that are being deleted and could stay
//	limits [total=0] [per-scale-up=0] [launching=0] [cores=N] [memory-gib=N] [gpus=N] [enforce-min]    0 for no limit
//	unready percent=45 ok=3                                        when the cluster is too sick
//	launching                                                      how many nodes are coming
//	plan [choices]                                                 choices: also how the groups were chosen
//	explain POD                                                    of a pending pod, by group
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		f := newFixture(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := script.NewArgs(t, d)
			out := f.run(t, d, args)
			args.Done()
			return out
		})
	})
}

func (f *fixture) run(t *testing.T, d *datadriven.TestData, args *script.Args) string {
	schema := f.state.Schema
	if f.runDevices(d.Cmd, args) {
		return ""
	}
	switch d.Cmd {
	case "group":
		b := testkit.Node(args.Name()).Alloc("cpu", args.String("cpu", "4"), "memory", args.String("memory", "8Gi"), "example.com/gpu", args.String("gpu", "0"))
		if z := args.String("zone", ""); z != "" {
			b.Zone(z)
		}
		if k := args.String("taint", ""); k != "" {
			b.Taint(k, "", v1.TaintEffectNoSchedule)
		}
		if k, v, ok := strings.Cut(args.String("label", ""), "="); ok {
			b.Labels[k] = v
		}
		if k := args.String("prefer-not", ""); k != "" {
			b.Taint(k, "", v1.TaintEffectPreferNoSchedule)
		}
		if text := args.String("drivers", ""); text != "" {
			b.Annotations = map[string]string{nodegroup.CSIDriversAnnotation: text}
		}
		if cores := args.String("capacity", ""); cores != "" {
			b.Status.Capacity = v1.ResourceList{"cpu": resource.MustParse(cores)}
		}
		var options *cluster.GroupOptions
		if args.Flag("atomic") {
			options = &cluster.GroupOptions{ZeroOrMax: true}
		}
		f.state.SetGroup(b.Name, &cluster.NodeGroup{ID: b.Name, Options: options, Min: args.Int("min", 0), Max: args.Int("max", 10), Target: args.Int("target", 0), Price: float64(args.Int("price", 0)), Template: schema.ParseNode(b.Obj(), b.Name), TemplateError: args.String("template-error", ""), Devices: declared(args)})
		f.req.Conditions[b.Name] = autoscaler.GroupCondition{BackingOff: args.Flag("backing-off"), LongUnregistered: args.Int("late", 0), Gone: nameSet(args.List("gone"))}
	case "node":
		b := testkit.Node(args.Name()).Alloc("cpu", args.String("cpu", "4"), "memory", args.String("memory", "8Gi"), "example.com/gpu", args.String("gpu", "0"))
		if z := args.String("zone", ""); z != "" {
			b.Zone(z)
		}
		if k, v, ok := strings.Cut(args.String("label", ""), "="); ok {
			b.Labels[k] = v
		}
		if k := args.String("taint", ""); k != "" {
			b.Taint(k, "", v1.TaintEffectNoSchedule)
		}
		b.CreationTimestamp = metav1.NewTime(f.req.Now.Add(-args.Duration("age", time.Minute)))
		if args.Flag("unready") {
			b.Status.Conditions[0].Status = v1.ConditionFalse
			b.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
		}
		if args.Flag("starting") {
			b.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
		}
		if args.Flag("deleting") {
			b.Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule)
		}
		f.state.SetNode(schema.ParseNode(b.Obj(), args.String("group", "")))
		f.see()
	case "node-gone":
		f.state.RemoveNode(args.Name())
		f.see()
	case "csinode":
		limit := int32(args.Int("limit", 0))
		csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: args.Name()}}
		if !args.Flag("empty") {
			csi.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "disks", NodeID: csi.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}
		}
		f.state.SetObject(csi)
	case "driver":
		disks := testkit.CSIDriver("disks", false)
		if !args.Flag("lax") {
			testkit.Demanded(disks)
		}
		f.state.SetObject(disks)
	case "local-storage":
		left := resource.MustParse(args.String("left", ""))
		topology := map[string]string{scaleup.TemplateNodeLabel: "true"}
		if node := args.String("on", ""); node != "" {
			topology = map[string]string{v1.LabelHostname: node}
		}
		f.state.SetObject(&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: args.Name()},
			StorageClassName: "local", Capacity: &left, NodeTopology: &metav1.LabelSelector{MatchLabels: topology}})
	case "expander":
		chain, err := expander.NewChain(args.Name(), nil)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		f.packer.Expander = chain
	case "stopwatch":
		f.watch = nil
		if !args.Flag("off") {
			cuts := &autoscaler.Cuts{}
			for _, n := range args.List("over") {
				cuts.At = append(cuts.At, testkit.Must(strconv.Atoi(n)))
			}
			f.watch = cuts
		}
	case "balance":
		f.req.Balancing = autoscaler.Balancing{Mode: autoscaler.BalanceAlways, Labels: args.List("labels"), IgnoredLabels: args.List("ignored"),
			MemoryDifference: 0.015, AllocatableDifference: 0.05, FreeDifference: 0.05}
		if args.Flag("off") {
			f.req.Balancing.Mode = autoscaler.BalanceNever
		}
	case "startup":
		f.req.Readiness.StartupTaints, f.req.Readiness.StartupTaintPrefixes = args.List("taints"), args.List("prefixes")
		if f.req.Readiness.Parts = cluster.CSIDrivers | cluster.Devices; args.Flag("no-parts") {
			f.req.Readiness.Parts = 0
		}
	case "pods":
		for i := range args.Int("count", 1) {
			b := testkit.Pod(fmt.Sprint(args.Name(), i)).Req("cpu", args.String("cpu", "1"), "memory", args.String("memory", "1Gi"), "example.com/gpu", args.String("gpu", "0"))
			if k, v, ok := strings.Cut(args.String("label", ""), "="); ok {
				b.Spec.NodeSelector = map[string]string{k: v}
			}
			if args.Flag("volume") {
				f.addVolume(b)
			}
			if size := args.String("local", ""); size != "" {
				f.addLocalClaim(b, size)
			}
			b.UID = types.UID(b.Name)
			f.claimDevices(args, b)
			if z := args.String("zone", ""); z != "" {
				b.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: z}
			}
			if skew := args.Int("spread", 0); skew > 0 {
				b.Label("app", "s").SpreadHard(v1.LabelTopologyZone, int32(skew), "app", "s")
			}
			if k, v, ok := strings.Cut(args.String("prefers", ""), "="); ok {
				b.PreferIn(10, k, v)
			}
			if app := args.String("near", ""); app != "" {
				b.PreferTogether(10, v1.LabelTopologyZone, "app", app)
			}
			if args.Flag("even") {
				b.Label("app", args.Name()).SpreadSoft(v1.LabelTopologyZone, 1, "app", args.Name())
			}
			if args.Flag("apart") {
				b.Label("app", "a").Apart(v1.LabelHostname, "app", "a")
			}
			f.req.Pending = append(f.req.Pending, schema.ParsePod(b.Obj()))
		}
	case "gang":
		f.addGang(args)
	case "placed":
		b := testkit.Pod(args.Name()).Req("cpu", args.String("cpu", "1")).Label("app", args.String("app", "none"))
		f.state.Place(schema.ParsePod(b.Obj()), args.String("on", ""))
	case "gone":
		name := args.Name()
		var left []*cluster.Pod
		for _, p := range f.req.Pending {
			if string(p.UID) != name {
				left = append(left, p)
			}
		}
		f.req.Pending = left
	case "daemonset":
		b := testkit.Pod(args.Name()).Req("cpu", args.String("cpu", "1"), "memory", args.String("memory", "0")).Owner("apps/v1", "DaemonSet", args.Name())
		if z := args.String("zone", ""); z != "" {
			b.Select(v1.LabelTopologyZone, z)
		}
		b.Spec.SchedulerName = args.String("scheduler", v1.DefaultSchedulerName)
		f.state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: args.Name(), Template: schema.ParsePod(b.Obj())})
	case "order":
		var bin []types.UID
		for _, name := range args.List("pods") {
			bin = append(bin, types.UID(name))
		}
		f.req.Places = append(f.req.Places, autoscaler.Place{Group: args.Name(), Node: args.String("node", ""), Pods: bin})
	case "preempts":
		f.req.NotFor = map[types.UID]bool{types.UID(args.Name()): true}
	case "spare":
		if f.req.Spare == nil {
			f.req.Spare = map[string]int{}
		}
		f.req.Spare[args.Name()] = args.Int("nodes", 1)
	case "recallable":
		f.req.Recallable = nil
		for _, arg := range d.CmdArgs {
			f.recallable(arg.Key)
			args.Flag(arg.Key)
		}
	case "limits":
		f.req.Limits = autoscaler.Limits{MaxNodesTotal: args.Int("total", 0), MaxNodesPerScaleUp: args.Int("per-scale-up", 0), EnforceMinSize: args.Flag("enforce-min"),
			MaxTotalUnready:   100,
			MaxNodesLaunching: args.Int("launching", 0)}
		for _, total := range []struct {
			arg  string
			name v1.ResourceName
			unit int
		}{{"cores", "cpu", 1}, {"memory-gib", "memory", 1 << 30}, {"gpus", "example.com/gpu", 1}, {"models-a", "deviceclass.resource.kubernetes.io/model-a", 1}} {
			if n := args.Int(total.arg, -1); n >= 0 {
				f.req.Limits.Totals = append(f.req.Limits.Totals, autoscaler.Total{Resource: total.name, Max: int64(n * total.unit)})
			}
		}
	case "unready":
		f.req.Limits.MaxTotalUnready, f.req.Limits.OKTotalUnready = float64(args.Int("percent", 45)), args.Int("ok", 3)
	case "launching":
		return fmt.Sprintln(f.launching())
	case "estimate":
		return describeEstimates(f.packer.Estimate(f.req))
	case "plan":
		plan, err := f.plan()
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if args.Flag("choices") {
			return describe(plan) + describeChoices(plan)
		}
		return describe(plan)
	case "explain":
		return f.explain(args.Name())
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return ""
}

// addGang has a pod group wait, or more members of one.
func (f *fixture) addGang(args *script.Args) {
	name, of := args.Name(), args.String("of", "")
	members := args.Int("members", 1)
	key := cluster.PodGroupKey{Namespace: "default", Name: cmp.Or(of, name)}
	at := slices.IndexFunc(f.req.Gangs, func(g autoscaler.Gang) bool { return g.Key == key })
	if at < 0 {
		object := testkit.PodGroup(name, args.Int("min", members), args.String("topology", ""))
		f.state.SetObject(object)
		f.req.Gangs = append(f.req.Gangs, autoscaler.Gang{Key: key, MinCount: int(object.Spec.SchedulingPolicy.Gang.MinCount), Topologies: cluster.RequiredTopologies(object)})
		at = len(f.req.Gangs) - 1
	}
	for i := range members {
		b := testkit.Pod(fmt.Sprint(name, i)).Req("cpu", args.String("cpu", "1"), "memory", args.String("memory", "1Gi"), "example.com/gpu", args.String("gpu", "0")).PodGroup(key.Name)
		b.UID = types.UID(b.Name)
		if k, v, ok := strings.Cut(args.String("label", ""), "="); ok {
			b.Spec.NodeSelector = map[string]string{k: v}
		}
		f.req.Gangs[at].Members = append(f.req.Gangs[at].Members, f.state.Schema.ParsePod(b.Obj()))
	}
}

// recallable has a node that is being deleted be one that could stay.
func (f *fixture) recallable(name string) {
	n := f.state.NodeByName(name).NodeInfo
	f.req.Recallable = append(f.req.Recallable, autoscaler.Recallable{Node: name, Stays: func() *cluster.NodeInfo { return n.WithoutTaint(autoscaler.ToBeDeletedTaint) }})
}

// addVolume gives a pod a claim that is bound to a volume of the driver "disks".
func (f *fixture) addVolume(b *testkit.PodBuilder) {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + b.Name}}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "disks", VolumeHandle: pv.Name}
	pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: b.Namespace, Name: "claim-" + b.Name, UID: types.UID(b.Name)}
	pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "claim-" + b.Name, UID: types.UID(b.Name)}}
	pvc.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	pvc.Spec.VolumeName = pv.Name
	f.state.SetObject(pv)
	f.state.SetObject(pvc)
	b.Spec.Volumes = append(b.Spec.Volumes, v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: pvc.Name}}})
}

// addLocalClaim gives a pod a claim for node-local storage that waits for the pod's node.
func (f *fixture) addLocalClaim(b *testkit.PodBuilder, size string) {
	tracked, late, class := true, storagev1.VolumeBindingWaitForFirstConsumer, "local"
	f.state.SetObject(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "local.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &tracked}})
	f.state.SetObject(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "local.example.com", VolumeBindingMode: &late})
	pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "claim-" + b.Name, UID: types.UID(b.Name)}}
	pvc.Spec.StorageClassName = &class
	pvc.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	f.state.SetObject(pvc)
	b.Uses(pvc.Name)
}

// onlyFirst is an expander that forbids everything but in the first round of a plan, as
// one that asks a server may.
type onlyFirst struct{ rounds []expander.Round }

func (o *onlyFirst) Best(r *expander.Round, options []expander.Option) []expander.Option {
	o.rounds = append(o.rounds, *r)
	o.rounds[len(o.rounds)-1].Answers, o.rounds[len(o.rounds)-1].By = nil, nil
	if r.Number > 0 {
		return nil
	}
	return options[:1]
}

// TestAnExpanderMayForbidToGrow plans for two pods, either of which one of two groups could
// take. In the second round the expander forbids what is left: nothing more is ordered, and
// the pod is told why. The expander learns which round it is asked in.
func TestAnExpanderMayForbidToGrow(t *testing.T) {
	f := newFixture(t)
	schema := f.state.Schema
	for _, id := range []string{"g", "h"} {
		f.state.SetGroup(id, &cluster.NodeGroup{ID: id, Max: 1, Template: schema.ParseNode(testkit.Node(id).Alloc("cpu", "4", "memory", "8Gi").Obj(), id)})
	}
	f.state.SetNode(schema.ParseNode(testkit.Node("small").Alloc("cpu", "1", "memory", "8Gi").Obj(), ""))
	f.req.Number = 7
	for _, name := range []string{"p", "q"} {
		b := testkit.Pod(name).Req("cpu", "3")
		b.UID = types.UID(name)
		f.req.Pending = append(f.req.Pending, schema.ParsePod(b.Obj()))
	}
	asked := &onlyFirst{}
	f.packer.Expander, f.packer.Seed = expander.Chain{asked}, 3
	plan, err := f.plan()
	if err != nil {
		t.Fatal(err)
	}
	want := "1 of g for [p], wasting 1.25\nnothing for [q]: 1 expansion options filtered out and no longer considered, 1 max node group size reached\n"
	if got := describe(plan); got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
	first := expander.Round{Seed: 3, Request: 7, Nodes: 1, Schema: schema}
	second := first
	second.Number = 1
	if !slices.Equal(asked.rounds, []expander.Round{first, second}) {
		t.Errorf("the expander is asked in rounds %+v, want %+v and %+v", asked.rounds, first, second)
	}
}

// TestEqualGroupsGrowAlike plans under many seeds for a pod that any of three zonal groups
// of one shape could take: over the seeds no group is preferred, and one seed always
// chooses the same.
func TestEqualGroupsGrowAlike(t *testing.T) {
	f := newFixture(t)
	schema := f.state.Schema
	for _, zone := range []string{"a", "b", "c"} {
		template := testkit.Node(zone).Zone(zone).Alloc("cpu", "4", "memory", "8Gi").Obj()
		f.state.SetGroup(zone, &cluster.NodeGroup{ID: zone, Max: 1, Template: schema.ParseNode(template, zone)})
	}
	f.req.Pending = []*cluster.Pod{schema.ParsePod(testkit.Pod("p").Req("cpu", "2").Obj())}
	grown := func(seed uint64) string {
		f.packer.Seed = seed
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.ScaleUps) != 1 {
			t.Fatalf("seed %d: the plan is %q; want one group to grow", seed, describe(plan))
		}
		return plan.ScaleUps[0].Group
	}
	times := map[string]int{}
	for seed := range uint64(300) {
		g := grown(seed)
		times[g]++
		if again := grown(seed); again != g {
			t.Errorf("seed %d has %s grow, then %s", seed, g, again)
		}
	}
	for _, zone := range []string{"a", "b", "c"} {
		if times[zone] < 70 || times[zone] > 130 { // the standard deviation is 8
			t.Errorf("under 300 seeds the groups grow %v times; want some 100 times each", times)
		}
	}
}

// nameSet returns the names as a set, nil for none.
func nameSet(names []string) map[string]bool {
	if names == nil {
		return nil
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
