package core_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestEachChangeWakesWhatItHelps has one pod wait for each kind of thing, makes one
// change, and looks who is tried: those whom it lets in, and nobody else.
func TestEachChangeWakesWhatItHelps(t *testing.T) {
	node := func(name string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", "4", "memory", "16Gi", "pods", "20").Zone("a")
	}
	running := func(cpu string) *v1.Pod {
		return testkit.Pod("running").Req("cpu", cpu).Label("app", "web").On("full").Obj()
	}
	claim := func(volume string) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "data"}}
		c.Spec.StorageClassName, c.Spec.VolumeName = new("now"), volume
		if volume != "" {
			c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		}
		return c
	}
	immediate := storagev1.VolumeBindingImmediate
	budget := func(least string) step.Input {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "budget"}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		b.Status.DisruptionsAllowed = 0
		b.Annotations = map[string]string{"least": least}
		return step.ObjectSet{Object: b}
	}
	space := func(team string) step.Input {
		return step.ObjectSet{Object: &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": team}}}}
	}
	beside := testkit.Pod("beside-red").Req("cpu", "100m").Obj()
	beside.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: v1.LabelTopologyZone,
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}}}}
	withClaim := testkit.Pod("claims").Req("cpu", "100m").Obj()
	withClaim.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	waiting := []*v1.Pod{
		testkit.Pod("cpu-1").Req("cpu", "1").Obj(), testkit.Pod("cpu-3").Req("cpu", "3").Obj(), testkit.Pod("cpu-8").Req("cpu", "8").Obj(),
		testkit.Pod("zone-b").Req("cpu", "100m").RequireIn(v1.LabelTopologyZone, "b").Obj(),
		testkit.Pod("port").Req("cpu", "100m").HostPort(80).Obj(),
		beside, withClaim,
		testkit.Pod("gated").Req("cpu", "100m").Gate("example.com/wait").Obj(),
	}
	for _, c := range []struct {
		change string
		in     step.Input
		placed string // who is, then
		late   string // who is let in, too, and finds the room taken by those
	}{
		{"a gate is lifted", step.PodSet{Pod: testkit.Pod("gated").Req("cpu", "100m").Obj()}, "gated", ""},
		{"a claim is bound", step.ObjectSet{Object: claim("pv")}, "claims", ""},
		{"a pod is deleted", step.PodGone{UID: "pod-running"}, "cpu-1 cpu-3", ""},
		{"a pod is resized in place", step.PodSet{Pod: running("2300m")}, "cpu-1", ""},
		{"a pod is resized in place, by too little", step.PodSet{Pod: running("3300m")}, "", ""},
		{"a pod with a host port ends", step.PodGone{UID: "pod-listener"}, "port", ""},
		{"a node is resized in place", step.NodeSet{Node: node("full").Alloc("cpu", "7300m").Obj()}, "cpu-1", "cpu-3"},
		{"a node comes that is too small for one", step.NodeSet{Node: node("new").Alloc("cpu", "4").Obj()}, "cpu-1 cpu-3", "port"},
		{"a large node comes in another zone", step.NodeSet{Node: node("new").Zone("b").Alloc("cpu", "8").Obj()}, "cpu-1 cpu-3 zone-b port", "cpu-8"},
		{"a node moves to another zone", step.NodeSet{Node: node("full").Zone("b").Obj()}, "zone-b", ""},
		{"a node is cordoned", step.NodeSet{Node: node("full").Cordon().Obj()}, "", ""},
		{"a namespace changes its labels", space("red"), "beside-red", ""},
		{"a disruption budget changes, which keeps nobody out", budget("2"), "", ""},
		{"a Service comes", step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: "s"}}, "", ""},
		{"a waiting pod asks for less", step.PodSet{Pod: testkit.Pod("cpu-8").Req("cpu", "100m").Obj()}, "cpu-8", ""},
		{"a waiting pod changes in what no rule reads", step.PodSet{Pod: testkit.Pod("cpu-8").Req("cpu", "8").Label("note", "new").Obj()}, "", ""},
	} {
		t.Run(c.change, func(t *testing.T) {
			schema := cluster.NewSchema()
			k, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1000, 0)
			in := []step.Input{
				step.NodeSet{Node: node("full").Obj()}, space("blue"), budget("1"), step.PodSet{Pod: running("3500m")},
				step.PodSet{Pod: testkit.Pod("listener").HostPort(80).On("full").Obj()},
				step.ObjectSet{Object: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Provisioner: "csi.example", VolumeBindingMode: &immediate}},
				step.ObjectSet{Object: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
					ClaimRef: &v1.ObjectReference{Namespace: "default", Name: "data", UID: "data"}, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}},
				step.ObjectSet{Object: claim("")},
			}
			for _, p := range waiting {
				in = append(in, step.PodSet{Pod: p})
			}
			r := k.Step(now, door.Must(in...)...)
			if len(r.Binds) > 0 {
				t.Fatalf("placed at once: %v", r.Binds)
			}
			now = now.Add(time.Minute) // past every backoff
			k.Step(now)
			var tried, placed []string
			for r = k.Step(now, door.Must(c.in)...); ; r = k.Step(now) {
				for i := range r.Decisions {
					d := &r.Decisions[i]
					name := strings.TrimPrefix(d.Pod, "default/")
					tried = append(tried, name)
					if d.Kind == step.Placed {
						placed = append(placed, name)
					}
				}
				if r.NextWake.IsZero() || r.NextWake.After(now) {
					break
				}
			}
			if got := strings.Join(placed, " "); !same(got, c.placed) {
				t.Errorf("placed %q, want %q", got, c.placed)
			}
			for _, name := range tried {
				if !slices.Contains(placed, name) && !slices.Contains(strings.Fields(c.late), name) {
					t.Errorf("%s was tried in vain; tried: %v", name, tried)
				}
			}
		})
	}
}

func same(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
