package core_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// storageWorld is a core with two nodes, a class of volumes that people make,
// one such volume, and two claims that wait for it.
func storageWorld(t *testing.T) (advance func(...step.Input) step.Ready, pv *v1.PersistentVolume) {
	t.Helper()
	return storageWorldWith(t, func(*core.Config) {})
}

// storageWorldWith is storageWorld with a configuration that change has changed.
func storageWorldWith(t *testing.T, change func(*core.Config)) (advance func(...step.Input) step.Ready, pv *v1.PersistentVolume) {
	t.Helper()
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	change(&cfg)
	c, err := core.New(schema, cfg)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	advance = func(in ...step.Input) step.Ready {
		now = now.Add(20 * time.Second) // past every backoff
		return c.Step(now, door.Must(in...)...)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	pv = &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", ResourceVersion: "7"}}
	pv.Spec.StorageClassName = "static"
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Status.Phase = v1.VolumeAvailable
	in := []step.Input{
		step.ObjectSet{Object: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "static"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode}},
		step.ObjectSet{Object: pv},
	}
	for _, name := range []string{"a", "b"} {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-claim", ResourceVersion: "3"}}
		claim.Spec.StorageClassName = new("static")
		in = append(in, step.ObjectSet{Object: claim})
	}
	for _, name := range []string{"n0", "n1"} {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj()})
	}
	advance(in...)
	return advance, pv
}

func consumer(name string) step.PodSet {
	p := testkit.Pod(name).Req("cpu", "1")
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	return step.PodSet{Pod: p.Obj()}
}

// A volume that a pod was promised is nobody else's until its bind fails; then
// the other pod gets it. What the API repeats in between changes nothing.
func TestVolumeIsTakenUntilTheBindFails(t *testing.T) {
	advance, pv := storageWorld(t)
	r := advance(consumer("a"))
	if len(r.Binds) != 1 || len(r.Binds[0].Writes) != 1 || len(r.Binds[0].Claims) != 1 || r.Binds[0].Timeout != 10*time.Minute {
		t.Fatalf("binds %+v, want one that writes the volume and waits 10 minutes for the claim", r.Binds)
	}
	written := r.Binds[0].Writes[0].(*v1.PersistentVolume)
	if ref := written.Spec.ClaimRef; ref == nil || ref.Name != "a" {
		t.Errorf("the volume is written with claimRef %v, want that of a", ref)
	}
	if r := advance(consumer("b"), step.ObjectSet{Object: pv.DeepCopy()}); len(r.Binds) != 0 {
		t.Fatalf("b was placed with a volume that is promised to a: %+v", r.Binds)
	}
	r = advance(step.BindDone{UID: "pod-a", Err: errors.New("someone else took it")})
	r2 := advance()
	binds := append(r.Binds, r2.Binds...)
	if len(binds) != 1 || len(binds[0].Writes) != 1 {
		t.Fatalf("after the failure: binds %+v, want one of a and b with the volume", binds)
	}
}

// A pod that somebody else binds to another node than it was given needs the volume no
// more that was promised to it there: another pod gets it.
func TestVolumeOfAPodBoundElsewhereIsFree(t *testing.T) {
	advance, _ := storageWorld(t)
	r := advance(consumer("a"))
	if len(r.Binds) != 1 {
		t.Fatalf("binds %+v, want one of a", r.Binds)
	}
	elsewhere := consumer("a")
	elsewhere.Pod.Spec.NodeName = map[string]string{"n0": "n1", "n1": "n0"}[r.Binds[0].Node]
	advance(consumer("b"))
	r = advance(elsewhere)
	r2 := advance()
	if binds := append(r.Binds, r2.Binds...); len(binds) != 1 || binds[0].Name != "b" {
		t.Errorf("binds %+v, want one of b with the volume", binds)
	}
}

// A pod whose claim has come to be in use on a node needs no second slot there:
// the arrival of the other user makes it another class.
func TestPodWithASharedClaimIsSignedAgain(t *testing.T) {
	advance, _ := storageWorld(t)
	one := int32(1)
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", ResourceVersion: "1"}}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: "disk"}
	bound := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	bound.Spec.VolumeName = "disk"
	in := []step.Input{step.NodeGone{Name: "n1"}, step.ObjectSet{Object: pv}, step.ObjectSet{Object: bound},
		step.ObjectSet{Object: &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "csi.example", Allocatable: &storagev1.VolumeNodeResources{Count: &one}}}}}}}
	user := func(name, cpu, node string) *testkit.PodBuilder {
		p := testkit.Pod(name).Req("cpu", cpu).On(node)
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
		return p
	}
	filler := testkit.Pod("filler").Req("cpu", "2").On("n0")
	advance(append(in, step.PodSet{Pod: filler.Obj()}, step.PodSet{Pod: user("big", "3", "").Obj()})...)
	advance(step.PodSet{Pod: user("small", "1", "n0").Obj()}) // bound by somebody else
	r := advance(step.PodGone{UID: filler.UID})
	if len(r.Binds) != 1 || r.Binds[0].Name != "big" {
		t.Errorf("binds %+v, want big on n0, where its disk is", r.Binds)
	}
}

// TestFollowThenLead has a core follow another: it decides and says nothing, and
// when it leads says what there is to say about objects as they stand, and takes
// over a removal that the other had begun.
func TestFollowThenLead(t *testing.T) {
	schema := cluster.NewSchema()
	cfg := autoscaling(func(*core.Autoscale) {})
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	c, err := core.New(schema, cfg)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	going := testkit.Node("going").Alloc("cpu", "4", "memory", "8Gi").Taint(autoscaler.ToBeDeletedTaint, "1", v1.TaintEffectNoSchedule).Obj()
	stays := testkit.Node("stays").Alloc("cpu", "4", "memory", "8Gi").Taint(autoscaler.ToBeDeletedTaint, "1", v1.TaintEffectNoSchedule).Obj()
	going.Annotations, stays.Annotations = map[string]string{autoscaler.RemovalNote: "why"}, map[string]string{autoscaler.RemovalNote: "why"}
	c.StandBy(now, 0, door.Must(step.NodeSet{Node: testkit.Node("odd").Alloc("cpu", "4", "memory", "7Ei").Obj()}, step.NodeSet{Node: going}, step.NodeSet{Node: stays},
		step.PodSet{Pod: testkit.Pod("held").Gate("g").Obj()}, step.PodSet{Pod: testkit.Pod("waits").Req("cpu", "1").Obj()}, step.PodSet{Pod: testkit.Pod("bound").Obj()})...)
	c.StandBy(now.Add(time.Second), 0, door.Must(step.PodSet{Pod: testkit.Pod("bound").On("odd").Obj()},
		step.NodeSet{Node: testkit.Node("stays").Alloc("cpu", "4", "memory", "8Gi").Obj()})...) // the other gave it back
	if q := c.Queue(); q.Active != 1 || q.Gated != 1 {
		t.Errorf("queue %+v, want one active and one gated", q)
	}
	c.BecomeLeader(now.Add(2 * time.Second))
	r := c.Step(now.Add(2 * time.Second))
	if len(r.Binds) != 1 || r.Binds[0].Name != "waits" || r.Binds[0].Node == "going" {
		t.Errorf("binds %+v, want that of the pod that waits", r.Binds)
	}
	if len(r.Conditions) != 1 || r.Conditions[0].Name != "held" {
		t.Errorf("conditions %+v, want that of the gated pod", r.Conditions)
	}
	if len(r.Events) != 1 || r.Events[0].Name != "odd" || r.Events[0].Reason != "InvalidQuantity" {
		t.Errorf("events %+v, want one about the odd node", r.Events)
	}
	if len(r.Decisions) != 2 || r.Decisions[0].Seq != 1 {
		t.Errorf("decisions %+v, want two, numbered from 1", r.Decisions)
	}
	if n := c.State().NodeByName("stays"); n.HasTaint(autoscaler.ToBeDeletedTaint) {
		t.Error("a node that was given back has its taint still")
	}
	if u := c.Unsettled(); len(u) != 2 || !strings.Contains(u[1], "the deletion of node going is under way") {
		t.Errorf("unsettled %v, want the bind and the deletion", u)
	}
}

// TestPodsAreWhereTheAPIHasThem lists the pods of a core: one that Berth has bound and that
// the API shows on its node, one whose bind has no outcome yet, one that waits, one on a
// node that isn't known, and one of another scheduler.
func TestPodsAreWhereTheAPIHasThem(t *testing.T) {
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1") }
	theirs := pod("theirs")
	theirs.Spec.SchedulerName = "another"
	c.Step(time.Unix(1, 0), door.Must(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "2").Obj()},
		step.PodSet{Pod: pod("bound").Obj()}, step.PodSet{Pod: pod("binding").Obj()}, step.PodSet{Pod: pod("waits").Obj()},
		step.PodSet{Pod: pod("early").On("unknown").Obj()}, step.PodSet{Pod: theirs.Obj()})...)
	c.Step(time.Unix(2, 0), door.Must(step.BindDone{UID: "pod-bound"}, step.PodSet{Pod: pod("bound").On("n").Obj()})...)
	got := map[string]string{}
	c.Pods(func(obj *v1.Pod, node string) { got[obj.Name] = node })
	want := map[string]string{"bound": "n", "binding": "", "waits": "", "early": "unknown", "theirs": ""}
	if !maps.Equal(got, want) {
		t.Errorf("pods by node %v, want %v", got, want)
	}
}

// TestWorkloadsComeAndGo: what selects or makes pods is in the state from when the API shows
// it until it says that it is gone; another of the same name and of another kind stays.
func TestWorkloadsComeAndGo(t *testing.T) {
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []cluster.WorkloadKind{cluster.Service, cluster.ReplicaSet, cluster.StatefulSet, cluster.ReplicationController, cluster.Job, cluster.DaemonSet}
	var shown []step.Input
	for _, obj := range []runtime.Object{
		testkit.Service("web", "app", "web"), testkit.ReplicaSet("web", "app", "web"),
		testkit.StatefulSet("web", "app", "web"), testkit.ReplicationController("web", "app", "web"),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}},
	} {
		shown = append(shown, step.WorkloadSet{Workload: cluster.WorkloadOf(obj)})
	}
	c.Step(time.Unix(1, 0), door.Must(append(shown, step.DaemonSetSet{DaemonSet: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}})...)...)
	for i, kind := range kinds {
		if c.State().Workload(kind, "default", "web") == nil {
			t.Errorf("the %s isn't in the state, though the API shows it", kind)
		}
		c.Step(time.Unix(2, 0), door.Must(step.WorkloadGone{Kind: kind, Namespace: "default", Name: "web"})...)
		if c.State().Workload(kind, "default", "web") != nil {
			t.Errorf("the %s is in the state still, though it is gone", kind)
		}
		if got, want := len(c.State().Workloads()), len(kinds)-1-i; got != want {
			t.Errorf("with the %s gone there are %d workloads, want %d", kind, got, want)
		}
	}
}

// TestAPodThatLosesItsNodeIsQueued has a pod be shown on a node and later without one, which the
// API's validation forbids and a restored etcd brings: it takes its room with it, and is placed anew.
func TestAPodThatLosesItsNodeIsQueued(t *testing.T) {
	var binds []string
	d := newDriven(t, core.DefaultConfig(), &emptyPlans{}, defaults, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, b := range r.Binds {
			binds = append(binds, b.Name+" to "+b.Node)
		}
	}))
	now := time.Unix(1000, 0)
	node := func(name string) step.Input {
		return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()}
	}
	pod := func() *testkit.PodBuilder { return testkit.Pod("p").Req("cpu", "2") }
	d.stepOut(now, node("n"), step.PodSet{Pod: pod().On("n").Obj()})
	d.stepOut(now, step.PodSet{Pod: pod().Obj()})
	state := d.Core().State()
	if pods := state.NodeByName("n").Pods; len(pods) != 1 || len(binds) != 1 || binds[0] != "p to n" {
		t.Errorf("%d pods are on the node, and bound were %v; want p to be bound to n again", len(pods), binds)
	}
	d.stepOut(now, step.PodGone{UID: testkit.Pod("p").UID})
	if pods := state.NodeByName("n").Pods; len(pods) != 0 {
		t.Errorf("%d pods are on the node when the pod is gone, want none", len(pods))
	}
}

// TestExpectedNodesAreWritten: a pod whose volume is bound first is nominated to its node meanwhile, unless
// that is switched off.
func TestExpectedNodesAreWritten(t *testing.T) {
	for _, off := range []bool{false, true} {
		advance, _ := storageWorldWith(t, func(cfg *core.Config) { cfg.NoExpectedNominations = off })
		r := advance(consumer("a"))
		if len(r.Binds) != 1 {
			t.Fatalf("binds %+v, want one of a", r.Binds)
		}
		written := len(r.Nominations) == 1 && r.Nominations[0].Node == r.Binds[0].Node
		if off && len(r.Nominations) > 0 || !off && !written {
			t.Errorf("with NoExpectedNominations %t the nominations are %+v, and the bind %+v", off, r.Nominations, r.Binds[0])
		}
	}
}
